//! The worked examples of the paper: N-body (listing 1, Figs. 1 and 2) and the five programs of Table 3.

use crate::common;

use common::{NODES, Programs, commands_of, patterns, program, report_of, task};
use unisono_discover::{Pattern, Rules};

const RULES: [Rules; 2] = [Rules::Paper, Rules::Full];

#[test]
fn n_body_has_one_all_gather_a_step_and_no_push() {
    for nodes in NODES {
        for rules in RULES {
            let steps = 5;
            let report = report_of(&Programs::n_body(64, steps), nodes, rules);
            let gathers = if nodes > 1 { steps - 1 } else { 0 };
            assert_eq!(report.messages.p2p, 0, "{nodes} {rules:?}");
            assert_eq!(report.messages.collective, gathers);
            assert_eq!(report.forwards.len() as u64, steps - 1);
            for forward in &report.forwards {
                assert_eq!(forward.collective, (nodes > 1).then_some(Pattern::Allgather));
                assert_eq!((&forward.after_task[..], &forward.before_task[..]), ("update_p", "time_step"));
                assert_eq!((&forward.buffer[..], &forward.region), ("P", &vec![vec![vec![0], vec![64]]]));
            }
        }
    }
}

/// Fig. 1: before every step except the first, each of M nodes issues M - 1 pushes and one awaited push.
#[test]
fn n_body_point_to_point_pushes_to_all() {
    for nodes in NODES {
        let report = report_of(&Programs::n_body(64, 3), nodes, Rules::Off);
        assert_eq!(report.messages.p2p, 2 * u64::from(nodes) * u64::from(nodes - 1));
        assert_eq!(report.messages.collective, 0);
        for rank in 0..nodes {
            let text = commands_of(&Programs::n_body(64, 2), nodes, rank, Rules::Off);
            assert_eq!(text.iter().filter(|c| c.starts_with("push")).count() as u32, nodes - 1);
            assert_eq!(text.iter().filter(|c| c.starts_with("await")).count(), usize::from(nodes > 1));
        }
    }
}

#[test]
fn table_3_patterns() {
    use Pattern::{Allgather, Alltoall, Broadcast, Gather, Scatter};
    let cases: [(_, _, &[Pattern]); 4] = [
        ("all-gather", Programs::all_gather(64, 4), &[Allgather, Allgather, Allgather]),
        ("gather-scatter", Programs::gather_scatter(64, 2), &[Scatter, Gather, Scatter]),
        ("gather-bcast", Programs::gather_bcast(64, 2), &[Broadcast, Gather, Broadcast]),
        ("all-to-all", Programs::all_to_all(64, 3), &[Alltoall, Alltoall]),
    ];
    for (name, program, expected) in cases {
        for nodes in NODES {
            for rules in RULES {
                let report = report_of(&program, nodes, rules);
                let expected = if nodes > 1 { expected } else { &[] };
                assert_eq!(patterns(&report), expected, "{name} on {nodes}, {rules:?}");
                assert_eq!(report.messages.p2p, 0, "{name} on {nodes}, {rules:?}");
                assert_eq!(report.messages.collective as usize, expected.len());
            }
        }
    }
}

#[test]
fn a_stencil_has_no_collective() {
    for nodes in NODES {
        for rules in RULES {
            let steps = 4;
            let report = report_of(&Programs::stencil(64, steps), nodes, rules);
            assert_eq!(report.messages.collective, 0);
            // The first step reads initial contents, without messages. In all other steps, each pair of neighbors
            // exchanges a row in both directions.
            assert_eq!(report.messages.p2p, (steps - 1) * 2 * u64::from(nodes - 1), "{nodes} {rules:?}");
            let found = patterns(&report);
            if rules == Rules::Full && nodes > 1 {
                assert_eq!(found, [Pattern::Halo].repeat(steps as usize - 1));
            } else {
                assert!(found.is_empty());
            }
        }
    }
}

#[test]
fn every_rank_issues_the_same_operations_in_the_same_order() {
    let programs = [
        Programs::n_body(64, 4),
        Programs::all_gather(64, 3),
        Programs::gather_scatter(64, 3),
        Programs::gather_bcast(64, 3),
        Programs::all_to_all(64, 3),
        Programs::stencil(64, 3),
        Programs::eight_producers(64),
    ];
    for program in &programs {
        for nodes in NODES {
            for rules in RULES {
                let first = common::order_of(program, nodes, 0, rules);
                for rank in 1..nodes {
                    assert_eq!(common::order_of(program, nodes, rank, rules), first);
                }
            }
        }
    }
}

/// A product of an array with itself reads the array twice with equal mappers, which need no more data than one read.
#[test]
fn a_buffer_that_is_read_twice_alike_stays_where_it_is() {
    let product = [("A", "read", "one_to_one"), ("A", "read", "one_to_one"), ("B", "write", "one_to_one")];
    let tasks = [task("fill", "[64]", &[("A", "write", "one_to_one")]), task("square", "[64]", &product)];
    let program = program(&[("A", "[64]", false), ("B", "[64]", false)], &tasks);
    for nodes in NODES {
        let report = report_of(&program, nodes, Rules::Full);
        assert!(report.forwards.is_empty(), "{nodes}");
        assert_eq!((report.messages.p2p, report.messages.collective), (0, 0));
    }
}
