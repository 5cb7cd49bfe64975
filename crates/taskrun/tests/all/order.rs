//! The order of commands.

use unisono_taskrun::internals::Order;

#[test]
fn commands_of_earlier_runs_are_complete() {
    let order = Order::new(10, 2);
    assert!(order.are_done(&[3, 9], Some(9)));
    assert!(!order.are_done(&[10], None));
    assert!(!order.are_done(&[], Some(10)));
}

#[test]
fn a_range_is_complete_with_its_last_open_command() {
    let mut order = Order::new(0, 4);
    order.close(1);
    order.close(2);
    assert!(order.are_done(&[1, 2], None));
    assert!(!order.are_done(&[], Some(2)), "command 0 is open");
    order.close(0);
    assert!(order.are_done(&[], Some(2)));
    assert!(order.is_open());
    order.close(3);
    order.close(3);
    assert!(!order.is_open());
}
