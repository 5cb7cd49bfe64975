//! Exchanges routed over a network, each distinct pattern of senders and receivers once.
//!
//! Loads are proportional to the bytes of messages, so a pattern of messages with the same shares of bytes is routed
//! once for all sizes. A pattern is identified by a hash of 128 bits of its receivers. If destinations in alike blocks
//! are interchangeable ([`unisono_machine::network::Routing::blocks`]), blocks are numbered in the order of their first
//! use, and these numbers are hashed instead of the receivers. So patterns that differ only by an exchange of
//! destinations share one routing.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;
use unisono_base::mix;
use unisono_lower::{Exchange, Flow};

use super::{NetworkModel, loads::Sent};

/// A cache of the loads and latencies of patterns.
#[derive(Default)]
pub struct Patterns {
    /// For each exchange, the bytes of the busiest link divided by the bytes of the longest flow.
    busiest: Mutex<FxHashMap<[u64; 2], f64>>,
    /// For each flow, the latency in ns of the longest chain of its messages.
    chains_ns: Mutex<FxHashMap<[u64; 2], f64>>,
}

fn known(of: &Mutex<FxHashMap<[u64; 2], f64>>, key: [u64; 2], find: impl FnOnce() -> f64) -> f64 {
    let found = of.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
    found.unwrap_or_else(|| {
        let value = find();
        of.lock().unwrap_or_else(PoisonError::into_inner).insert(key, value);
        value
    })
}

/// A key of 128 bits, into which numbers are mixed.
struct Key([u64; 2]);

impl Key {
    fn add(&mut self, number: u64) {
        let [a, b] = self.0;
        self.0 = [mix(a ^ number), mix(b.rotate_left(29).wrapping_add(number ^ 0x9e37_79b9_7f4a_7c15))];
    }
}

/// The numbers of blocks of destinations, in the order of first use.
struct Renumbered {
    /// The sizes of blocks, largest first.
    sizes: Vec<u32>,
    /// For each size, the number of each block; 0 before its first use.
    numbers: Vec<Vec<u32>>,
    used: Vec<u32>,
}

impl Renumbered {
    /// Returns `None` if destinations are not interchangeable.
    fn new(model: &NetworkModel) -> Option<Self> {
        let sizes = model.routing().blocks();
        if sizes.is_empty() || !model.plane().is_uniform() {
            return None;
        }
        let all = model.plane().accelerators();
        let numbers = sizes.iter().map(|size| vec![0; all.div_ceil(*size) as usize]).collect();
        Some(Self { used: vec![0; sizes.len()], sizes, numbers })
    }

    /// Mixes into a key, for each size of blocks, the number of the block of the destination, and if the source is in
    /// the same block.
    fn mix(&mut self, from: u32, to: u32, key: &mut Key) {
        for ((size, numbers), used) in self.sizes.iter().zip(&mut self.numbers).zip(&mut self.used) {
            let number = &mut numbers[(to / size) as usize];
            if *number == 0 {
                *used += 1;
                *number = *used;
            }
            key.add(u64::from(*number) << 1 | u64::from(from / size == to / size));
        }
    }
}

impl NetworkModel {
    /// Returns the time of an exchange on its busiest link or on its hosts, whichever is longer, and the latency of
    /// each routed flow, both in ns. Every `every`-th flow is routed.
    pub(super) fn routed_ns(&self, exchange: &Exchange, every: usize) -> (f64, Vec<f64>) {
        let flows = || exchange.flows.iter().step_by(every);
        let bytes = |flow: &Flow| self.flow_bytes(flow);
        let longest = flows().map(bytes).fold(0.0, f64::max);
        let (mut messages, mut latency, mut pattern) = (Vec::new(), Vec::new(), Key([1, 2]));
        // The table of loads is made only when needed: most patterns are in the cache, and the loads of all links take
        // memory.
        let mut loads = None;
        let mut blocks = Renumbered::new(self);
        for flow in flows() {
            let share = if longest > 0.0 { bytes(flow) / longest } else { 0.0 };
            let mut of_flow = Key([3, flow.repeat.into()]);
            // The latency of a chain of several messages depends on the receivers, which are the next senders. So the
            // receivers are part of its key.
            let mut own = if flow.repeat == 1 { Renumbered::new(self) } else { None };
            let first = messages.len();
            for rank in 0..self.ranks() {
                let to = flow.to(rank);
                if own.is_none() {
                    of_flow.add(to.into());
                }
                let [from, to] = [rank, to].map(|rank| self.places()[rank as usize]);
                messages.push(Sent { from, to, bytes: share });
                own.iter_mut().for_each(|own| own.mix(from, to, &mut of_flow));
                blocks.iter_mut().for_each(|blocks| blocks.mix(from, to, &mut pattern));
            }
            if blocks.is_none() {
                of_flow.0.into_iter().for_each(|number| pattern.add(number));
            }
            pattern.add(share.to_bits());
            latency.push(known(&self.patterns.chains_ns, of_flow.0, || {
                let loads = loads.get_or_insert_with(|| self.loads());
                let ways: Vec<f64> = messages[first..].iter().map(|m| loads.latency_ns(m.from, m.to)).collect();
                chain_ns(self, flow, &ways)
            }));
        }
        let all: f64 = exchange.flows.iter().map(bytes).sum();
        let routed: f64 = flows().map(bytes).sum();
        let scale = if routed > 0.0 { all / routed } else { 1.0 };
        let busiest =
            known(&self.patterns.busiest, pattern.0, || loads.get_or_insert_with(|| self.loads()).busiest(&messages));
        let transfer = busiest * longest * scale * self.ns_per_byte;
        (transfer.max(self.host_ns(exchange)), latency)
    }
}

/// Adds the latencies `more`, times `scale`, to those of the same flows in `latency`.
pub(super) fn add(latency: &mut Vec<f64>, more: Vec<f64>, scale: f64) {
    latency.resize(latency.len().max(more.len()), 0.0);
    latency.iter_mut().zip(more).for_each(|(all, ns)| *all += ns * scale);
}

/// Returns the largest sum of latencies, in ns, along `repeat` consecutive messages of a flow. The length of chains is
/// doubled repeatedly. `ways` has the latency of the path from each rank.
fn chain_ns(model: &NetworkModel, flow: &Flow, ways: &[f64]) -> f64 {
    let message = |(r, &way): (u32, &f64)| (flow.to(r), model.message_ns(r, flow.to(r), way));
    let mut step: Vec<(u32, f64)> = (0..).zip(ways).map(message).collect();
    let mut chain: Vec<(u32, f64)> = (0..model.ranks()).map(|r| (r, 0.0)).collect();
    let mut left = flow.repeat;
    while left > 0 {
        let then = |at: &(u32, f64)| {
            let (to, more) = step[at.0 as usize];
            (to, at.1 + more)
        };
        if left & 1 == 1 {
            chain = chain.iter().map(then).collect();
        }
        left >>= 1;
        if left > 0 {
            step = step.iter().map(then).collect();
        }
    }
    chain.iter().map(|&(_, ns)| ns).fold(0.0, f64::max)
}
