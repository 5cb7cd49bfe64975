//! Tests of `packing`.

use proptest::prelude::*;
use unisono_synthesis::{
    Arc, Graph, Ways, cut,
    packing::{Packing, pack},
};

/// Checks that every tree brings its share of its root's block to all ranks along paths of arcs, and that no arc is
/// busier than the time.
pub(crate) fn check(graph: &Graph, roots: &[u32], packing: &Packing) {
    let mut load = vec![0.0; graph.arcs().len()];
    let mut shares = vec![0.0; graph.ranks() as usize];
    for (tree, share) in &packing.trees {
        shares[tree.root as usize] += share;
        let mut depth = vec![None; graph.ranks() as usize];
        depth[tree.root as usize] = Some(0);
        for edge in &tree.edges {
            let above = depth[edge.from as usize].expect("an edge before has reached it");
            assert_eq!(depth[edge.to as usize].replace(above + 1), None);
            let mut at = edge.from;
            for &arc in &edge.way {
                assert_eq!(graph.arcs()[arc as usize].from, at);
                at = graph.arcs()[arc as usize].to;
                load[arc as usize] += share;
            }
            assert_eq!(at, edge.to);
        }
        assert_eq!(depth.iter().copied().min().flatten(), Some(0));
        assert_eq!(depth.into_iter().max().flatten(), Some(tree.depth));
    }
    assert!(roots.iter().all(|&r| (shares[r as usize] - 1.0).abs() < 1e-6));
    for (arc, load) in graph.arcs().iter().zip(load) {
        assert!(load <= packing.time * arc.rate as f64 * (1.0 + 1e-6));
    }
}

/// Returns a switch that joins all ranks by links of one rate.
fn box_of(ranks: u32) -> Graph {
    let arcs = (0..ranks).flat_map(|r| [(r, ranks), (ranks, r)]);
    Graph::new(ranks, ranks + 1, arcs.map(|(from, to)| Arc { from, to, rate: 300 }))
}

#[test]
fn a_box_with_a_switch_needs_one_message_a_rank() {
    let graph = box_of(8);
    let all: Vec<u32> = (0..8).collect();
    let packing = pack(&graph, &all, Ways::Shortest, Some(1), 0.0).unwrap();
    // The graph divides all rates by their common factor, so they become 1.
    assert!((packing.time - 7.0).abs() < 1e-6, "{}", packing.time);
    assert!(packing.trees.iter().all(|(tree, _)| tree.depth == 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::soak::cases(1000)))]
    #[test]
    fn packings_reach_the_cut(
        ranks in 2_u32..13,
        relays in 0_u32..11,
        cables in prop::collection::vec((0_u32..12, 0_u32..12, 1_u64..9), 1..24),
    ) {
        let graph = crate::common::drawn(ranks, relays.min(12 - ranks), cables);
        let all: Vec<u32> = (0..ranks).collect();
        for roots in [&all[..], &all[..1]] {
            let cut = cut::largest(&graph, roots, &all);
            let bound = cut.time();
            let by_hand = crate::cut::by_hand(&graph, roots);
            prop_assert!(!cut.exceeds(&by_hand) && !by_hand.exceeds(&cut), "{cut:?} {by_hand:?}");
            let (top, bottom) = unisono_synthesis::Certificate::of(&graph, &cut).bound(&graph, roots).unwrap();
            prop_assert_eq!(top * u128::from(cut.rate), bottom * u128::from(cut.blocks));
            let packing = pack(&graph, roots, Ways::Any, None, bound).unwrap();
            prop_assert!((packing.time - bound).abs() < 1e-6 * bound, "{} {bound}", packing.time);
            check(&graph, roots, &packing);
        }
    }
}
