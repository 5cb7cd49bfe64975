//! Tests of `kernels`.

use unisono_mpi::{Element, Number, Op, combine};

fn run<T: Copy + Default>(number: Number, op: Op, left: &[T], right: &[T]) -> Option<Vec<T>> {
    let mut to = vec![T::default(); left.len()];
    let element = Element { number, bytes: size_of::<T>() };
    // SAFETY: three slices of one length, with elements of this size.
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
                // Boxed slices have no spare capacity, so memory checkers detect accesses beyond their ends.
                let given = || vec![1u8; at + count * bytes].into_boxed_slice();
                let (left, right, mut to) = (given(), given(), given());
                for op in ops {
                    let element = Element { number, bytes };
                    let (a, b) = (left[at..].as_ptr(), right[at..].as_ptr());
                    // SAFETY: from `at` on, each slice has `count` elements of this size.
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
