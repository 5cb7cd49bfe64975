//! Tests of `ahead`.

use unisono_cost::internals::ahead::Ahead;

/// Packets that are known to leave a link at some instant do not delay a packet that chooses a link at that instant.
#[test]
fn packets_that_leave_now_delay_no_others() {
    let mut ahead = Ahead::new(2, u64::MAX);
    ahead.add(0, 3);
    ahead.add(1, 1);
    ahead.go_on(10, 0, 2);
    for (now, packets) in [(0, 3.0), (9, 3.0), (10, 1.0), (11, 1.0)] {
        ahead.settle(now);
        assert_eq!((ahead.with_next(now, 0, 0), ahead.with_next(now, 1, 0)), (packets + 1.0, 2.0), "at {now}");
    }
}

/// Packets on a link whose round trip is longer by 5 do not count during the 5 units after they left.
#[test]
fn packets_on_a_longer_way_do_not_count() {
    let mut ahead = Ahead::new(1, 3);
    ahead.add(0, 2);
    ahead.leave(10, 0, 2);
    for (now, packets) in [(9, 2.0), (10, 0.0), (14, 0.0), (15, 2.0)] {
        assert_eq!(ahead.with_next(now, 0, 5), packets + 1.0, "at {now}");
    }
    ahead.add(0, 1);
    assert_eq!(ahead.with_next(10, 0, 5), 4.0, "no place is free");
}
