//! Tests of `growth`.

use crate::packing::check;

use proptest::prelude::*;
use unisono_synthesis::{
    Ways, cut,
    internals::{
        growth::{grow, time_of_whole},
        loads::Links,
        symmetry::Symmetry,
    },
};

proptest! {
    /// The least time is compared with the minimum over all divisions of the units among three arcs.
    #[test]
    fn whole_units_take_the_least_time(rates in prop::array::uniform3(1_u64..9), units in 0_u64..20) {
        let ends = |shared: [u64; 3]| (0..3).map(|at| shared[at] as f64 / rates[at] as f64).fold(0.0, f64::max);
        let all = (0..=units).flat_map(|a| (0..=units - a).map(move |b| [a, b, units - a - b]));
        let least = all.map(ends).fold(f64::INFINITY, f64::min);
        prop_assert_eq!(time_of_whole(&rates, units), least);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::soak::cases(500)))]
    #[test]
    fn growth_comes_near_the_cut(
        ranks in 2_u32..9,
        relays in 0_u32..5,
        cables in prop::collection::vec((0_u32..12, 0_u32..12, 1_u64..9), 1..24),
    ) {
        let graph = crate::common::drawn(ranks, relays, cables);
        let all: Vec<u32> = (0..ranks).collect();
        let bound = cut::largest(&graph, &all, &all).time();
        let still = Symmetry::none(&graph);
        for (depth, roots) in [(None, &all[..]), (Some(ranks - 1), &all), (Some(2), &all), (None, &all[..1])] {
            let bound = if roots.len() == 1 { cut::largest(&graph, roots, &all).time() } else { bound };
            let found = grow(&Links { graph: &graph, symmetry: &still, late: &[] }, roots, Ways::Any, depth, 64, bound, &Vec::new());
            // Trees of small depth may not exist, or may take longer.
            let Ok(found) = found else {
                prop_assert_eq!(depth, Some(2));
                continue;
            };
            let deepest = found.trees.iter().flatten().map(|tree| tree.depth).max().unwrap();
            prop_assert!(depth.is_none_or(|most| deepest <= most));
            let packing = found.packing();
            check(&graph, roots, &packing);
            prop_assert!(packing.time >= bound * (1.0 - 1e-9));
            prop_assert!(depth == Some(2) || packing.time <= 1.12 * bound, "{} {bound}", packing.time);
        }
    }
}
