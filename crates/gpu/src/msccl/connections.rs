//! Connections and their channels.
//!
//! A connection carries a stream to one of its sinks, or several streams of a pair of GPUs whose messages have one
//! order. A fused step receives from one connection and sends on another. A thread block uses one channel, so the two
//! connections must be in one thread block and on one channel: they are joined. A pair of GPUs has one connection for
//! each channel and direction, so joined connections get their channel together.

use std::collections::{BTreeMap, BTreeSet};

use unisono_base::{InstrId, NodeId, Span, StreamId, narrow};
use unisono_schedule::{Flow, Operand, Operands, Schedule};

use super::{limits::BLOCKS_OF_A_CHANNEL, pieces::Pieces};

/// The connections that share a thread block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Joins {
    None,
    /// The two connections of a fused step.
    Fused,
    /// The two connections of a fused step; and each remaining connection from which a GPU receives, with one on which
    /// the GPU sends.
    Pairs,
}

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

/// The positions of the instruction that sends a piece, and of the one that receives it, in the order of all
/// instructions.
type Message = (u32, u32);
/// The index of a connection, and its messages in the order of sending.
type Known = (usize, Vec<Message>);

impl Connections {
    /// Assigns streams to connections. `order` is a topological order of all instructions. Connections are joined where
    /// channels allow it.
    pub fn new(schedule: &Schedule, flow: &Flow, order: &[InstrId], pieces: &Pieces, joins: Joins) -> Self {
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
        if joins != Joins::None {
            c.join(&c.fused(schedule), &mut groups, &mut pairs);
        }
        if joins == Joins::Pairs {
            let messages = of_pair.into_values().flatten();
            let first = messages.filter_map(|(at, of)| Some((at, *of.first()?))).collect();
            c.join(&c.paired(&first), &mut groups, &mut pairs);
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

    /// Returns the pairs of connections that fused steps would use, in descending order of their number of steps.
    fn fused(&self, schedule: &Schedule) -> Vec<(usize, usize)> {
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
        by_use.into_iter().map(|(_, pair)| pair).collect()
    }

    /// Returns, for each GPU, pairs of connections that are not yet joined: one from which the GPU receives, and one on
    /// which it sends. Both are taken in the order of their first messages, so that a thread block waits as little as
    /// possible.
    fn paired(&self, first: &BTreeMap<usize, Message>) -> Vec<(usize, usize)> {
        let mut ends: BTreeMap<u32, [Vec<(u32, usize)>; 2]> = BTreeMap::new();
        let sends: BTreeSet<usize> = self.joined.iter().copied().flatten().collect();
        for (&at, &(sent, received)) in first {
            if self.joined[at].is_none() {
                ends.entry(self.all[at].sink).or_default()[0].push((received, at));
            }
            if !sends.contains(&at) {
                ends.entry(self.all[at].source).or_default()[1].push((sent, at));
            }
        }
        let pairs = ends.into_values().flat_map(|[mut from, mut to]| {
            from.sort_unstable();
            to.sort_unstable();
            from.into_iter().zip(to).map(|((_, from), (_, to))| (from, to))
        });
        pairs.collect()
    }

    /// Joins the wanted pairs of connections, in this order, if both connections are still free and their groups share
    /// no pair of GPUs.
    fn join(&mut self, wanted: &[(usize, usize)], groups: &mut [usize], pairs: &mut [BTreeSet<(u32, u32)>]) {
        let mut sends = vec![false; self.all.len()];
        self.joined.iter().flatten().for_each(|&to| sends[to] = true);
        for &(from, to) in wanted {
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

    /// Assigns each group the first channel on which none of its pairs of GPUs has a connection yet, and no GPU sends
    /// to or receives from too many others.
    fn color(&mut self, groups: &[usize], pairs: &[BTreeSet<(u32, u32)>]) {
        let mut taken: Vec<BTreeSet<(u32, u32)>> = Vec::new();
        // For each channel, the number of connections of each GPU, false for sending and true for receiving.
        let mut held: Vec<BTreeMap<(bool, u32), usize>> = Vec::new();
        let ends = |pair: &(u32, u32)| [(false, pair.0), (true, pair.1)];
        let mut channel = vec![None; self.all.len()];
        for at in 0..self.all.len() {
            let group = root(groups, at);
            self.all[at].channel = *channel[group].get_or_insert_with(|| {
                let mut more: BTreeMap<(bool, u32), usize> = BTreeMap::new();
                for end in pairs[group].iter().flat_map(ends) {
                    *more.entry(end).or_default() += 1;
                }
                let has_room = |held: &BTreeMap<(bool, u32), usize>| {
                    more.iter().all(|(end, more)| held.get(end).unwrap_or(&0) + more <= BLOCKS_OF_A_CHANNEL)
                };
                let mut channels = taken.iter().zip(&held);
                let free = channels.position(|(taken, held)| taken.is_disjoint(&pairs[group]) && has_room(held));
                let free = free.unwrap_or(taken.len());
                if free == taken.len() {
                    taken.push(BTreeSet::new());
                    held.push(BTreeMap::new());
                }
                taken[free].extend(&pairs[group]);
                for (end, more) in more {
                    *held[free].entry(end).or_default() += more;
                }
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
