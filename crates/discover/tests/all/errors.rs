//! The errors of programs: each message names task, buffer and rank.

use crate::{chain::first_difference, common};

use common::{program, task};
use unisono_base::BufferId;
use unisono_discover::{
    Access, Box3, Buffer, Discovery, Geometry, Mapper, Mode, Options, Program, Rules, Task, UserMapper, report,
};

fn refused(tasks: &[String], nodes: u32) -> String {
    let program = program(&[("A", "[64]", false), ("B", "[8,8]", true)], tasks);
    report(&program, nodes, Rules::Full).expect_err("it is wrong").to_string()
}

#[test]
fn unwritten_data() {
    let tasks =
        [task("left", "[32]", &[("A", "write", "one_to_one")]), task("read", "[64]", &[("A", "read", "one_to_one")])];
    let expected = "task 'read', buffer 'A', rank 2: it reads [32, 48), which nothing has written; give the buffer \
                    contents, or write it first";
    assert_eq!(refused(&tasks, 4), expected);
}

#[test]
fn overlapping_writes() {
    let all = task("all", "[64]", &[("A", "write", "all")]);
    let said = refused(std::slice::from_ref(&all), 4);
    assert!(
        said.starts_with("task 'all', buffer 'A', rank 1: overlapping writes: with mapper all ranks 0 and 1"),
        "{said}"
    );
    // Overlapping writes are refused on one node too. Otherwise, a program could fail only on a larger machine.
    assert!(refused(&[all], 1).contains("overlapping writes"));
    let halo = task("halo", "[64]", &[("A", "write", r#"{"kind":"neighborhood","halo":[1]}"#)]);
    assert!(refused(&[halo], 4).contains("ranks 0 and 1 both write [15, 17)"));
    let twice = [("A", "write", "one_to_one"), ("A", "write", r#"{"kind":"shift","offset":[8]}"#)];
    assert!(refused(&[task("twice", "[64]", &twice)], 4).contains("ranks 0 and 1 both write [16, 24)"));
}

#[test]
fn wrong_dimensions_and_places() {
    let cases = [
        (task("t", "[64]", &[("B", "write", "one_to_one")]), "maps a range of 1 dimensions to a buffer of 2"),
        (task("t", "[8,8]", &[("B", "read", r#"{"kind":"slice","dim":2}"#)]), "names dimension 2"),
        (task("t", "[8,8]", &[("B", "read", r#"{"kind":"transposed","perm":[1,1]}"#)]), "perm [1, 1]"),
        (task("t", "[8,8]", &[("B", "read", r#"{"kind":"row","index":8}"#)]), "row 8; the buffer has 0 to 7"),
        (task("t", "[8,8]", &[("B", "read", r#"{"kind":"neighborhood","halo":[1]}"#)]), "1 numbers"),
        (
            task("t", "[8]", &[("A", "read", r#"{"kind":"fixed","offset":[64],"extent":[2]}"#)]),
            "[64, 66), which is not there; the buffer is [0, 64)",
        ),
        (task("t", "[8]", &[("B", "read", r#"{"kind":"project","kernel_dim":0}"#)]), "a buffer of 1 dimension"),
    ];
    for (task, expected) in cases {
        let said = refused(&[task], 4);
        assert!(said.starts_with("task 't', buffer '") && said.contains(expected), "{said}");
    }
    assert!(refused(&[task("t", "[0]", &[])], 4).contains("task 't': range has 0; accepted are 1 to"));
    assert!(refused(&[task("t", "[8]", &[("C", "read", "all")])], 4).contains("buffer 'C'; declared are: A, B"));
    assert!(Program::parse(r#"{"buffers":[]}"#).expect_err("no tasks").to_string().contains("tasks"));
    let said = report(&program(&[], &[]), 0, Rules::Full).expect_err("no nodes").to_string();
    assert_eq!(said, "the number of nodes is 0; accepted are 1 to 1048576");
}

fn with_function(
    function: impl Fn(&[i64], &[i64], &[i64]) -> Result<Vec<Box3>, String> + Send + Sync + 'static,
) -> String {
    let mut discovery = Discovery::new(Options::report(4, Rules::Full)).expect("the options are sound");
    discovery.buffer(Buffer::new("A", &[64], 8, true).expect("it is sound"));
    let mapper = Mapper::User(UserMapper {
        number: 1,
        name: "mine".into(),
        function: std::sync::Arc::new(function),
        traced: std::sync::Arc::default(),
    });
    let accesses = [Access::new(BufferId(0), Mode::Read, mapper)];
    let task = Task { name: "t", geometry: Geometry::of(&[64]), accesses: &accesses };
    let wrong = discovery.submit(&task).map_or_else(|e| e.to_string(), |_| String::new());
    // A refused task changes nothing.
    assert!(wrong.is_empty() || discovery.submit(&Task { accesses: &[], ..task }).is_ok_and(|id| id.0 == 0));
    wrong
}

#[test]
fn functions_of_the_users() {
    let line = |a, b| Ok(vec![Box3 { min: [a, 0, 0], max: [b, 1, 1] }]);
    assert_eq!(with_function(move |low, high, _| line(low[0] - 5, high[0] + 5)), "");
    let said = with_function(move |low, high, shape| line(low[0] + shape[0], high[0] + shape[0]));
    assert_eq!(
        said,
        "task 't', buffer 'A': mapper 'mine' maps chunk [0, 64) to [64, 128), which is not there; the buffer is [0, 64)"
    );
    let said = with_function(move |_, high, _| if high[0] == 64 { line(0, 20) } else { line(0, 30) });
    assert!(said.starts_with("task 't', buffer 'A', rank 0: its mapper is not monotone: chunk [0, 16)"), "{said}");
    let said = with_function(|low, _, _| if low[0] == 32 { Err("no".to_owned()) } else { Ok(Vec::new()) });
    assert!(said.starts_with("task 't', buffer 'A', rank 2: mapper 'mine' for chunk [32, 48): no"), "{said}");
}

#[test]
fn ranks_that_diverge_are_found() {
    let run = |odd: i64| {
        let mut discovery = Discovery::new(Options::commands(2, 0, Rules::Full)).expect("the options are sound");
        let a = discovery.buffer(Buffer::new("A", &[64], 8, true).expect("it is sound"));
        for k in 0..20 {
            let size = if k == odd { 32 } else { 64 };
            let accesses = [Access::new(a, Mode::Write, Mapper::OneToOne)];
            let task = Task { name: "t", geometry: Geometry::of(&[size]), accesses: &accesses };
            discovery.submit(&task).expect("it is sound");
        }
        discovery
    };
    // Buffers are submissions too: the seventh task is submission 7.
    assert_eq!(first_difference(run(6).chain(), run(-1).chain()), Some(7));
    assert_eq!(first_difference(run(6).chain(), run(6).chain()), None);
    assert_eq!(run(6).submission(7), "task 't'");
    assert_eq!(run(6).submission(0), "buffer 'A'");
    assert_eq!(run(6).submission(99), "nothing");
}
