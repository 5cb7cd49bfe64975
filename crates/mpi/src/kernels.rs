//! Our own sums of common types; what they lack, the MPI library sums.
//!
//! Left to the library are minima and maxima of floating point, so that its answer on NaN and on zeros of different sign
//! is everyone's, and integers of 8 and 16 bits: where a sum overflows, Open MPI 5.0.11 saturates in its vector loops and
//! wraps in what is left over of them.

use crate::abi::{Element, Number, Op};

/// `to = left op right` over `count` elements; false where there is no kernel and nothing was done.
///
/// # Safety
/// Each address holds `count` elements of `element`; `to` may be one of the others, and overlaps them in no other way.
#[inline]
pub unsafe fn combine(element: Element, op: Op, left: *const u8, right: *const u8, to: *mut u8, count: usize) -> bool {
    use Number::{Bits, Float, Signed, Unsigned};
    // SAFETY: the caller's promise is that of each kernel.
    unsafe {
        match (element.number, element.bytes) {
            (Float, 4) => float::<f32>(op, left, right, to, count),
            (Float, 8) => float::<f64>(op, left, right, to, count),
            (Signed, 4) => integer::<i32>(op, left, right, to, count),
            (Signed, 8) => integer::<i64>(op, left, right, to, count),
            (Unsigned, 4) => integer::<u32>(op, left, right, to, count),
            (Unsigned, 8) => integer::<u64>(op, left, right, to, count),
            (Bits, 1) if matches!(op, Op::BitAnd | Op::BitOr | Op::BitXor) => integer::<u8>(op, left, right, to, count),
            _ => false,
        }
    }
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

unsafe fn float<T: Arithmetic>(op: Op, left: *const u8, right: *const u8, to: *mut u8, count: usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        match op {
            Op::Sum => each(left, right, to, count, T::add),
            Op::Prod => each(left, right, to, count, T::mul),
            _ => return false,
        }
    }
    true
}

unsafe fn integer<T: Integer>(op: Op, left: *const u8, right: *const u8, to: *mut u8, count: usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        match op {
            Op::Sum => each(left, right, to, count, T::add),
            Op::Prod => each(left, right, to, count, T::mul),
            Op::Min => each(left, right, to, count, T::min),
            Op::Max => each(left, right, to, count, T::max),
            Op::BitAnd => each(left, right, to, count, T::and),
            Op::BitOr => each(left, right, to, count, T::or),
            Op::BitXor => each(left, right, to, count, T::xor),
            Op::And | Op::Or | Op::Xor => return false,
        }
    }
    true
}

/// Users' memory need not be aligned; unaligned loads cost nothing on the machines at hand and vectorise.
#[inline(always)]
unsafe fn each<T: Copy>(left: *const u8, right: *const u8, to: *mut u8, count: usize, f: impl Fn(T, T) -> T) {
    let (left, right, to) = (left.cast::<T>(), right.cast::<T>(), to.cast::<T>());
    for k in 0..count {
        // SAFETY: k < count, and the caller promises so many elements; element k is read before it is written.
        unsafe { to.add(k).write_unaligned(f(left.add(k).read_unaligned(), right.add(k).read_unaligned())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T: Copy + Default>(number: Number, op: Op, left: &[T], right: &[T]) -> Option<Vec<T>> {
        let mut to = vec![T::default(); left.len()];
        let element = Element { number, bytes: size_of::<T>() };
        // SAFETY: three slices of one length.
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
