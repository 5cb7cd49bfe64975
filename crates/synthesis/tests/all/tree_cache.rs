//! Tests of `tree_cache`.

use std::sync::Arc as Shared;

use unisono_synthesis::{
    Arc, Graph,
    internals::{
        symmetry::Symmetry,
        tree_cache::{MOST_EDGES, PACKINGS, growth, packing},
    },
};

fn line(ranks: u32, rate: u64) -> Graph {
    let arcs = (1..ranks).flat_map(|r| [(r - 1, r), (r, r - 1)]);
    // Only the ratio of the first link to all others depends on `rate`, because graphs divide rates by a common factor.
    Graph::new(ranks, ranks, arcs.map(|(from, to)| Arc { from, to, rate: if from + to == 1 { 2 * rate } else { 1 } }))
}

#[test]
fn equal_questions_get_one_packing_and_others_their_own() {
    let ask = |graph: &Graph, root: u32, depth| packing(graph, vec![root], depth, (0.0, None)).unwrap();
    let first = ask(&line(5, 1), 0, None);
    assert!(Shared::ptr_eq(&first, &ask(&line(5, 1), 0, None)));
    for other in [ask(&line(5, 3), 0, None), ask(&line(5, 1), 1, None), ask(&line(5, 1), 0, Some(4))] {
        assert!(!Shared::ptr_eq(&first, &other));
    }
    assert!(first.trees.iter().all(|(tree, _)| tree.root == 0));
    assert!(packing(&line(5, 1), vec![0], Some(3), (0.0, None)).is_err());
}

#[test]
fn growths_are_told_apart_by_their_shares() {
    let graph = line(7, 5);
    let still = Shared::new(Symmetry::none(&graph));
    let ask = |shares| growth(&graph, &still, vec![0], None, shares, 0.0, &[]).unwrap();
    let first = ask(3);
    assert_eq!(first.trees[0].len(), 3);
    assert!(Shared::ptr_eq(&first, &ask(3)));
    assert_eq!(ask(4).trees[0].len(), 4);
}

#[test]
fn the_oldest_goes() {
    let graph = |rate: usize| line(64, 10 + rate as u64);
    // The most packings of a line that are cached.
    let most = MOST_EDGES / (64 * 2 * 63);
    let ask = |rate| packing(&graph(rate), vec![0], None, (0.0, None)).unwrap();
    let all: Vec<_> = (0..=most).map(ask).collect();
    let kept = PACKINGS.edges();
    assert!(kept <= MOST_EDGES);
    assert_eq!(ask(most).time.to_bits(), all[most].time.to_bits());
}
