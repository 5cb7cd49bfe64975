//! Parts of a network between which the sums of all ranks must be exchanged.
//!
//! Let the ranks be in k parts. For every element that all ranks sum and get, at least 2 (k - 1) messages go from one
//! part to another: so many one-way calls a gossip of k takes (Harary and Schwenk, 1974), and each message leaves its
//! part. So vectors of one unit need at least
//!
//!   2 (k - 1) / (rate of all arcs that leave the parts).
//!
//! This holds for any parts that relays between them only join: one that copies or sums a message must be in a part.
//! Those that are tried are each rank by itself, and what hangs together over arcs above one of the network's rates:
//! boxes that slower links join.

use unisono_base::interrupt::poll;

use crate::Graph;

/// A number of parts and the rate of all arcs that leave them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Partition {
    pub parts: u64,
    pub rate: u64,
}

impl Partition {
    /// Time of vectors of one unit.
    pub fn time(self) -> f64 {
        if self.parts < 2 { 0.0 } else { 2.0 * (self.parts - 1) as f64 / self.rate as f64 }
    }

    /// The parts that hang together over arcs of more than this rate; relays without a rank are in none. `None` where
    /// that is so for one that computes.
    fn above(graph: &Graph, rate: u64, computes: &impl Fn(u32) -> bool) -> Option<Self> {
        const NONE: u32 = u32::MAX;
        let mut part = vec![NONE; graph.nodes() as usize];
        let mut parts = 0;
        // Both directions, so that a part is the same from all of its ranks.
        let mut joined = vec![Vec::new(); graph.nodes() as usize];
        for arc in graph.arcs().iter().filter(|arc| arc.rate > rate) {
            joined[arc.from as usize].push(arc.to);
            joined[arc.to as usize].push(arc.from);
        }
        for rank in 0..graph.ranks() {
            if part[rank as usize] != NONE {
                continue;
            }
            part[rank as usize] = parts;
            let mut stack = vec![rank];
            while let Some(at) = stack.pop() {
                poll();
                for &to in &joined[at as usize] {
                    if part[to as usize] == NONE {
                        part[to as usize] = parts;
                        stack.push(to);
                    }
                }
            }
            parts += 1;
        }
        if (graph.ranks()..graph.nodes()).any(|relay| part[relay as usize] == NONE && computes(relay)) {
            return None;
        }
        let leaves =
            |arc: &&crate::Arc| part[arc.from as usize] != NONE && part[arc.from as usize] != part[arc.to as usize];
        let rate = graph.arcs().iter().filter(leaves).fold(0_u64, |sum, arc| sum.saturating_add(arc.rate));
        Some(Self { parts: u64::from(parts), rate })
    }
}

/// The partition that proves the longest time, among those by rates. `computes` tells relays that copy or sum messages.
pub fn largest(graph: &Graph, computes: impl Fn(u32) -> bool) -> Option<Partition> {
    const MOST_RATES: usize = 32;
    let mut rates: Vec<u64> = graph.arcs().iter().map(|arc| arc.rate).collect();
    rates.sort_unstable();
    rates.dedup();
    rates.truncate(MOST_RATES - 1);
    rates.push(u64::MAX);
    let of = rates.into_iter().filter_map(|rate| Partition::above(graph, rate, &computes));
    of.max_by(|a, b| a.time().total_cmp(&b.time()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arc;

    #[test]
    fn boxes_that_slow_links_join_are_parts() {
        // Three boxes of four ranks with a fast relay each, and a slow link from every box to a relay between them.
        let mut arcs = Vec::new();
        for node in 0..3 {
            let ranks = (0..4).map(|rank| (4 * node + rank, 12 + node, 100));
            for (a, b, rate) in ranks.chain([(12 + node, 15, 10)]) {
                arcs.extend([Arc { from: a, to: b, rate }, Arc { from: b, to: a, rate }]);
            }
        }
        let graph = Graph::new(12, 16, arcs);
        // Rates are in units of 10.
        assert_eq!(largest(&graph, |_| false), Some(Partition { parts: 3, rate: 3 }));
        // Switches of boxes may sum, and the one between them may not.
        assert_eq!(largest(&graph, |relay| relay < 15), Some(Partition { parts: 3, rate: 3 }));
        assert_eq!(largest(&graph, |relay| relay == 15), None);
    }

    #[test]
    fn among_equal_links_each_rank_is_a_part() {
        let ring = (0..6).flat_map(|r| [(r, (r + 1) % 6), ((r + 1) % 6, r)]);
        let graph = Graph::new(6, 6, ring.map(|(from, to)| Arc { from, to, rate: 7 }));
        assert_eq!(largest(&graph, |_| false), Some(Partition { parts: 6, rate: 12 }));
    }
}
