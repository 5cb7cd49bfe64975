//! Our own sums of common types; what they lack, the MPI library sums.
//!
//! Left to the library are minima and maxima of floating point, so that its answer on NaN and on zeros of different
//! sign is everyone's, and integers of 8 and 16 bits: where a sum overflows, Open MPI 5.0.11 saturates in its vector
//! loops and wraps in what is left over of them.

use crate::abi::{Element, Number, Op};

/// Whether [`combine`] has a kernel.
pub fn serves(element: Element, op: Op) -> bool {
    // SAFETY: no address is used for no elements.
    unsafe { combine(element, op, [].as_ptr(), [].as_ptr(), [].as_mut_ptr(), 0) }
}

/// `to = left op right` over `count` elements; false where there is no kernel and nothing was done.
///
/// # Safety
/// Each address holds `count` elements of `element`; `to` may be one of the others, and overlaps them in no other way.
#[inline]
pub unsafe fn combine(element: Element, op: Op, left: *const u8, right: *const u8, to: *mut u8, count: usize) -> bool {
    use Number::{Bits, Float, Integer, Signed, Unsigned};
    let x = Operands { left, right, to, count, bytes: element.bytes };
    match (element.number, element.bytes) {
        (Float, 4) => x.float::<f32>(op),
        (Float, 8) => x.float::<f64>(op),
        (Signed | Integer, 4) => x.integer::<i32>(op),
        (Signed | Integer, 8) => x.integer::<i64>(op),
        (Unsigned, 4) => x.integer::<u32>(op),
        (Unsigned, 8) => x.integer::<u64>(op),
        (Bits, 1) if matches!(op, Op::BitAnd | Op::BitOr | Op::BitXor) => x.integer::<u8>(op),
        _ => false,
    }
}

/// Three addresses of `count` elements of `bytes` bytes each, as the caller of [`combine`] promised.
struct Operands {
    left: *const u8,
    right: *const u8,
    to: *mut u8,
    count: usize,
    bytes: usize,
}

trait Arithmetic: Copy {
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
}

trait Integer: Arithmetic + Ord {
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
}

macro_rules! floats {
    ($($t:ty),*) => {$(
        impl Arithmetic for $t {
            fn add(self, other: Self) -> Self { self + other }
            fn mul(self, other: Self) -> Self { self * other }
        }
    )*};
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Arithmetic for $t {
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
        }
        impl Integer for $t {
            fn and(self, other: Self) -> Self { self & other }
            fn or(self, other: Self) -> Self { self | other }
            fn xor(self, other: Self) -> Self { self ^ other }
        }
    )*};
}

floats!(f32, f64);
integers!(i32, i64, u8, u32, u64);

impl Operands {
    fn float<T: Arithmetic>(&self, op: Op) -> bool {
        match op {
            Op::Sum => self.each(T::add),
            Op::Prod => self.each(T::mul),
            _ => return false,
        }
        true
    }

    fn integer<T: Integer>(&self, op: Op) -> bool {
        match op {
            Op::Sum => self.each(T::add),
            Op::Prod => self.each(T::mul),
            Op::Min => self.each(T::min),
            Op::Max => self.each(T::max),
            Op::BitAnd => self.each(T::and),
            Op::BitOr => self.each(T::or),
            Op::BitXor => self.each(T::xor),
            Op::And | Op::Or | Op::Xor => return false,
        }
        true
    }

