//! Tests of `interpret::element`.

use half::f16;
use unisono_collective::Operator;
use unisono_schedule::interpret::Element;

#[test]
fn ordered_is_associative_and_does_not_commute() {
    let (a, b, c) = (3 << 32 | 5, 7 << 32 | 11, 13 << 32 | 17);
    let ord = |x, y| i64::combine(Operator::Ordered, x, y);
    assert_eq!(ord(ord(a, b), c), ord(a, ord(b, c)));
    assert_ne!(ord(a, b), ord(b, a));
}

#[test]
fn halves_round_after_each_step() {
    let x = f16::from_f32(2048.0);
    assert_eq!(f16::combine(Operator::Sum, x, f16::from_f32(1.0)), x);
    assert!(!f16::knows(Operator::Xor));
}
