//! Tests of `mpich_table`.

use std::collections::BTreeSet;

use unisono_tables::{LibraryTable, internals::mpich_table::Tree};

#[test]
fn a_table_prints_and_parses_back() {
    let text =
        r#"{"collective=bcast":{"avg_msg_size<=8":{"algorithm=M_A":{"k=2":{}}},"x=any":{"algorithm=MPIR_B":{}}}}"#;
    let tree = Tree::parse(text).unwrap();
    assert_eq!(Tree::parse(&tree.print()).unwrap(), tree);
    let mut names = BTreeSet::new();
    tree.names(&mut names);
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["MPIR_B", "M_A"]);
    assert_eq!(
        LibraryTable::read(text.as_bytes()).unwrap_err(),
        "the table lacks collective=allreduce: it is not complete, and MPICH would abort"
    );
}

#[test]
fn wrong_tables_are_named_by_line() {
    for (text, says) in [
        ("", "line 1: '{' is expected, found the end"),
        ("{\n\"a\":{},\n}", "line 3: '\"' is expected, found '}'"),
        ("{\"a\" {}}", "line 1: ':' is expected, found '{'"),
        ("{\"a\":{},\"a\":{}}", "line 1: \"a\" once is expected, found '{'"),
        ("{} x", "line 1: the end is expected, found 'x'"),
        ("{\"a\\n\":{}}", "line 1: '\"' is expected, found '\\'"),
    ] {
        assert_eq!(Tree::parse(text).unwrap_err(), says);
    }
    assert!(Tree::parse(&"{\"a\":".repeat(100_000)).unwrap_err().contains("64 levels"));
    let levels = |count: usize| Tree::parse(&format!("{}{{}}{}", "{\"a\":".repeat(count - 1), "}".repeat(count - 1)));
    assert!((1..=64).all(|count| levels(count).is_ok()) && levels(65).unwrap_err().contains("64 levels"));
    assert!(LibraryTable::read(b"\x7fELF....").is_err());
    assert!(LibraryTable::read(b"\xff\xfe").is_err());
}
