//! Tests of `verify::fingerprint`.

use unisono_schedule::internals::fingerprint::Sum;

#[test]
fn sums_carry_and_borrow() {
    let (a, b) = (Sum(u128::MAX, 5), Sum(1, u64::MAX));
    assert!(a.plus(b) == Sum(0, 5) && a.plus(b).minus(b) == a && Sum(0, 5).minus(a) == b);
}
