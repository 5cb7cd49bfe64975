//! Tests of `decision`.

use unisono_collective::{Choice, DecisionTable, Kind, OperatorClass, Row};

fn row(ranks: u32, class: OperatorClass, first_bytes: u64, last_bytes: u64) -> Row {
    Row { kind: Kind::Allreduce, ranks, per_node: None, class, first_bytes, last_bytes, choice: Choice::Library }
}

#[test]
fn calls_find_their_row() {
    use OperatorClass::{Commutative, Ordered};
    let rows = vec![row(4, Commutative, 0, 64), row(4, Ordered, 0, 4096), row(4, Commutative, 128, u64::MAX)];
    let table = DecisionTable::new(rows).unwrap();
    let find = |bytes, class| table.find(Kind::Allreduce, 4, Some(4), bytes, class).map(|r| table.rows()[r].last_bytes);
    assert_eq!(find(64, Commutative), Some(64));
    assert_eq!(find(65, Commutative), Some(4096), "rows for any operator serve one that commutes");
    assert_eq!(find(1 << 40, Commutative), Some(u64::MAX));
    assert_eq!(find(1 << 40, Ordered), None);
    assert_eq!(table.find(Kind::Allreduce, 5, None, 8, Commutative), None);
    assert_eq!(table.find(Kind::Reduce, 4, None, 8, Commutative), None);
}

#[test]
fn ranks_per_node_are_a_dimension() {
    use OperatorClass::{Commutative, Ordered};
    let on = |per_node, class, last_bytes| Row { per_node, ..row(96, class, 0, last_bytes) };
    let rows = vec![on(None, Commutative, 9), on(Some(48), Commutative, 5), on(Some(1), Ordered, 7)];
    let table = DecisionTable::new(rows).unwrap();
    let find = |per_node, bytes| {
        let row = table.find(Kind::Allreduce, 96, per_node, bytes, Commutative);
        row.map(|r| (table.rows()[r].per_node, table.rows()[r].last_bytes))
    };
    assert_eq!(find(Some(48), 5), Some((Some(48), 5)));
    assert_eq!(find(Some(48), 6), Some((None, 9)), "beyond its bytes the rows for any serve");
    assert_eq!(find(Some(1), 6), Some((Some(1), 7)), "a row for these ranks per node comes first, in any class");
    assert_eq!(find(Some(47), 5), Some((None, 9)));
    assert_eq!(find(None, 5), Some((None, 9)));
    assert_eq!(table.rows()[2].to_string(), "allreduce on 96 ranks, 48 a node, 0 to 5 bytes");
    for wrong in [0, 97] {
        DecisionTable::new(vec![on(Some(wrong), Commutative, 9)]).unwrap_err();
    }
}

#[test]
fn wrong_tables_are_named() {
    use OperatorClass::{Commutative, None};
    let e = DecisionTable::new(vec![row(4, Commutative, 0, 64), row(4, Commutative, 64, 65)]).unwrap_err();
    assert_eq!(
        e.to_string(),
        "two rows serve the same calls: allreduce on 4 ranks, 0 to 64 bytes, and allreduce on 4 ranks, 64 to 65 bytes"
    );
    for wrong in [row(4, Commutative, 2, 1), row(4, None, 0, 1), row(0, Commutative, 0, 1)] {
        DecisionTable::new(vec![wrong]).unwrap_err();
    }
}
