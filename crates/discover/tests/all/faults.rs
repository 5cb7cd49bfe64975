//! The faults A to H of the authors' branch, from `papers/discovery/errata.md`. Each test fails with the branch's
//! behavior.

use crate::common;

use common::{NODES, Programs, commands_of, order_of, patterns, program, report_of, run, task};
use unisono_discover::{Options, Pattern, Program, Rules};

const RULES: [Rules; 2] = [Rules::Paper, Rules::Full];

fn write(buffer: &str) -> String {
    task("write", "[64]", &[(buffer, "write", "one_to_one")])
}

/// A: forwards of many producers are in ascending order of producers on every rank, even after unequal histories.
#[test]
fn a_many_producers_have_one_order() {
    for rules in RULES {
        for nodes in [2, 3, 8] {
            let (first, groups) = order_of(&Programs::eight_producers(64), nodes, 0, rules);
            let report = report_of(&Programs::eight_producers(64), nodes, rules);
            let producers: Vec<u32> = report.forwards.iter().map(|f| f.after_index).collect();
            assert_eq!(producers, (0..8).collect::<Vec<_>>());
            assert!(groups.is_sorted());
            for rank in 1..nodes {
                // Earlier programs on a rank must not influence the order.
                for _ in 0..rank {
                    run(&Programs::gather_scatter(64, 2), nodes, rank, rules);
                }
                assert_eq!(
                    order_of(&Programs::eight_producers(64), nodes, rank, rules),
                    (first.clone(), groups.clone())
                );
            }
        }
    }
}

/// B: after a gather, ranks still have the data that they wrote: the next reader of the same parts needs no message.
#[test]
fn b_a_gather_takes_nothing_away() {
    let one = task("one", "[1]", &[("A", "read", "all")]);
    let tasks = [write("A"), one, task("many", "[64]", &[("A", "read", "one_to_one"), ("B", "write", "one_to_one")])];
    let program = program(&[("A", "[64]", false), ("B", "[64]", false)], &tasks);
    for rules in RULES {
        for nodes in NODES.into_iter().filter(|&n| n > 1) {
            let report = report_of(&program, nodes, rules);
            assert_eq!(patterns(&report), [Pattern::Gather]);
            assert_eq!((report.messages.p2p, report.messages.collective), (0, 1));
        }
        // One gather is the only communication; the branch pushes three times here.
        assert_eq!(report_of(&program, 4, Rules::Off).messages.p2p, 3);
    }
}

/// C: a writer stays known after any number of other tasks.
#[test]
fn c_unrelated_tasks_hide_no_producer() {
    let unrelated: Vec<String> = (0..100).map(|_| write("B")).collect();
    let tasks = [vec![write("A")], unrelated, vec![task("read", "[64]", &[("A", "read", "all")])]].concat();
    let program = program(&[("A", "[64]", false), ("B", "[64]", false)], &tasks);
    for rules in RULES {
        let report = report_of(&program, 4, rules);
        assert_eq!(patterns(&report), [Pattern::Allgather]);
        assert_eq!(report.messages.p2p, 0);
    }
}

