//! Tests of `ahead`.

use unisono_cost::internals::ahead::Ahead;

/// Packets that are known to leave a link at some instant do not delay a packet that chooses a link at that instant.
#[test]
fn packets_that_leave_now_delay_no_others() {
    let mut ahead = Ahead::new(2);
    ahead.add(0, 3);
    ahead.add(1, 1);
    ahead.go_on(10, 0, 2);
    for (now, packets) in [(0, 3.0), (9, 3.0), (10, 1.0), (11, 1.0)] {
        ahead.settle(now);
        assert_eq!((ahead.with_next(0), ahead.with_next(1)), (packets + 1.0, 2.0), "at {now}");
    }
}