    /// Users' memory need not be aligned; unaligned loads cost nothing on the machines at hand and vectorise.
    #[inline(always)]
    fn each<T: Copy>(&self, f: impl Fn(T, T) -> T) {
        assert_eq!(size_of::<T>(), self.bytes, "the kernel is that of the element");
        let (left, right, to) = (self.left.cast::<T>(), self.right.cast::<T>(), self.to.cast::<T>());
        for k in 0..self.count {
            // SAFETY: k < count, and each address holds `count` elements of so many bytes; element k is read before it
            // is written.
            #[expect(clippy::multiple_unsafe_ops_per_block, reason = "two loads and a store of one element")]
            unsafe {
                to.add(k).write_unaligned(f(left.add(k).read_unaligned(), right.add(k).read_unaligned()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T: Copy + Default>(number: Number, op: Op, left: &[T], right: &[T]) -> Option<Vec<T>> {
        let mut to = vec![T::default(); left.len()];
        let element = Element { number, bytes: size_of::<T>() };
        // SAFETY: three slices of one length, of elements of so many bytes.
        let known = unsafe {
            combine(element, op, left.as_ptr().cast(), right.as_ptr().cast(), to.as_mut_ptr().cast(), left.len())
        };
        known.then_some(to)
    }

    #[test]
    fn kernels_compute_what_the_operators_say() {
        let (a, b) = ([7i32, -3, i32::MAX], [2, -5, 1]);
        assert_eq!(run(Number::Signed, Op::Sum, &a, &b), Some(vec![9, -8, i32::MIN]));
        assert_eq!(run(Number::Signed, Op::Prod, &a, &b), Some(vec![14, 15, i32::MAX]));
        assert_eq!(run(Number::Signed, Op::Min, &a, &b), Some(vec![2, -5, 1]));
        assert_eq!(run(Number::Signed, Op::Max, &a, &b), Some(vec![7, -3, i32::MAX]));
        assert_eq!(run(Number::Unsigned, Op::BitXor, &[6u32], &[3]), Some(vec![5]));
        assert_eq!(run(Number::Unsigned, Op::BitXor, &[6u8], &[3]), None, "left to the library");
        assert_eq!(run(Number::Bits, Op::BitOr, &[6u8], &[1]), Some(vec![7]));
        assert_eq!(run(Number::Bits, Op::Sum, &[6u8], &[1]), None, "bytes have no value");
        assert_eq!(run(Number::Float, Op::Sum, &[0.5f64], &[0.25]), Some(vec![0.75]));
        assert_eq!(run(Number::Float, Op::Min, &[0.5f32], &[0.25]), None, "left to the library");
        assert_eq!(run(Number::Signed, Op::And, &[1i64], &[2]), None);
    }

    #[test]
    fn kernels_stay_within_unaligned_memory() {
        let ops = [Op::Sum, Op::Prod, Op::Min, Op::Max, Op::BitAnd, Op::BitOr, Op::BitXor, Op::And, Op::Or, Op::Xor];
        for number in [Number::Signed, Number::Unsigned, Number::Float, Number::Bits, Number::LongDouble] {
            for bytes in [1, 2, 4, 8, 16] {
                for (count, at) in (0..20).flat_map(|count| (0..3).map(move |at| (count, at))) {
                    // Boxed slices have no spare room, so that a tool that watches memory sees what lies beyond.
                    let given = || vec![1u8; at + count * bytes].into_boxed_slice();
                    let (left, right, mut to) = (given(), given(), given());
                    for op in ops {
                        let element = Element { number, bytes };
                        let (a, b) = (left[at..].as_ptr(), right[at..].as_ptr());
                        // SAFETY: from `at` on, each slice has `count` elements of so many bytes.
                        let known = unsafe { combine(element, op, a, b, to[at..].as_mut_ptr(), count) };
                        assert!(!known || bytes == 4 || bytes == 8 || number == Number::Bits);
                    }
                    assert!(to[..at].iter().all(|&byte| byte == 1));
                }
            }
        }
    }

    #[test]
    fn the_target_may_be_an_operand() {
        let mut x = [1.0f32, 2.0, 3.0];
        let y = [10.0f32, 20.0, 30.0];
        let element = Element { number: Number::Float, bytes: 4 };
        let at = x.as_mut_ptr().cast::<u8>();
        // SAFETY: `to` is `left`.
        assert!(unsafe { combine(element, Op::Sum, at, y.as_ptr().cast(), at, 3) });
        assert_eq!(x, [11.0, 22.0, 33.0]);
    }
}
