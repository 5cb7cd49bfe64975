//! Classes of equivalent arcs and ranks, so that one price applies to many arcs and one source represents many ranks.
//!
//! Nodes are colored by the arcs that leave and enter them, and arcs by the nodes at their ends, until no color
//! changes. Classes are split further if shortest paths at equal prices load their arcs differently.

use rustc_hash::FxHashMap;
use unisono_base::{interrupt, narrow};

use super::router::Entering;
use crate::Graph;

/// Classes of equivalent arcs and ranks.
pub(super) struct Alike {
    pub(super) class: Vec<u32>,
    pub(super) classes: usize,
    /// One rank of each class, with the number of ranks in the class.
    pub(super) sources: Vec<(u32, u64)>,
}

impl Alike {
    /// Refines the classes `start` of arcs until all nodes of a color have arcs of the same classes.
    pub(super) fn refine(graph: &Graph, entering: &Entering, start: Vec<u32>) -> Self {
        let mut color: Vec<u32> = (0..graph.nodes()).map(|node| u32::from(node >= graph.ranks())).collect();
        let mut class = start;
        let mut count = 0;
        loop {
            interrupt::check();
            let of_arc = |(at, arc): (usize, &crate::Arc)| {
                (class[at], arc.rate, color[arc.from as usize], color[arc.to as usize])
            };
            let (refined, classes) = numbered(graph.arcs().iter().enumerate().map(of_arc));
            class = refined;
            let sorted = |arcs: &[u32]| {
                let mut classes: Vec<u32> = arcs.iter().map(|&arc| class[arc as usize]).collect();
                classes.sort_unstable();
                classes
            };
            let of_node = |node: u32| (color[node as usize], sorted(graph.leaving(node)), sorted(entering.of(node)));
            let (refined, colors) = numbered((0..graph.nodes()).map(of_node));
            color = refined;
            if classes + colors == count {
                let mut sources: Vec<(u32, u64)> = Vec::new();
                let mut known: FxHashMap<u32, usize> = FxHashMap::default();
                for rank in 0..graph.ranks() {
                    let at = *known.entry(color[rank as usize]).or_insert(sources.len());
                    if at == sources.len() {
                        sources.push((rank, 0));
                    }
                    sources[at].1 += 1;
                }
                return Self { class, classes, sources };
            }
            count = classes + colors;
        }
    }

    pub(super) fn split(&self, graph: &Graph, entering: &Entering, load: &[f64]) -> Self {
        const SAME: f64 = 1e-9;
        let mut order: Vec<usize> = (0..load.len()).collect();
        order.sort_by(|&a, &b| self.class[a].cmp(&self.class[b]).then(load[a].total_cmp(&load[b])));
        let mut start = vec![0; load.len()];
        let mut number = 0;
        for pair in order.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            let unlike = self.class[a] != self.class[b] || load[b] - load[a] > SAME * load[b].max(1.0);
            number += u32::from(unlike);
            start[b] = number;
        }
        Self::refine(graph, entering, start)
    }

    pub(super) fn rates(&self, graph: &Graph) -> Vec<f64> {
        let mut rates = vec![0.0; self.classes];
        for (arc, &class) in graph.arcs().iter().zip(&self.class) {
            rates[class as usize] += arc.rate as f64;
        }
        rates
    }

    pub(super) fn of_arcs(&self, prices: &[u64]) -> Vec<u64> {
        self.class.iter().map(|&class| prices[class as usize]).collect()
    }
}

/// Numbers items in the order of their first occurrence; equal items have equal numbers. Returns the numbers, and the
/// count of different items.
pub(super) fn numbered<T: std::hash::Hash + Eq>(items: impl Iterator<Item = T>) -> (Vec<u32>, usize) {
    let mut known = FxHashMap::default();
    let of = items
        .map(|item| {
            let next = narrow::<u32>(known.len());
            *known.entry(item).or_insert(next)
        })
        .collect();
    (of, known.len())
}
