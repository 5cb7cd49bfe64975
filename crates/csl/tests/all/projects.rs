//! Emitted projects obey the rules, have right results even if PEs and routers are held up, and stay small.

use crate::{common, interpreter};

use common::*;
use proptest::prelude::*;
use unisono_lower::wafer::End;

#[test]
fn chains() {
    for n in [2, 3, 4, 7, 512] {
        right(&chain(n, 256));
    }
}

#[test]
fn a_long_chain_has_the_files_of_a_short_one() {
    let (short, long) = (emit(&chain(6, 256)), emit(&chain(512, 256)));
    assert_eq!(short.len(), long.len());
    assert!(text(&long, "layout.csl").len() < text(&short, "layout.csl").len() + 400);
}

#[test]
fn stars() {
    for n in [2, 3, 8, 40] {
        right(&star(n, 16));
    }
}

#[test]
fn trees_with_controls() {
    // The trees have at least three levels: only then does a stream pass a router that has already received on the
    // stream's color.
    for parents in [vec![0, 1, 2, 0], vec![0, 1, 2, 0, 4, 5, 4, 0], vec![0, 1, 2, 3, 4, 2, 1, 0]] {
        let program = tree_row(&parents, 64);
        right(&program);
        let files = emit(&program.without_controls());
        let run = || interpreter::run(&files, &inputs(&program.collective));
        assert!(std::panic::catch_unwind(run).is_err(), "a forgotten control wavelet stalls");
    }
}

#[test]
fn floods() {
    for (rows, cols) in [(1, 2), (1, 9), (6, 1), (4, 5)] {
        right(&flood(rows, cols, 32));
    }
}

#[test]
fn grids() {
    for allreduce in [false, true] {
        right(&grid_reduce(&[0, 1, 1, 0], &[0, 0, 2], 32, allreduce));
        right(&grid_reduce(&chain_parents(7), &chain_parents(5), 32, allreduce));
        right(&grid_reduce(&[0, 1], &[], 8, allreduce));
    }
}

#[test]
fn threads_that_wait() {
    let files = right(&two_sides(100));
    let root = files.iter().find(|f| f.1.contains("thread_1")).unwrap();
    assert!(root.1.contains("waiting_0"));
}

#[test]
fn the_whole_wafer_is_a_small_project() {
    let (rows, cols) = if crate::soak::is_on() { (750, 994) } else { (75, 99) };
    let program = grid_reduce(&chain_parents(rows), &chain_parents(cols), 8, true);
    let files = emit(&program);
    let bytes: usize = files.iter().map(|f| f.1.len()).sum();
    assert!(bytes < 40_000, "{bytes} bytes");
}

/// A relay moves more elements than one vector operation can, in several parts.
#[test]
fn long_relays_are_split() {
    use unisono_collective::Kind;
    use unisono_lower::wafer::{PeProgram, Port};
    use unisono_machine::Grid;
    let long = 5 * 9_000;
    let ends = |sources: &[End], sink| -> Vec<_> { (0..5).map(|_| step(9_000, sources, sink)).collect() };
    let mut relay = step(long, &[End::Fabric(0)], End::Fabric(1));
    relay.0.advance = Some(1);
    let pes = vec![
        PeProgram {
            routes: vec![route(0, &[at(Port::Ramp, &[Port::East])])],
            threads: vec![ends(&[End::In(0)], End::Fabric(0))],
            ..PeProgram::default()
        },
        PeProgram {
            routes: vec![
                route(0, &[at(Port::West, &[Port::Ramp])]),
                route(1, &[at(Port::Ramp, &[Port::East]), at(Port::Ramp, &[Port::East])]),
            ],
            threads: vec![vec![relay]],
            ..PeProgram::default()
        },
        PeProgram {
            routes: vec![route(1, &[at(Port::West, &[Port::Ramp])])],
            threads: vec![ends(&[End::Fabric(1)], End::Out(0))],
            ..PeProgram::default()
        },
    ];
    let c = unisono_collective::Collective::new(
        Kind::Message,
        3,
        9_000,
        2,
        unisono_collective::Operator::Sum,
        unisono_collective::Dtype::F32,
    )
    .unwrap();
    let program = unisono_lower::wafer::WaferProgram::assemble(Grid::new(1, 3), c, vec![], pes);
    right(&program);
}

#[test]
fn snapshot_of_a_small_project() {
    let files = right(&tree_row(&[0, 1, 2, 0], 4));
    let all: String = files.iter().map(|(name, text)| format!("=== {name}\n{text}")).collect();
    assert_eq!(all.trim_end(), include_str!("projects/tree_of_five.txt").trim_end());
    let files = right(&two_sides(4));
    let root = files.iter().find(|f| f.1.contains("thread_1")).unwrap();
    assert_eq!(root.1.trim_end(), include_str!("projects/two_threads.txt").trim_end());
}

/// Parents of a random pre-order tree on a line: each PE's parent is on the path from the previous PE to the root.
fn pre_order(most: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(any::<u32>(), 1..most).prop_map(|choices| {
        let mut parents: Vec<usize> = Vec::new();
        for (v, choice) in choices.into_iter().enumerate() {
            // The parent of PE v + 1 is PE v or one of its ancestors.
            let mut way = vec![v];
            while let Some(&up) = way.last().filter(|&&u| u > 0) {
                way.push(parents[up - 1]);
            }
            parents.push(way[choice as usize % way.len()]);
        }
        parents
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::soak::cases(300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_tree_on_a_line(parents in pre_order(24), elements in 1u32..300) {
        right(&tree_row(&parents, elements));
    }

    #[test]
    fn any_trees_on_a_grid(x in pre_order(7), y in pre_order(7), elements in 1u32..40, allreduce: bool) {
        right(&grid_reduce(&x, &y, elements, allreduce));
    }
}
