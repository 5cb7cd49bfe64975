//! Tests of `order`.

use unisono_csl::internals::order::Order;

#[test]
fn waits_order_threads() {
    // Thread 0 is steps 0 and 1, thread 1 is steps 2 and 3; step 3 waits for step 0.
    let order = Order::new(&[2, 2], &[(3, 0)]).unwrap();
    assert!(order.may_meet(0, 2));
    assert!(!order.may_meet(0, 3));
    assert!(order.may_meet(1, 3));
    assert!(!order.may_meet(0, 1));
}

#[test]
fn cycles_and_missing_steps_are_none() {
    assert!(Order::new(&[1, 1], &[(0, 1), (1, 0)]).is_none());
    assert!(Order::new(&[1], &[(0, 7)]).is_none());
    assert!(Order::new(&[1], &[(7, 0)]).is_none());
}
