//! Tests of `arrivals`.

use crate::packing::check;

use std::sync::Arc as Shared;

use proptest::prelude::*;
use unisono_synthesis::{
    Graph, Ways, cut,
    internals::{arrivals::grow, growth, loads::Links, symmetry::Symmetry},
    packing::Tree,
};

/// Returns forests grown by arrival times, from trees grown by loads alone.
fn grown(graph: &Graph, hops: &[f64], depth: Option<u32>, chunks: u32) -> Vec<Vec<Shared<Tree>>> {
    let all: Vec<u32> = (0..graph.ranks()).collect();
    let (still, bound) = (Symmetry::none(graph), cut::largest(graph, &all, &all).time());
    let links = Links { graph, symmetry: &still, late: &[] };
    let known = growth::grow(&links, &all, Ways::Shortest, depth, chunks, bound, &Vec::new()).unwrap().trees;
    grow(&links, hops, &all, depth, &known, 4.0 * bound * f64::from(chunks))
}

/// Two boxes of two ranks. Each box has a fast link, and each rank has a slow link to the other box. A slow link is
/// idle until the block of the other rank of its box could arrive.
#[test]
fn a_block_crosses_over_the_link_of_its_rank() {
    let cables = [(0, 1, 10), (2, 3, 10), (0, 2, 1), (1, 3, 1)];
    let arcs = cables.iter().flat_map(|&(a, b, rate)| [(a, b, rate), (b, a, rate)]);
    let graph = Graph::new(4, 4, arcs.map(|(from, to, rate)| unisono_synthesis::Arc { from, to, rate }));
    let hops: Vec<f64> = graph.arcs().iter().map(|arc| if arc.rate == 1 { 8.0 } else { 1.0 }).collect();
    for of in grown(&graph, &hops, None, 4) {
        for tree in of {
            let slow: Vec<u32> =
                tree.edges.iter().filter(|edge| hops[edge.way[0] as usize] == 8.0).map(|edge| edge.from).collect();
            assert_eq!(slow, [tree.root], "{tree:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::soak::cases(100)))]
    #[test]
    fn trees_reach_all_ranks_within_their_depth(
        ranks in 2_u32..9,
        relays in 0_u32..5,
        cables in prop::collection::vec((0_u32..12, 0_u32..12, 1_u64..9), 1..24),
        hop in 0.0_f64..40.0,
        more in 0_u32..3,
    ) {
        let graph = crate::common::drawn(ranks, relays, cables).routed();
        let hops: Vec<f64> = graph.arcs().iter().map(|arc| hop * (1 + arc.from % 3) as f64).collect();
        let depth = (more > 0).then_some(ranks - 1);
        let trees = grown(&graph, &hops, depth, 4);
        let all: Vec<u32> = (0..ranks).collect();
        prop_assert!(depth.is_none_or(|most| trees.iter().flatten().all(|tree| tree.depth <= most)));
        let mut load = vec![0.0; graph.arcs().len()];
        trees.iter().flatten().flat_map(|tree| &tree.edges).flat_map(|edge| &edge.way).for_each(|&arc| load[arc as usize] += 0.25);
        let time = load.iter().zip(graph.arcs()).map(|(load, arc)| load / arc.rate as f64).fold(0.0, f64::max);
        check(&graph, &all, &growth::Growth { trees, time }.packing());
    }
}
