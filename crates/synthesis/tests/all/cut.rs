//! Tests of `cut`.

use proptest::prelude::*;
use unisono_synthesis::{
    Arc, Certificate, Graph,
    cut::{Cut, largest, scatter},
};

/// Returns the best cut of all sets of nodes that do not contain all ranks.
pub(crate) fn by_hand(graph: &Graph, roots: &[u32]) -> Cut {
    let nodes = graph.nodes();
    let sets = (0_u32..1 << nodes).filter(|set| (0..graph.ranks()).any(|rank| set >> rank & 1 == 0));
    let cuts = sets.map(|set| Cut::of(graph, roots, (0..nodes).map(|n| set >> n & 1 == 1).collect()));
    cuts.reduce(|a, b| if b.exceeds(&a) { b } else { a }).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::soak::cases(1000)))]
    #[test]
    fn the_cut_is_the_best_of_all(
        ranks in 2_u32..13,
        relays in 0_u32..11,
        arcs in prop::collection::vec((0_u32..12, 0_u32..12, 1_u64..30), 1..40),
        some in any::<u16>(),
    ) {
        let nodes = (ranks + relays).min(12);
        // A ring of all nodes, so that every rank is reached.
        let ring = (0..nodes).map(|n| Arc { from: n, to: (n + 1) % nodes, rate: 1 + u64::from(n % 3) });
        let more = arcs.into_iter().map(|(a, b, rate)| Arc { from: a % nodes, to: b % nodes, rate });
        let graph = Graph::new(ranks, nodes, ring.chain(more));
        let roots: Vec<u32> = (0..ranks).filter(|r| some >> r & 1 == 1).collect();
        let (found, expected) = (largest(&graph, &roots, &(0..ranks).collect::<Vec<_>>()), by_hand(&graph, &roots));
        prop_assert!(!found.exceeds(&expected) && !expected.exceeds(&found), "{found:?} {expected:?}");
        let again = Cut::of(&graph, &roots, found.inside.clone());
        prop_assert!(roots.is_empty() || again == found);
    }

    /// The time of a scatter is the maximum, over all sets that contain the root, of the number of ranks outside
    /// divided by the rate of the arcs that leave the set. The certificate of the cut proves this time.
    #[test]
    fn the_cut_of_a_scatter_is_the_best_of_all(
        ranks in 2_u32..9,
        relays in 0_u32..5,
        arcs in prop::collection::vec((0_u32..12, 0_u32..12, 1_u64..30), 1..30),
        root in 0_u32..9,
    ) {
        let (nodes, root) = (ranks + relays, root % ranks);
        let ring = (0..nodes).map(|n| Arc { from: n, to: (n + 1) % nodes, rate: 1 + u64::from(n % 3) });
        let more = arcs.into_iter().map(|(a, b, rate)| Arc { from: a % nodes, to: b % nodes, rate });
        let graph = Graph::new(ranks, nodes, ring.chain(more));
        let found = scatter(&graph, root, true);
        let (mut blocks, mut rate) = (0, 1);
        for set in (0_u32..1 << nodes).filter(|set| set >> root & 1 == 1) {
            let outside = (0..ranks).filter(|rank| set >> rank & 1 == 0).count() as u64;
            let leaves = graph.arcs().iter().filter(|arc| set >> arc.from & 1 == 1 && set >> arc.to & 1 == 0);
            let leaving = leaves.map(|arc| arc.rate).sum::<u64>();
            if outside * rate > blocks * leaving {
                (blocks, rate) = (outside, leaving);
            }
        }
        prop_assert_eq!(found.blocks * rate, blocks * found.rate, "{:?}", found);
        prop_assert!(!scatter(&graph, root, false).exceeds(&found));
        let (sum, capacity) = Certificate::of(&graph, &found).scatter_bound(&graph, root).unwrap();
        prop_assert_eq!(sum * u128::from(rate), u128::from(blocks) * capacity);
    }
}
