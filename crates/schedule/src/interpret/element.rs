//! The types of the elements that the interpreter computes with.

use half::{bf16, f16};
use unisono_collective::Operator;

/// A value that operators combine. Integers wrap around, as in MPI libraries.
pub trait Element: Copy + Default + PartialEq + std::fmt::Debug {
    /// Returns true if the operator is defined for this type. Otherwise [`Element::combine`] must not be called.
    fn knows(operator: Operator) -> bool;
    fn combine(operator: Operator, a: Self, b: Self) -> Self;
}

macro_rules! float {
    ($($t:ty),*) => {$(
        impl Element for $t {
            fn knows(operator: Operator) -> bool {
                matches!(operator, Operator::Sum | Operator::Prod | Operator::Min | Operator::Max)
            }

            #[inline]
            fn combine(operator: Operator, a: Self, b: Self) -> Self {
                match operator {
                    Operator::Sum => a + b,
                    Operator::Prod => a * b,
                    Operator::Min => a.min(b),
                    Operator::Max => a.max(b),
                    _ => unreachable!("Element::knows was asked"),
                }
            }
        }
    )*};
}

macro_rules! integer {
    ($($t:ty: $ordered:expr),*) => {$(
        impl Element for $t {
            fn knows(operator: Operator) -> bool {
                operator != Operator::Ordered || std::mem::size_of::<$t>() == 8
            }

            #[inline]
            fn combine(operator: Operator, a: Self, b: Self) -> Self {
                match operator {
                    Operator::Sum => a.wrapping_add(b),
                    Operator::Prod => a.wrapping_mul(b),
                    Operator::Min => a.min(b),
                    Operator::Max => a.max(b),
                    Operator::And => a & b,
                    Operator::Or => a | b,
                    Operator::Xor => a ^ b,
                    Operator::Ordered => $ordered(a, b),
                }
            }
        }
    )*};
}

float!(f32, f64, f16, bf16);
integer!(
    i16: |_, _| unreachable!("Element::knows was asked"),
    i32: |_, _| unreachable!("Element::knows was asked"),
    i64: compose
);

/// Composes affine maps `x -> (v >> 32) x + (v & 0xffff_ffff)` modulo the prime 2^31 - 1: first `f`, then `g`.
fn compose(f: i64, g: i64) -> i64 {
    const PRIME: u64 = (1 << 31) - 1;
    let parts = |v: i64| ((v.cast_unsigned() >> 32) % PRIME, (v.cast_unsigned() & 0xffff_ffff) % PRIME);
    let ((fa, fb), (ga, gb)) = (parts(f), parts(g));
    let (slope, offset) = (ga * fa % PRIME, (ga * fb + gb) % PRIME);
    (slope << 32 | offset) as i64
}
