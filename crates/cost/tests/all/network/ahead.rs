//! Tests of `ahead`.

use unisono_cost::internals::ahead::Ahead;

/// A packet that chooses a link at some instant is not delayed by packets that are known to leave the link at this
/// instant.
#[test]
fn packets_that_leave_now_delay_no_others() {
    let mut ahead = Ahead::new(2, u64::MAX);
    ahead.add(0, 3);
    ahead.add(1, 1);
    ahead.go_on(10, 0, 2);
    for (now, packets) in [(0, 3.0), (9, 3.0), (10, 1.0), (11, 1.0)] {
        ahead.settle(now);
        assert_eq!((ahead.with_next(0), ahead.with_next(1)), (packets + 1.0, 2.0), "at {now}");
    }
}

/// Packets do not count before they leave, nor during the round trip of 5 units after they leave.
#[test]
fn packets_on_their_way_do_not_count() {
    let mut ahead = Ahead::new(1, 3);
    ahead.add(0, 2);
    ahead.leave(10, 0, 2);
    for (now, packets) in [(9, 0.0), (10, 0.0), (14, 0.0), (15, 2.0)] {
        assert_eq!(ahead.beyond_trip(now, 0, 5), packets + 1.0, "at {now}");
    }
    ahead.add(0, 1);
    assert_eq!(ahead.beyond_trip(10, 0, 5), 4.0, "no place is free");
}
