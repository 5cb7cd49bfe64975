//! Tests of `learned`.

use unisono_mpi::internals::learned::{ROWS, Row};

#[test]
fn names_of_types_are_unique() {
    for (k, row) in ROWS.iter().enumerate() {
        let same = |other: &&Row| other.0 == row.0 || other.2 == row.2 || other.3 == row.3;
        assert_eq!(ROWS[..k].iter().find(same), None);
    }
}

/// MPICH's handle of a predefined datatype contains the size in bytes, if the datatype's name implies a size.
#[test]
fn handles_of_mpich_hold_the_sizes_of_their_names() {
    let sized = |name: &str, bytes: usize| ROWS.iter().any(|r| r.0 == name && r.2 >> 8 & 0xff == bytes);
    for (name, bytes) in [("integer2", 2), ("integer8", 8), ("real4", 4), ("real8", 8), ("complex16", 16)] {
        assert!(sized(name, bytes), "{name}");
    }
}
