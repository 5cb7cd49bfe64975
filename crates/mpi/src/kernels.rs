//! The kernels of this crate, which combine integers and floating-point numbers of 32 and 64 bits, and bytes. The MPI
//! library applies all other operators and types.
//!
//! Minima and maxima of floating-point numbers have no kernel, so that results for NaN and for zeros of different sign
//! equal the results of the library. Integers of 8 and 16 bits have none, because Open MPI 5.0.11 saturates overflowing
//! sums in its vector loops and wraps them in the remainders of these loops.

use crate::abi::{Element, Number, Op};

/// Returns whether [`combine`] has a kernel for this element and operator.
pub fn serves(element: Element, op: Op) -> bool {
    // SAFETY: with a count of 0 no address is used.
    unsafe { combine(element, op, [].as_ptr(), [].as_ptr(), [].as_mut_ptr(), 0) }
}

/// Computes `to = left op right` over `count` elements. Returns false if there is no kernel, without any effect.
///
/// # Safety
/// Each address must hold `count` elements of `element`. `to` may equal another address, but may not overlap it
/// otherwise.
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

/// The two operands and the result: `count` elements of `bytes` bytes at each address, as the caller of [`combine`]
/// guaranteed.
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

    /// Combines the operands element by element. The program's memory may be unaligned. Unaligned loads vectorise and
    /// cost nothing on the machines tested.
    #[inline(always)]
    fn each<T: Copy>(&self, f: impl Fn(T, T) -> T) {
        assert_eq!(size_of::<T>(), self.bytes, "the kernel is that of the element");
        let (left, right, to) = (self.left.cast::<T>(), self.right.cast::<T>(), self.to.cast::<T>());
        for k in 0..self.count {
            // SAFETY: k < count, and each address holds `count` elements of this size. Element k is read before it is
            // written.
            #[expect(clippy::multiple_unsafe_ops_per_block, reason = "two loads and a store of one element")]
            unsafe {
                to.add(k).write_unaligned(f(left.add(k).read_unaligned(), right.add(k).read_unaligned()));
            }
        }
    }
}
