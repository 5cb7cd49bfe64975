//! The instructions of ranks that send and receive the messages of a forest.

use std::collections::{BTreeMap, btree_map::Entry};

use rustc_hash::FxHashMap;
use unisono_base::{InstrId, NodeId, Span, narrow};
use unisono_collective::Kind;
use unisono_schedule::{Builder, Operand};
use unisono_synthesis::{self as synthesis, Message, Roots};

use crate::{
    Case,
    ranks::{
        Blocks, Lanes, Sums,
        shapes::{blocks, sums_for_all},
    },
};

/// The index of no arrival.
const NONE: u32 = u32::MAX;

/// Emits the messages of a forest as instructions, in the order of the timetable.
pub(super) struct Messages<'a> {
    pub case: &'a Case<'a>,
    pub roots: Roots,
    /// The order of the sums at roots that receive from all ranks; `None` adds in the order of arrival.
    pub sums: Option<&'a Sums>,
    /// By rank, the offset of the rank's sums in scratch memory; `longest` is the number of elements of each sum there.
    pub scratch: &'a [u32],
    pub longest: u32,
    pub forest: &'a synthesis::Forest,
    pub lanes: Lanes,
    /// Present if each rank sends all messages up before it sends down. By rank and lane, the last instruction that
    /// sends up; `None` for a lane that has begun to send down.
    pub turns: Option<FxHashMap<u32, BTreeMap<u32, Option<InstrId>>>>,
}

