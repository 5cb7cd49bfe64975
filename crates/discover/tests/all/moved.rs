//! The records for cost models, for the worked examples: each distinct operation once, in the order of issue, with its
//! number of occurrences.

use crate::common;

use common::Programs;
use unisono_discover::{Discovery, Options, Pattern, Program, Rules, What};

fn moved(program: &Program, nodes: u32, rules: Rules) -> Vec<(String, u64, What)> {
    let mut discovery = Discovery::new(Options::report(nodes, rules)).unwrap();
    program.submit(&mut discovery).unwrap();
    let named = |m: unisono_discover::Moved| (discovery.task_name(m.before).to_owned(), m.count, m.what);
    discovery.moved().into_iter().map(named).collect()
}

#[test]
fn a_loop_has_one_row() {
    for steps in [3, 1000] {
        let rows = moved(&Programs::n_body(1024, steps), 16, Rules::Full);
        let [(_, count, what)] = &rows[..] else { panic!("one row, not {rows:?}") };
        assert_eq!((*count, what.pattern, what.participants.len()), (steps - 1, Some(Pattern::Allgather), 16));
        assert_eq!((what.part.least, what.part.most, what.elements), (64, 64, 15 * 1024));
        assert_eq!((what.gives.most, what.gets.least), (64, 960));
    }
}

#[test]
fn messages_are_those_of_the_pushes() {
    let rows = moved(&Programs::n_body(10, 3), 4, Rules::Off);
    let [(_, 2, what)] = &rows[..] else { panic!("one row, not {rows:?}") };
    assert_eq!((what.pattern, what.messages.len(), what.elements), (None, 12, 30));
    // 10 elements on 4 ranks are divided into parts of 3, 3, 2 and 2.
    assert_eq!(&what.messages[..4], &[(0, 1, 3), (0, 2, 3), (0, 3, 3), (1, 0, 3)]);
    assert_eq!(((what.gives.least, what.gives.most), (what.gets.least, what.gets.most)), ((6, 9), (7, 8)));
}

#[test]
fn patterns_have_the_sizes_that_algorithms_count() {
    let found = |program: &Program, nodes| {
        let rows = moved(program, nodes, Rules::Full);
        rows.into_iter().map(|(_, _, w)| (w.pattern.unwrap(), w.part.most, w.root)).collect::<Vec<_>>()
    };
    // Initial contents are not gathered.
    let patterns = found(&Programs::gather_scatter(12, 2), 4);
    assert_eq!(patterns, [(Pattern::Scatter, 3, Some(0)), (Pattern::Gather, 3, Some(0))]);
    assert_eq!(found(&Programs::all_to_all(12, 2), 4)[0], (Pattern::Alltoall, 9, None));
    let rows = moved(&Programs::stencil(12, 3), 3, Rules::Full);
    let (_, _, halo) = &rows[0];
    assert_eq!(halo.pattern, Some(Pattern::Halo));
    let pairs: Vec<(u32, u32)> = halo.messages.iter().map(|m| (m.0, m.1)).collect();
    assert_eq!(pairs, [(0, 1), (1, 0), (1, 2), (2, 1)]);
}

#[test]
fn one_node_moves_nothing() {
    assert!(moved(&Programs::n_body(64, 4), 1, Rules::Full).is_empty());
    // A discovery without a report stores no records.
    let mut alone = Discovery::new(Options::commands(4, 0, Rules::Full)).unwrap();
    Programs::n_body(64, 4).submit(&mut alone).unwrap();
    assert!(alone.moved().is_empty());
}
