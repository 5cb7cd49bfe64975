//! A bound on the time of an allreduce from partitions of the ranks, between which sums must be exchanged.
//!
//! Let the ranks be divided into k parts. For every element of an allreduce, at least 2 (k - 1) messages go from one
//! part to another, because a gossip among k needs 2 (k - 1) one-way calls (Harary and Schwenk, 1974), and each such
//! message leaves its part. So vectors of one unit need at least the time
//!
//!   2 (k - 1) / (rate of all arcs that leave the parts).
//!
//! The bound holds for every partition if relays outside the parts only forward: a relay that copies or sums messages
//! must be in a part. The partitions tried are single ranks, and the components of arcs above one of the network's
//! rates, such as boxes joined by slower links.

use unisono_base::interrupt::poll;

use crate::Graph;

/// The number of parts of a partition of the ranks and the rate between them, from which the partition's bound follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Partition {
    pub parts: u64,
    /// The rate of all arcs that leave parts, in the graph's unit.
    pub rate: u64,
}

impl Partition {
    /// Returns the least time of an allreduce of vectors of one unit.
    pub fn time(self) -> f64 {
        if self.parts < 2 { 0.0 } else { 2.0 * (self.parts - 1) as f64 / self.rate as f64 }
    }
}

/// A partition of the ranks, and the rate between each part and the rest of the network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parts {
    /// The part of each node of the graph; [`Parts::NONE`] for a relay whose component has no rank.
    of: Vec<u32>,
    /// For each part, the rate of all arcs that leave it.
    pub leaving: Vec<u64>,
    /// The rate of all arcs into each part.
    pub entering: Vec<u64>,
    /// True if a relay that belongs to no part copies or sums messages.
    pub computes_between: bool,
}

impl Parts {
    pub const NONE: u32 = u32::MAX;

    /// Returns the components that are connected by arcs of a rate above `rate`. A relay whose component has no rank
    /// gets no part.
    fn above(graph: &Graph, rate: u64, computes: &impl Fn(u32) -> bool) -> Self {
        let mut of = vec![Self::NONE; graph.nodes() as usize];
        let mut parts = 0;
        // Arcs are followed in both directions, so that the ranks of a part reach each other.
        let mut joined = vec![Vec::new(); graph.nodes() as usize];
        for arc in graph.arcs().iter().filter(|arc| arc.rate > rate) {
            joined[arc.from as usize].push(arc.to);
            joined[arc.to as usize].push(arc.from);
        }
        for rank in 0..graph.ranks() {
            if of[rank as usize] != Self::NONE {
                continue;
            }
            of[rank as usize] = parts;
            let mut stack = vec![rank];
            while let Some(at) = stack.pop() {
                poll();
                for &to in &joined[at as usize] {
                    if of[to as usize] == Self::NONE {
                        of[to as usize] = parts;
                        stack.push(to);
                    }
                }
            }
            parts += 1;
        }
        let is_between = |relay: u32| of[relay as usize] == Self::NONE && computes(relay);
        let computes_between = (graph.ranks()..graph.nodes()).any(is_between);
        let (mut leaving, mut entering) = (vec![0_u64; parts as usize], vec![0_u64; parts as usize]);
        for arc in graph.arcs() {
            let [from, to] = [arc.from, arc.to].map(|node| of[node as usize]);
            for (part, other, rates) in [(from, to, &mut leaving), (to, from, &mut entering)] {
                if part != Self::NONE && part != other {
                    rates[part as usize] = rates[part as usize].saturating_add(arc.rate);
                }
            }
        }
        Self { of, leaving, entering, computes_between }
    }

    /// Returns the partitions into components of arcs faster than a given rate, for at most the 31 lowest rates of the
    /// graph, in ascending order; the last partition consists of single ranks. `computes` returns true for relays that
    /// copy or sum messages.
    pub fn by_rates(graph: &Graph, computes: impl Fn(u32) -> bool) -> Vec<Self> {
        const MOST_RATES: usize = 32;
        let mut rates: Vec<u64> = graph.arcs().iter().map(|arc| arc.rate).collect();
        rates.sort_unstable();
        rates.dedup();
        rates.truncate(MOST_RATES - 1);
        rates.push(u64::MAX);
        rates.into_iter().map(|rate| Self::above(graph, rate, &computes)).collect()
    }

    pub fn len(&self) -> usize {
        self.leaving.len()
    }

    pub fn is_empty(&self) -> bool {
        self.leaving.is_empty()
    }

    pub fn of(&self, rank: u32) -> u32 {
        self.of[rank as usize]
    }

    /// Returns the number of parts and the rate between them; `None` if a relay outside the parts copies or sums
    /// messages.
    fn partition(&self) -> Option<Partition> {
        let rate = self.leaving.iter().fold(0_u64, |sum, &rate| sum.saturating_add(rate));
        (!self.computes_between).then_some(Partition { parts: self.len() as u64, rate })
    }
}

/// Returns the partition that proves the longest time; `None` if no partition proves one.
pub fn largest(parts: &[Parts]) -> Option<Partition> {
    parts.iter().filter_map(Parts::partition).max_by(|a, b| a.time().total_cmp(&b.time()))
}