impl Messages<'_> {
    /// Returns the span of a chunk in the vector of its root, and its first element in the vector of all blocks.
    fn span(&self, root: u32, chunk: u32) -> (Span, u32) {
        let c = &self.case.collective;
        let blocks = blocks(self.case, self.roots);
        let is_share = sums_for_all(c.kind) && self.roots == Roots::All;
        let block = blocks.block(if is_share { root } else { 0 });
        let part = Blocks::new(block.len, self.forest.chunks).block(chunk);
        let own = block.start + part.start;
        let all = match c.kind {
            Kind::Allgather | Kind::ReduceScatter => root * c.elements + own,
            _ => own,
        };
        (Span::new(own, part.len), all)
    }

    /// Returns the index of a chunk at its root in the tables of [`Progress`].
    fn at_root(&self, root: u32, chunk: u32) -> usize {
        let turn = if self.roots == Roots::All { root } else { 0 };
        (turn * self.forest.chunks + chunk) as usize
    }

    /// Returns the index of a chunk on a rank in the tables of [`Progress`].
    fn index(&self, root: u32, chunk: u32, rank: u32) -> usize {
        self.at_root(root, chunk) * self.case.collective.ranks as usize + rank as usize
    }

    pub fn begin(&self) -> Progress {
        let ranks = self.case.collective.ranks;
        let chunks = self.roots.list(ranks).len() * self.forest.chunks as usize;
        let all = chunks * ranks as usize;
        Progress {
            received: vec![None; all],
            arrived: vec![NONE; all],
            arrivals: Vec::new(),
            sources: Vec::new(),
            made: vec![None; chunks],
            operands: vec![Vec::new(); chunks],
        }
    }

    /// Sends a chunk down an edge of its tree. `is_made` is true if the root computed the chunk; otherwise the chunk is
    /// in the root's input.
    pub fn down(&mut self, b: &mut Builder, m: &Message, at: &mut Progress, is_made: bool) {
        let (Span { start: own, len }, all) = self.span(m.root, m.chunk);
        if len == 0 {
            return;
        }
        let edge = m.edge;
        let (from, to) = (NodeId(edge.from), NodeId(edge.to));
        let at_root = edge.from == m.root;
        let source = if at_root && !is_made { Operand::In(own) } else { Operand::Out(all) };
        let stream = Operand::Stream(b.stream(from, &[to]));
        if b.keeps(from) {
            let lane = self.lanes.sends(edge.from, edge.ends[0]);
            let sent = b.combine(from, lane, len, &[source], &[stream]);
            let earlier = if at_root {
                at.made[self.at_root(m.root, m.chunk)]
            } else {
                at.received[self.index(m.root, m.chunk, edge.from)]
            };
            if let Some(earlier) = earlier {
                b.after(sent, earlier);
            }
            if let Some(lanes) = self.turns.as_mut().and_then(|turns| turns.get_mut(&edge.from)) {
                // Between instructions of one lane, the order of the lane suffices.
                if let Entry::Vacant(begun) = lanes.entry(lane) {
                    begun.insert(None);
                    lanes.values().flatten().for_each(|&last| b.after(sent, last));
                }
            }
        }
        if b.keeps(to) {
            let lane = self.lanes.receives(edge.to, edge.from);
            let index = self.index(m.root, m.chunk, edge.to);
            at.received[index] = Some(b.combine(to, lane, len, &[stream], &[Operand::Out(all)]));
        }
    }

    /// Sends a chunk up an edge of its tree: a rank adds its own chunk to the sums of its children, and sends the
    /// result.
    pub fn up(&mut self, b: &mut Builder, m: &Message, at: &mut Progress) {
        let (Span { start: own, len }, all) = self.span(m.root, m.chunk);
        if len == 0 {
            return;
        }
        let edge = m.edge;
        let (node, above) = (NodeId(edge.to), NodeId(edge.from));
        let up = Operand::Stream(b.stream(node, &[above]));
        if b.keeps(node) {
            at.sources.clear();
            let mut last = at.arrived[self.index(m.root, m.chunk, edge.to)];
            while let Some(&(operand, before)) = at.arrivals.get(last as usize) {
                at.sources.push(operand);
                last = before;
            }
            at.sources.push(Operand::In(all));
            at.sources.reverse();
            let lane = self.lanes.sends(edge.to, edge.ends[1]);
            let sent = b.combine(node, lane, len, &at.sources, &[up]);
            if let Some(turns) = &mut self.turns {
                turns.entry(edge.to).or_default().insert(lane, Some(sent));
            }
        }
        if !b.keeps(above) {
            return;
        }
        if edge.from != m.root {
            let last = &mut at.arrived[self.index(m.root, m.chunk, edge.from)];
            at.arrivals.push((up, *last));
            *last = narrow(at.arrivals.len() - 1);
            return;
        }
        let index = self.at_root(m.root, m.chunk);
        let lane = self.lanes.receives(m.root, m.root);
        if self.sums.is_some() {
            self.add_in_order(b, m, (edge.to, up), at);
            return;
        }
        // The root adds each sum when it arrives, so that little work is left after the last message.
        let so_far = if at.made[index].is_none() { Operand::In(all) } else { Operand::Out(own) };
        at.made[index] = Some(b.combine(above, lane, len, &[so_far, up], &[Operand::Out(own)]));
    }

    /// Handles the arrival of a rank's input at the root: emits all further sums of the chunk of which both operands
    /// have arrived.
    fn add_in_order(&mut self, b: &mut Builder, m: &Message, arrived: (u32, Operand), at: &mut Progress) {
        let lane = self.lanes.receives(m.root, m.root);
        let Some(sums) = self.sums else { return };
        let (Span { start: own, len }, all) = self.span(m.root, m.chunk);
        let index = self.at_root(m.root, m.chunk);
        let mut ready = vec![arrived];
        if at.operands[index].is_empty() {
            at.operands[index] = vec![None; sums.sum_of.len()];
            ready.push((m.root, Operand::In(all)));
        }
        while let Some((operand, place)) = ready.pop() {
            at.operands[index][operand as usize] = Some(place);
            let Some(sum) = sums.sum_of[operand as usize] else { continue };
            let (left, right) = sums.operands[sum as usize];
            let [left, right] = [left, right].map(|one| at.operands[index][one as usize]);
            let (Some(left), Some(right)) = (left, right) else { continue };
            // All sums of a root are in one lane, chunk after chunk.
            let to = match sums.slots[sum as usize] {
                None => Operand::Out(own),
                Some(slot) => Operand::Tmp(self.scratch[m.root as usize] + slot * self.longest),
            };
            at.made[index] = Some(b.combine(NodeId(m.root), lane, len, &[left, right], &[to]));
            ready.push((self.case.collective.ranks + sum, to));
        }
    }
}

/// The progress of each chunk: `received` and `arrived` by root, chunk and rank; `made` and `operands` by root and
/// chunk.
pub(super) struct Progress {
    /// The instruction that received a chunk, if any.
    received: Vec<Option<InstrId>>,
    /// The index in `arrivals` of the last sum that arrived from a child, or [`NONE`].
    arrived: Vec<u32>,
    /// The sums from children. Each has the index of the previous sum of the same chunk at the same rank, or [`NONE`].
    arrivals: Vec<(Operand, u32)>,
    /// The sources of one instruction; a buffer that is reused.
    sources: Vec<Operand>,
    /// The last instruction that added to a chunk at its root, if any.
    made: Vec<Option<InstrId>>,
    /// The operands of the sums of a chunk at its root; `None` for operands that have not arrived.
    operands: Vec<Vec<Option<Operand>>>,
}
