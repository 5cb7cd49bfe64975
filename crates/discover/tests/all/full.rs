//! The patterns that the full rules find and the paper's rules do not.

use crate::common;

use common::{NODES, patterns, program, report_of, task};
use unisono_discover::{Pattern, Program, Rules};

fn write(buffer: &str) -> String {
    task("write", "[64]", &[(buffer, "write", "one_to_one")])
}

fn fixed(offset: i64, extent: i64) -> String {
    format!(r#"{{"kind":"fixed","offset":[{offset}],"extent":[{extent}]}}"#)
}

/// A gather followed by an all-gather is one all-gather, listed for both readers.
#[test]
fn look_ahead_takes_the_larger_collective() {
    let tasks = [
        write("A"),
        task("one", "[1]", &[("A", "read", "all")]),
        task("all", "[64]", &[("A", "read", "all"), ("B", "write", "one_to_one")]),
    ];
    let program = program(&[("A", "[64]", false), ("B", "[64]", false)], &tasks);
    for nodes in NODES.into_iter().filter(|&n| n > 1) {
        let report = report_of(&program, nodes, Rules::Full);
        assert_eq!(patterns(&report), [Pattern::Allgather, Pattern::Allgather]);
        assert!(report.forwards.iter().all(|f| f.group == Some(0)));
        let readers: Vec<&str> = report.forwards.iter().map(|f| &f.before_task[..]).collect();
        assert_eq!(readers, ["one", "all"]);
        assert_eq!((report.messages.p2p, report.messages.collective), (0, 1));
    }
}

#[test]
fn look_ahead_stops_at_a_write() {
    let all = task("all", "[64]", &[("A", "read", "all")]);
    let tasks = [write("A"), task("one", "[1]", &[("A", "read", "all")]), write("A"), all];
    let report = report_of(&program(&[("A", "[64]", false)], &tasks), 4, Rules::Full);
    assert_eq!(patterns(&report), [Pattern::Gather, Pattern::Allgather]);
    assert_eq!(report.messages.collective, 2);
}

fn reduction(reader: &str, range: &str) -> Program {
    let tasks = [
        task("sum", "[64]", &[("A", "read", "one_to_one"), ("S", "reduce", "all")]),
        task("use", range, &[("S", "read", reader)]),
    ];
    program(&[("A", "[64]", true), ("S", "[64]", false)], &tasks)
}

#[test]
fn readers_decide_the_reduction() {
    let cases = [
        ("all", "[1]", Pattern::Reduce),
        ("all", "[64]", Pattern::Allreduce),
        ("one_to_one", "[64]", Pattern::ReduceScatter),
    ];
    for (reader, range, pattern) in cases {
        for nodes in NODES.into_iter().filter(|&n| n > 1) {
            let report = report_of(&reduction(reader, range), nodes, Rules::Full);
            assert_eq!(patterns(&report), [pattern], "{nodes}");
            assert_eq!((report.messages.p2p, report.messages.collective), (0, 1));
        }
        let alone = report_of(&reduction(reader, range), 1, Rules::Full);
        assert_eq!((patterns(&alone), alone.messages.collective), (vec![], 0));
    }
    // For overlapping readers, each point goes to one reader, which pushes shared points to its neighbor.
    let report = report_of(&reduction(r#"{"kind":"neighborhood","halo":[1]}"#, "[64]"), 4, Rules::Full);
    assert_eq!(patterns(&report)[0], Pattern::ReduceScatter);
    assert_eq!((report.messages.p2p, report.messages.collective), (3 + 3 - 3, 1));
}

#[test]
fn look_ahead_makes_an_allreduce() {
    let tasks = [
        task("sum", "[64]", &[("S", "reduce", "all")]),
        task("one", "[1]", &[("S", "read", "all")]),
        task("all", "[64]", &[("S", "read", "all")]),
    ];
    let report = report_of(&program(&[("S", "[1]", false)], &tasks), 4, Rules::Full);
    assert_eq!(patterns(&report), [Pattern::Allreduce, Pattern::Allreduce]);
    assert_eq!((report.messages.p2p, report.messages.collective), (0, 1));
}

/// Power iteration: y = A x by rows, a norm, a new x. It needs no pushes.
#[test]
fn power_iteration() {
    let slice = r#"{"kind":"project","kernel_dim":0}"#;
    let step = [
        task("multiply", "[64,64]", &[("M", "read", "one_to_one"), ("X", "read", "all"), ("Y", "write", slice)]),
        task("norm", "[64]", &[("Y", "read", "one_to_one"), ("N", "reduce", "all")]),
        task("scale", "[64]", &[("N", "read", "all"), ("Y", "read", "one_to_one"), ("X", "write", "one_to_one")]),
    ];
    let buffers = [("M", "[64,64]", true), ("X", "[64]", true), ("Y", "[64]", false), ("N", "[1]", false)];
    let steps = [&step[..]; 3].concat();
    let report = report_of(&program(&buffers, &steps), 4, Rules::Full);
    let expected = [Pattern::Allreduce, Pattern::Allgather, Pattern::Allreduce, Pattern::Allgather, Pattern::Allreduce];
    assert_eq!(patterns(&report), expected);
    assert_eq!(report.messages.p2p, 0);
}

#[test]
fn a_collective_is_among_the_ranks_that_read() {
    let few = task("few", "[3]", &[("A", "read", "all")]);
    let producer = task("write", "[64]", &[("A", "write", "one_to_one")]);
    let report = report_of(&program(&[("A", "[64]", false)], &[producer, few]), 8, Rules::Full);
    assert_eq!(report.messages.collective_bytes, 8 * 3 * (64 - 8));
    assert_eq!(report.messages.p2p, 0);
}

/// A row that one rank owns and all ranks read is a broadcast, not an all-gather; the rest of the buffer does not move.
#[test]
fn part_that_all_read_is_decided_apart() {
    let both = task("read", "[64]", &[("A", "read", "one_to_one"), ("A", "read", &fixed(20, 4))]);
    let report = report_of(&program(&[("A", "[64]", false)], &[write("A"), both]), 4, Rules::Full);
    assert_eq!(patterns(&report), [Pattern::Broadcast]);
    assert_eq!(report.forwards[0].region, [[vec![20], vec![24]]]);
    assert_eq!(report.messages.collective_bytes, 8 * 3 * 4);
}

/// Neighbors in a grid of tiles include the corners.
#[test]
fn halo_of_tiles() {
    let tiled = |name: &str, accesses: &[(&str, &str, &str)]| {
        task(name, "[64,64]", accesses).replace(r#""accesses""#, r#""split":"2d","accesses""#)
    };
    let tasks = [
        tiled("write", &[("A", "write", "one_to_one")]),
        tiled("relax", &[("A", "read", r#"{"kind":"neighborhood","halo":[1,1]}"#)]),
    ];
    let program = program(&[("A", "[64,64]", false)], &tasks);
    let report = report_of(&program, 4, Rules::Full);
    assert_eq!(patterns(&report), [Pattern::Halo]);
    // Each of four tiles borders on the three others.
    assert_eq!((report.messages.p2p, report.messages.collective), (12, 0));
    let report = report_of(&program, 64, Rules::Full);
    assert_eq!(report.messages.p2p, 2 * (2 * 8 * 7) + 4 * 7 * 7);
    // The paper's rules find no pattern here and push the same data.
    let paper = report_of(&program, 64, Rules::Paper);
    assert_eq!((patterns(&paper), paper.messages.p2p), (vec![], report.messages.p2p));
}

#[test]
fn a_wide_halo_is_no_neighbor_pattern() {
    let wide = task("relax", "[64]", &[("A", "read", r#"{"kind":"neighborhood","halo":[17]}"#)]);
    let report = report_of(&program(&[("A", "[64]", false)], &[write("A"), wide]), 4, Rules::Full);
    assert_eq!(patterns(&report), []);
    assert_eq!(report.forwards.len(), 1);
    assert_eq!(report.messages.p2p, 2 * (3 + 2));
}

#[test]
fn long_lived_data_moves_once() {
    let all = task("all", "[64]", &[("A", "read", "all"), ("B", "write", "one_to_one")]);
    let tasks = [vec![write("A")], vec![all; 50]].concat();
    let report = report_of(&program(&[("A", "[64]", false), ("B", "[64]", false)], &tasks), 8, Rules::Full);
    assert_eq!(patterns(&report), [Pattern::Allgather]);
    assert_eq!(report.messages.p2p, 0);
}
