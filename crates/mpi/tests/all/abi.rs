//! Tests of `abi`.

use unisono_mpi::{Number, Op, internals::abi::TYPES};

#[test]
fn operators_take_the_numbers_that_mpi_lists() {
    let all = [Op::Max, Op::Min, Op::Sum, Op::Prod, Op::And, Op::Or, Op::Xor, Op::BitAnd, Op::BitOr, Op::BitXor];
    let taken = |number: Number| all.map(|op| u8::from(number.takes(op)));
    assert_eq!(taken(Number::Signed), [1; 10]);
    assert_eq!(taken(Number::Unsigned), [1; 10]);
    assert_eq!(taken(Number::Integer), [1, 1, 1, 1, 0, 0, 0, 1, 1, 1]);
    assert_eq!(taken(Number::Float), [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(taken(Number::LongDouble), [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(taken(Number::Complex), [0, 0, 1, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(taken(Number::Logical), [0, 0, 0, 0, 1, 1, 1, 0, 0, 0]);
    assert_eq!(taken(Number::Bits), [0, 0, 0, 0, 0, 0, 0, 1, 1, 1]);
    assert_eq!(taken(Number::Character), [0; 10]);
}

#[test]
fn names_of_types_are_unique() {
    for (k, row) in TYPES.iter().enumerate() {
        assert!(TYPES[..k].iter().all(|other| other.0 != row.0 && other.2 != row.2 && other.3 != row.3), "{}", row.0);
    }
}
