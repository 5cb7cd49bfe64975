//! Tests of `abi`.

use unisono_mpi::{
    Op,
    internals::{abi::TYPES, learned::ROWS},
};

/// The table of section 6.9.2 of MPI 4.1. Names are those of Open MPI's symbols.
#[test]
fn operators_take_the_datatypes_that_mpi_lists() {
    const EVERY: [Op; 10] =
        [Op::Max, Op::Min, Op::Sum, Op::Prod, Op::And, Op::Or, Op::Xor, Op::BitAnd, Op::BitOr, Op::BitXor];
    let group = |name: &str| match name {
        "char" | "character" => [0; 10],
        "byte" => [0, 0, 0, 0, 0, 0, 0, 1, 1, 1],
        "c_bool" => [0, 0, 0, 0, 1, 1, 1, 0, 0, 0],
        "float" | "double" | "long_double" | "dblprec" => [1, 1, 1, 1, 0, 0, 0, 0, 0, 0],
        "c_float_complex" | "c_double_complex" | "cplex" | "dblcplex" => [0, 0, 1, 1, 0, 0, 0, 0, 0, 0],
        "aint" | "count" => [1, 1, 1, 1, 0, 0, 0, 1, 1, 1],
        _ if name.starts_with("logical") => [0, 0, 0, 0, 1, 1, 1, 0, 0, 0],
        _ if name.starts_with("integer") => [1, 1, 1, 1, 0, 0, 0, 1, 1, 1],
        _ if name.starts_with("real") => [1, 1, 1, 1, 0, 0, 0, 0, 0, 0],
        _ if name.starts_with("complex") => [0, 0, 1, 1, 0, 0, 0, 0, 0, 0],
        _ if ["short", "int", "long", "signed", "unsigned", "uint"].iter().any(|c| name.starts_with(c)) => [1; 10],
        _ => panic!("{name} is in no group"),
    };
    let known = TYPES.iter().map(|row| (row.0, row.1.number));
    for (name, number) in known.chain(ROWS.iter().map(|row| (row.0, row.1))) {
        assert_eq!(EVERY.map(|op| u8::from(number.takes(op))), group(name), "{name}");
    }
}

#[test]
fn names_of_types_are_unique() {
    for (k, row) in TYPES.iter().enumerate() {
        assert!(TYPES[..k].iter().all(|other| other.0 != row.0 && other.2 != row.2 && other.3 != row.3), "{}", row.0);
    }
}