fn stencil_then_all(between: usize) -> Program {
    let relax = task("relax", "[64]", &[("A", "read", r#"{"kind":"neighborhood","halo":[1]}"#)]);
    let unrelated: Vec<String> = (0..between).map(|_| write("B")).collect();
    let all = task("all", "[64]", &[("A", "read", "all")]);
    let tasks = [vec![write("A"), relax], unrelated, vec![all]].concat();
    program(&[("A", "[64]", false), ("B", "[64]", false)], &tasks)
}

/// D: a forward without communication does not hide the writer from later readers. The paper's rules push 24 times on 4
/// nodes. The full rules find the later reader and need one all-gather. If that reader is outside the window, they need
/// 6 pushes of a halo and one collective.
#[test]
fn d_a_vanished_forward_hides_no_producer() {
    let paper = report_of(&stencil_then_all(0), 4, Rules::Paper);
    assert_eq!(patterns(&paper), []);
    assert_eq!(paper.messages.collective, 0);
    assert!(paper.messages.p2p > 6);
    let seen = report_of(&stencil_then_all(0), 4, Rules::Full);
    assert_eq!(patterns(&seen), [Pattern::Allgather, Pattern::Allgather]);
    assert_eq!(seen.forwards[0].group, seen.forwards[1].group);
    assert_eq!((seen.messages.p2p, seen.messages.collective), (0, 1));
    let unseen = report_of(&stencil_then_all(Options::WINDOW + 1), 4, Rules::Full);
    assert_eq!(patterns(&unseen), [Pattern::Halo, Pattern::Alltoall]);
    assert_eq!((unseen.messages.p2p, unseen.messages.collective), (6, 1));
    for nodes in NODES {
        let point_to_point = report_of(&stencil_then_all(0), nodes, Rules::Off).messages.p2p_bytes;
        for between in [0, Options::WINDOW + 1] {
            let messages = report_of(&stencil_then_all(between), nodes, Rules::Full).messages;
            assert_eq!(messages.p2p_bytes + messages.collective_bytes, point_to_point);
        }
    }
}

/// E: equal transpositions need no communication.
#[test]
fn e_transposed_to_transposed_is_free() {
    let turned = r#"{"kind":"transposed","perm":[1,0]}"#;
    let tasks =
        [task("write", "[16,16]", &[("A", "write", turned)]), task("read", "[16,16]", &[("A", "read", turned)])];
    let program = program(&[("A", "[16,16]", false)], &tasks);
    for rules in RULES {
        for nodes in NODES {
            let report = report_of(&program, nodes, rules);
            assert_eq!(report.forwards, []);
            assert_eq!((report.messages.p2p, report.messages.collective), (0, 0));
        }
    }
}

/// F: ranks without a chunk participate in collectives of all ranks, and contribute nothing.
#[test]
fn f_fewer_chunks_than_ranks() {
    let few = |name: &str, accesses: &[(&str, &str, &str)]| {
        task(name, "[64]", accesses).replace(r#""accesses""#, r#""granularity":[32],"accesses""#)
    };
    let readers = [
        (task("one", "[1]", &[("A", "read", "all")]), Pattern::Gather),
        (task("all", "[64]", &[("A", "read", "all")]), Pattern::Allgather),
    ];
    for (reader, pattern) in readers {
        let tasks = [few("few", &[("A", "write", "one_to_one")]), reader];
        let program = program(&[("A", "[64]", false)], &tasks);
        for rules in RULES {
            let report = report_of(&program, 8, rules);
            assert_eq!(patterns(&report), [pattern]);
            let first = order_of(&program, 8, 0, rules);
            for rank in 1..8 {
                let own = order_of(&program, 8, rank, rules);
                assert_eq!(own.0, first.0);
                let takes_part = pattern == Pattern::Allgather || rules == Rules::Paper || rank < 2;
                assert_eq!(own.1.len(), usize::from(takes_part), "rank {rank}");
            }
        }
    }
    let turned = r#"{"kind":"transposed","perm":[1,0]}"#;
    let wide = |name: &str, accesses: &[(&str, &str, &str)]| {
        task(name, "[64,64]", accesses).replace(r#""accesses""#, r#""granularity":[32,1],"accesses""#)
    };
    let tasks = [wide("few", &[("A", "write", "one_to_one")]), task("turn", "[64,64]", &[("A", "read", turned)])];
    let program = program(&[("A", "[64,64]", false)], &tasks);
    for rules in RULES {
        let report = report_of(&program, 8, rules);
        assert_eq!(patterns(&report), [Pattern::Alltoall]);
        for rank in 0..8 {
            assert_eq!(order_of(&program, 8, rank, rules).1.len(), 1);
        }
    }
}

/// G: an access affects only its own buffer, byte counts do not overflow, and the paper's rules do not use a scatter
/// for overlapping parts.
#[test]
fn g_buffers_bytes_and_overlaps() {
    let mixed = [
        task("p", "[64]", &[("A", "read", "all"), ("B", "write", "one_to_one")]),
        task("c", "[64]", &[("A", "read", "all"), ("B", "read", "one_to_one")]),
    ];
    let program_mixed = program(&[("A", "[64]", true), ("B", "[64]", false)], &mixed);
    for rules in RULES {
        assert_eq!(report_of(&program_mixed, 4, rules).forwards, []);
    }

    let n: u64 = 1 << 34;
    let range = format!("[{n}]");
    let large = [task("p", &range, &[("A", "write", "one_to_one")]), task("c", &range, &[("A", "read", "all")])];
    let program_large = program(&[("A", &range, false)], &large);
    for rules in RULES {
        assert_eq!(report_of(&program_large, 4, rules).messages.collective_bytes, 3 * 8 * n);
    }

    let overlapping = [
        task("one", "[1]", &[("A", "write", "all")]),
        task("many", "[64]", &[("A", "read", r#"{"kind":"neighborhood","halo":[2]}"#)]),
    ];
    let program_overlapping = program(&[("A", "[64]", false)], &overlapping);
    let paper = report_of(&program_overlapping, 4, Rules::Paper);
    assert_eq!((patterns(&paper), paper.messages.p2p), (vec![], 3));
    // The full rules send each part, of 16 elements plus the overlap, separately.
    let full = report_of(&program_overlapping, 4, Rules::Full);
    assert_eq!(patterns(&full), [Pattern::Scatter]);
    assert_eq!(full.messages.collective_bytes, 8 * (20 + 20 + 18));
    let commands = commands_of(&program_overlapping, 4, 2, Rules::Full);
    assert_eq!(commands.iter().filter(|c| c.starts_with("scatter")).count(), 1);
}

/// H: several producers of one read share one operation.
#[test]
fn h_producers_of_one_read_are_fused() {
    for nodes in [2, 4, 8] {
        let full = report_of(&Programs::eight_producers(64), nodes, Rules::Full);
        assert_eq!(patterns(&full), [Pattern::Allgather; 8]);
        assert!(full.forwards.iter().all(|f| f.group == Some(0)));
        assert_eq!((full.messages.p2p, full.messages.collective), (0, 1));
        let paper = report_of(&Programs::eight_producers(64), nodes, Rules::Paper);
        assert_eq!((patterns(&paper), paper.messages.collective), (vec![Pattern::Allgather; 8], 8));
    }
}
