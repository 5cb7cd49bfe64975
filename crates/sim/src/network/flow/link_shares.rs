//! Computes the load of each link by flows to one accelerator. Every node splits the flows by the weights of its links
//! to the next nodes. A *share* is the flow on a link or at a node, as a multiple of one source's flow.

use unisono_base::{interrupt::poll, narrow};
use unisono_machine::network::{Header, Hop};

use crate::network::Interconnect;

/// A node with the virtual channel on which flows arrive there.
struct State {
    node: u32,
    vc: u8,
    /// Number of hops into this state whose shares have not been added yet.
    pending: u32,
    share: f64,
    /// Latency of the longest path from a source.
    latency_ps: u64,
    first_edge: u32,
    edges: u32,
}

/// Stands for the state after a hop to the destination.
const END: u32 = u32::MAX;

pub(super) struct LinkShares<'a> {
    net: &'a Interconnect,
    vcs: usize,
    /// Weights of the links; equal at first, so that flows are split evenly.
    pub weights: Vec<f64>,
    /// For each node and virtual channel, the index of its state and the round in which this index is valid.
    known: Vec<(u32, u32)>,
    round: u32,
    states: Vec<State>,
    /// Links, each with the state that it leads to.
    edges: Vec<(u32, u32)>,
    /// States whose share is complete.
    ready: Vec<u32>,
    /// For each source and each choice of a route: the choice, the source, and the fraction of its flow that takes it.
    /// Sorted by choice.
    sources: Vec<(u32, u32, f64)>,
    hops: Vec<Hop>,
}

impl<'a> LinkShares<'a> {
    pub fn new(net: &'a Interconnect) -> Self {
        let vcs = usize::from(net.routing.virtual_channels().max(1));
        let known = vec![(0, 0); net.plane.nodes() as usize * vcs];
        let (states, edges, ready, sources, hops) = Default::default();
        let weights = vec![1.0; net.plane.links().len()];
        Self { net, vcs, weights, known, round: 0, states, edges, ready, sources, hops }
    }

    /// Follows a flow of 1 from each accelerator of `from` to `to`. Calls `load` with a link and the flow that it
    /// carries, perhaps several times for a link. Returns the latency of the longest path in picoseconds.
    pub fn add(&mut self, to: u32, from: impl Iterator<Item = u32>, mut load: impl FnMut(u32, f64)) -> u64 {
        let mut sources = std::mem::take(&mut self.sources);
        sources.clear();
        for from in from {
            poll();
            let choices = self.net.routing.choices(from, to);
            let share = 1.0 / choices.len() as f64;
            sources.extend(choices.iter().map(|way| (*way, from, share)));
        }
        if !sources.is_sorted_by_key(|source| source.0) {
            sources.sort_by_key(|source| source.0);
        }
        let longest = sources.chunk_by(|a, b| a.0 == b.0).map(|same| self.follow(to, same, &mut load)).max();
        self.sources = sources;
        longest.unwrap_or(0)
    }

    /// Follows the flows of sources with the same choice, whose packets differ only in their positions.
    fn follow(&mut self, to: u32, sources: &[(u32, u32, f64)], load: &mut impl FnMut(u32, f64)) -> u64 {
        self.round += 1;
        self.states.clear();
        self.edges.clear();
        for &(_, from, share) in sources {
            let at = self.state(from, 0);
            self.states[at as usize].share += share;
        }
        self.discover(Header { to, vc: 0, way: sources[0].0 });
        self.ready.extend((0..narrow::<u32>(self.states.len())).filter(|&at| self.states[at as usize].pending == 0));
        let mut longest = 0;
        while let Some(at) = self.ready.pop() {
            poll();
            let State { share, latency_ps, first_edge, edges, .. } = self.states[at as usize];
            let ahead = first_edge as usize..(first_edge + edges) as usize;
            let all: f64 = self.edges[ahead.clone()].iter().map(|&(link, _)| self.weights[link as usize]).sum();
            for edge in ahead {
                let (link, behind) = self.edges[edge];
                let share = share * self.weights[link as usize] / all;
                load(link, share);
                let latency_ps = latency_ps.saturating_add(self.net.timing.of(self.net.plane.link(link)).hop_ps);
                longest = longest.max(latency_ps);
                if behind == END {
                    continue;
                }
                let next = &mut self.states[behind as usize];
                next.share += share;
                next.latency_ps = next.latency_ps.max(latency_ps);
                next.pending -= 1;
                if next.pending == 0 {
                    self.ready.push(behind);
                }
            }
        }
        longest
    }

    /// Lists the hops of all states; hops to new states add these states.
    fn discover(&mut self, header: Header) {
        let mut at = 0;
        while at < self.states.len() {
            poll();
            let State { node, vc, .. } = self.states[at];
            self.hops.clear();
            self.net.routing.hops(node, Header { vc, ..header }, &mut self.hops);
            let first = narrow::<u32>(self.edges.len());
            for hop in 0..self.hops.len() {
                let Hop { link, vc } = self.hops[hop];
                let next = self.net.plane.link(link).to;
                let behind = if next == header.to { END } else { self.state(next, vc) };
                if behind != END {
                    self.states[behind as usize].pending += 1;
                }
                self.edges.push((link, behind));
            }
            let state = &mut self.states[at];
            (state.first_edge, state.edges) = (first, narrow::<u32>(self.hops.len()));
            at += 1;
        }
    }

    fn state(&mut self, node: u32, vc: u8) -> u32 {
        let known = &mut self.known[node as usize * self.vcs + usize::from(vc)];
        if known.1 != self.round {
            *known = (narrow::<u32>(self.states.len()), self.round);
            self.states.push(State { node, vc, pending: 0, share: 0.0, latency_ps: 0, first_edge: 0, edges: 0 });
        }
        known.0
    }
}
