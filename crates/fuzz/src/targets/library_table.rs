//! The selection table of an MPICH library, which is used to write tuning files.

use unisono_collective::{Choice, DecisionTable, Kind, OperatorClass, Row};
use unisono_tables::{LibraryTable, TUNINGS};

use crate::FuzzTarget;

pub const TARGET: FuzzTarget =
    FuzzTarget::new("library-table", "reads the selection table of MPICH, and writes tuning files with it", run);

fn run(input: &[u8]) -> bool {
    let Ok(library) = LibraryTable::read(input) else { return false };
    let row = |kind, class, name: &str| Row {
        kind,
        ranks: 4,
        per_node: None,
        class,
        first_bytes: 0,
        last_bytes: 1023,
        choice: Choice::Algorithm { name: name.to_owned(), params: Vec::new() },
    };
    let rows = vec![
        row(Kind::Allreduce, OperatorClass::Commutative, "recursive-doubling"),
        row(Kind::Broadcast, OperatorClass::None, "binomial"),
        row(Kind::Allgather, OperatorClass::None, "ring"),
    ];
    let table = DecisionTable::new(rows).expect("the rows do not overlap");
    TUNINGS.iter().for_each(|tuning| drop((tuning.write)(&table, Some(&library))));
    true
}
