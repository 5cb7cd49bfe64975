//! Circulant schedules without a root: concurrent broadcasts of one block from each rank, and the same schedule in
//! reverse.

use unisono_base::{NodeId, Span};
use unisono_collective::Kind;
use unisono_lower::{Exchange, Flow};
use unisono_schedule::{Builder, Operand};

use super::{around, before};
use crate::{
    Case,
    ranks::{Blocks, circulant::Skips},
};

/// The blocks of all ranks: equal parts of the vector in an allreduce, otherwise one block of each rank.
pub(super) struct OfRanks {
    skips: Skips,
    ranks: u32,
    elements: u32,
    of_vector: bool,
}

impl OfRanks {
    pub(super) fn new(case: &Case) -> Self {
        let c = &case.collective;
        let of_vector = c.kind == Kind::Allreduce;
        Self { skips: Skips::new(c.ranks), ranks: c.ranks, elements: c.elements, of_vector }
    }

    fn span(&self, from: u32, to: u32) -> Span {
        if self.of_vector {
            return Blocks::new(self.elements, self.ranks).span(from, to);
        }
        Span::new(from * self.elements, (to - from) * self.elements)
    }

    /// Returns the blocks of `count` ranks up to `last`. There are two spans if the blocks wrap past the last rank,
    /// otherwise one; empty spans are omitted.
    fn up_to(&self, last: u32, count: u32) -> Vec<Span> {
        let first = around(self.ranks, last, self.ranks + 1 - count);
        let spans = match first <= last {
            true => vec![self.span(first, last + 1)],
            false => vec![self.span(first, self.ranks), self.span(0, last + 1)],
        };
        spans.into_iter().filter(|span| span.len > 0).collect()
    }

    /// Sends blocks in one message to `to`; packs them first if they are not contiguous. `have(e)` is the operand that
    /// starts at element `e`.
    fn send(&self, b: &mut Builder, node: NodeId, spans: &[Span], have: impl Fn(u32) -> Operand, to: Operand) {
        let [span] = spans else {
            let len = spans.iter().map(|span| span.len).sum();
            let mut at = b.scratch(node, len);
            let whole = Operand::Tmp(at);
            for span in spans {
                b.combine(node, 0, span.len, &[have(span.start)], &[Operand::Tmp(at)]);
                at += span.len;
            }
            b.combine(node, 0, len, &[whole], &[to]);
            return;
        };
        b.combine(node, 0, span.len, &[have(span.start)], &[to]);
    }

    /// Creates the streams of each round, from each rank to the rank one skip ahead if `on`, otherwise one skip back.
    fn streams(&self, b: &mut Builder, on: bool) -> Vec<Vec<Operand>> {
        let to = |rank: u32, skip: u32| {
            if on { around(self.ranks, rank, skip) } else { before(self.ranks, rank, skip) }
        };
        let mut stream = |rank: u32, k: u32| b.stream(NodeId(rank), &[NodeId(to(rank, self.skips.skip(k)))]);
        let rounds = 0..self.skips.rounds();
        rounds.map(|k| (0..self.ranks).map(|rank| Operand::Stream(stream(rank, k))).collect()).collect()
    }

    /// Emits a reduce-scatter to one block per rank. An allreduce stores sums at the offsets of their elements in the
    /// output, a reduce-scatter in scratch memory.
    pub(super) fn reduce_scatter(&self, b: &mut Builder) {
        let (streams, last) = (self.streams(b, false), self.skips.rounds() - 1);
        for rank in 0..self.ranks {
            let node = NodeId(rank);
            let whole = self.of_vector || last == 0;
            let base = if whole { 0 } else { b.scratch(node, self.span(0, self.ranks).len) };
            let sum = |start: u32| if self.of_vector { Operand::Out(start) } else { Operand::Tmp(base + start) };
            for k in (0..=last).rev() {
                let own = |start: u32| if k == last { Operand::In(start) } else { sum(start) };
                let (skip, count) = (self.skips.skip(k), self.skips.step(k));
                let sent = self.up_to(before(self.ranks, rank, skip), count);
                self.send(b, node, &sent, own, streams[k as usize][rank as usize]);
                let from = streams[k as usize][around(self.ranks, rank, skip) as usize];
                for Span { start, len } in self.up_to(rank, count) {
                    let is_end = k == 0 && !self.of_vector;
                    b.combine(node, 0, len, &[own(start), from], &[if is_end { Operand::Out(0) } else { sum(start) }]);
                }
                // If the number of ranks is odd, the block halfway around the ring is sent in a later round, and no
                // addend of it has arrived yet.
                if k == last && self.ranks % 2 == 1 {
                    for Span { start, len } in self.up_to(before(self.ranks, rank, self.ranks / 2), 1) {
                        b.combine(node, 0, len, &[Operand::In(start)], &[sum(start)]);
                    }
                }
            }
        }
    }

    /// Emits an allgather of the blocks that the ranks have in their outputs.
    pub(super) fn allgather(&self, b: &mut Builder) {
        let streams = self.streams(b, true);
        for rank in 0..self.ranks {
            for k in 0..self.skips.rounds() {
                let (skip, count) = (self.skips.skip(k), self.skips.step(k));
                let node = NodeId(rank);
                self.send(b, node, &self.up_to(rank, count), Operand::Out, streams[k as usize][rank as usize]);
                let from = before(self.ranks, rank, skip);
                for Span { start, len } in self.up_to(from, count) {
                    b.combine(node, 0, len, &[streams[k as usize][from as usize]], &[Operand::Out(start)]);
                }
            }
        }
    }

    pub(super) fn exchanges(&self, case: &Case) -> Vec<Exchange> {
        let ranks = self.ranks;
        let exchange = |k: u32, on: bool| {
            let (skip, bytes) = (self.skips.skip(k), case.bytes(self.span(0, self.skips.step(k)).len));
            let to = move |rank: u32| if on { around(ranks, rank, skip) } else { before(ranks, rank, skip) };
            Exchange { flows: vec![Flow::new(bytes, 1, to)], reduced: if on { 0 } else { bytes } }
        };
        let rounds = 0..self.skips.rounds();
        let reduces = rounds.clone().rev().filter(|_| case.collective.kind.reduces()).map(|k| exchange(k, false));
        let gathers = rounds.filter(|_| case.collective.kind != Kind::ReduceScatter).map(|k| exchange(k, true));
        reduces.chain(gathers).collect()
    }
}
