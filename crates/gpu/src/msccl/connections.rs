//! Connections and their channels.
//!
//! A connection carries a stream to one of its sinks, or several streams of a pair of GPUs whose messages have one
//! order. A fused step needs the connection that it receives from and the one that it sends on in one thread block,
//! hence on one channel. A pair of GPUs has one connection for each channel and direction, so joined connections get
//! their channel together.

use std::collections::{BTreeMap, BTreeSet};

use unisono_base::{InstrId, NodeId, Span, StreamId, narrow};
use unisono_schedule::{Flow, Operand, Operands, Schedule};

use super::pieces::Pieces;

pub struct Connection {
    pub source: u32,
    pub sink: u32,
    pub channel: u32,
}

pub struct Connections {
    /// The index in `of_edge` of each stream's first entry.
    first: Vec<usize>,
    /// For each sink of each stream, the index of its connection in `all`.
    of_edge: Vec<usize>,
    pub all: Vec<Connection>,
    /// For each connection, the index of the connection on which its receiving thread block sends; `None` if it sends
    /// on none.
    pub joined: Vec<Option<usize>>,
}

/// The positions of a piece's send and receive in the order of all instructions.
type Message = (u32, u32);
/// The index of a connection, and its messages in sending order.
type Known = (usize, Vec<Message>);

impl Connections {
    /// Assigns streams to connections. `order` is a topological order of all instructions. With `fuse`, connections are
    /// joined for fused steps where channels allow it.
    pub fn new(schedule: &Schedule, flow: &Flow, order: &[InstrId], pieces: &Pieces, fuse: bool) -> Self {
        let mut rank = vec![0u32; schedule.instr_count()];
        for (at, id) in order.iter().enumerate() {
            rank[id.index()] = narrow(at);
        }
        let mut c = Self { first: Vec::new(), of_edge: Vec::new(), all: Vec::new(), joined: Vec::new() };
        let mut of_pair: BTreeMap<(u32, u32), Vec<Known>> = BTreeMap::new();
        for s in schedule.all_streams() {
            c.first.push(c.of_edge.len());
            let source = schedule.stream(s).source.0;
            for (sink, readers) in schedule.stream_sinks(s).iter().zip(flow.readers_by_sink(s)) {
                let messages: Vec<Message> = pieces
                    .starts_of(s)
                    .map(|start| {
                        let at = Span::new(start, 1);
                        let of = |p: &[_]| Flow::touching(p, at).first().map_or(0, |p| rank[p.instr.index()]);
                        (of(flow.writers(s)), of(readers))
                    })
                    .collect();
                let known = of_pair.entry((source, sink.0)).or_default();
                let fitting = known.iter_mut().find_map(|(at, have)| {
                    *have = merged(have, &messages)?;
                    Some(*at)
                });
                let at = fitting.unwrap_or_else(|| {
                    c.all.push(Connection { source, sink: sink.0, channel: 0 });
                    known.push((c.all.len() - 1, messages));
                    c.all.len() - 1
                });
                c.of_edge.push(at);
            }
        }
        c.joined = vec![None; c.all.len()];
        let mut groups: Vec<usize> = (0..c.all.len()).collect();
        let mut pairs: Vec<BTreeSet<(u32, u32)>> = c.all.iter().map(|c| [(c.source, c.sink)].into()).collect();
        if fuse {
            c.join(schedule, &mut groups, &mut pairs);
        }
        c.color(&groups, &pairs);
        c
    }

    pub fn of(&self, schedule: &Schedule, stream: StreamId, sink: NodeId) -> usize {
        let at = schedule.stream_sinks(stream).binary_search(&sink).unwrap_or(0);
        self.of_edge[self.first[stream.index()] + at]
    }

    pub fn of_all_sinks(&self, schedule: &Schedule, stream: StreamId) -> &[usize] {
        let first = self.first[stream.index()];
        &self.of_edge[first..first + schedule.stream_sinks(stream).len()]
    }

    /// Joins pairs of connections that fused steps would use, those of the most steps first, if both connections are
    /// still free and their groups share no pair of GPUs.
    fn join(&mut self, schedule: &Schedule, groups: &mut [usize], pairs: &mut [BTreeSet<(u32, u32)>]) {
        let mut fused: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for node in schedule.all_nodes() {
            for id in schedule.node_instrs(node).map(InstrId::new) {
                let Some(from) = last_received(schedule.sources(id)) else { continue };
                let from = self.of(schedule, from, node);
                for sink in schedule.sinks(id).iter() {
                    if let Operand::Stream(s) = sink {
                        for &to in self.of_all_sinks(schedule, s) {
                            *fused.entry((from, to)).or_default() += 1;
                        }
                    }
                }
            }
        }
        let mut by_use: Vec<_> = fused.into_iter().map(|(pair, steps)| (std::cmp::Reverse(steps), pair)).collect();
        by_use.sort_unstable();
        let mut sends = vec![false; self.all.len()];
        for (_, (from, to)) in by_use {
            let (a, b) = (root(groups, from), root(groups, to));
            let free = self.joined[from].is_none() && !sends[to];
            if free && (a == b || pairs[a].is_disjoint(&pairs[b])) {
                self.joined[from] = Some(to);
                sends[to] = true;
                if a != b {
                    let (small, large) = if pairs[a].len() < pairs[b].len() { (a, b) } else { (b, a) };
                    let moved = std::mem::take(&mut pairs[small]);
                    pairs[large].extend(moved);
                    groups[small] = large;
                }
            }
        }
    }

    /// Assigns each group the first channel on which none of its pairs of GPUs has a connection yet.
    fn color(&mut self, groups: &[usize], pairs: &[BTreeSet<(u32, u32)>]) {
        let mut taken: Vec<BTreeSet<(u32, u32)>> = Vec::new();
        let mut channel = vec![None; self.all.len()];
        for at in 0..self.all.len() {
            let group = root(groups, at);
            self.all[at].channel = *channel[group].get_or_insert_with(|| {
                let free = taken.iter().position(|t| t.is_disjoint(&pairs[group])).unwrap_or(taken.len());
                if free == taken.len() {
                    taken.push(BTreeSet::new());
                }
                taken[free].extend(&pairs[group]);
                narrow(free)
            });
        }
    }
}

fn root(groups: &[usize], mut at: usize) -> usize {
    while groups[at] != at {
        at = groups[at];
    }
    at
}

/// Returns the stream that the last receiving operation of a `combine` with `sources` reads ([`super::ops::lower`]);
/// `None` if no operation receives.
fn last_received(sources: Operands<'_>) -> Option<StreamId> {
    let mut last = sources.iter().rev().take(if sources.len() == 2 { 2 } else { 1 });
    last.find_map(|o| if let Operand::Stream(s) = o { Some(s) } else { None })
}

/// Merges two lists of messages into one FIFO. Returns `None` if sender and receiver order the messages differently, or
/// if one instruction sends or receives messages of both lists.
fn merged(a: &[Message], b: &[Message]) -> Option<Vec<Message>> {
    let mut all: Vec<(Message, bool)> = a.iter().map(|&m| (m, false)).chain(b.iter().map(|&m| (m, true))).collect();
    all.sort_unstable_by_key(|&((sent, received), second)| (sent, received, second));
    let keeps = |w: &[(Message, bool)]| {
        let ((first, other), same) = ((w[0].0, w[1].0), w[0].1 == w[1].1);
        if same { first.1 <= other.1 } else { first.0 < other.0 && first.1 < other.1 }
    };
    all.windows(2).all(keeps).then(|| all.into_iter().map(|(m, _)| m).collect())
}
