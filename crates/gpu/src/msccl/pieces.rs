//! Chunks and pieces. The largest unit that divides all slices becomes the chunk, and instructions are divided until
//! the writers and the readers of each stream move pieces of the same sizes.

use std::collections::BTreeSet;

use unisono_base::{InstrId, NodeId, StreamId, interrupt::poll};
use unisono_schedule::{Flow, Schedule};

use super::limits;
use crate::ordered::chunk_elements;

/// The maximum number of pieces of all streams of a schedule together.
const MOST_CUTS: usize = 1 << 20;

/// The division of a schedule into chunks and pieces.
pub struct Pieces {
    /// The number of elements of a chunk.
    pub unit: u32,
    /// The maximum number of elements of a piece.
    longest: u32,
    /// For each stream, the index of the first element of each piece.
    starts: Vec<BTreeSet<u32>>,
}

/// A stream operand: the stream, and the index of the first element that the instruction moves.
pub type At = (StreamId, u32);

/// Returns the stream operands of an instruction, sources first.
fn ends(schedule: &Schedule, flow: &Flow, id: InstrId) -> Vec<At> {
    flow.pops(schedule, id).chain(flow.pushes(schedule, id)).map(|(s, span)| (s, span.start)).collect()
}

impl Pieces {
    /// Divides a schedule into pieces of at most `longest` chunks.
    ///
    /// # Errors
    /// Returns the reason if the schedule has no elements, or needs more pieces than files have steps.
    pub fn new(schedule: &Schedule, flow: &Flow, longest: u32) -> Result<Self, String> {
        let unit = chunk_elements(schedule);
        if unit == 0 {
            return Err("it moves no elements".to_owned());
        }
        let longest = unit.saturating_mul(longest);
        let leaves = |s: StreamId, node: NodeId| flow.readers(s).iter().any(|p| flow.node_of(p.instr) != node);
        // The number of pieces that each GPU sends; each piece is a step.
        let mut sent = vec![0_usize; schedule.node_count()];
        for id in (0..schedule.instr_count()).map(InstrId::new) {
            poll();
            let node = flow.node_of(id);
            for (_, span) in flow.pushes(schedule, id).filter(|&(s, _)| leaves(s, node)) {
                sent[node.index()] += span.len.div_ceil(longest) as usize;
            }
            limits::check_steps(node, sent[node.index()])?;
        }
        sent.fill(0);
        let mut pieces = Self { unit, longest, starts: vec![BTreeSet::new(); schedule.stream_count()] };
        let mut new: Vec<At> = Vec::new();
        for s in schedule.all_streams() {
            new.extend(flow.writers(s).iter().chain(flow.readers(s)).map(|p| (s, p.start)));
        }
        for id in (0..schedule.instr_count()).map(InstrId::new) {
            poll();
            poll();
            let ends = ends(schedule, flow, id);
            let into = (longest..schedule.instr(id).len).step_by(longest as usize);
            new.extend(into.flat_map(|into| ends.iter().map(move |&(s, at)| (s, at + into))));
        }
        let mut cuts = 0;
        while let Some((s, start)) = new.pop() {
            if !pieces.starts[s.index()].insert(start) {
                continue;
            }
            cuts += 1;
            if cuts > MOST_CUTS {
                return Err(format!("its streams are cut into more than {MOST_CUTS} pieces"));
            }
            let writer = flow.writers(s).first().map(|p| flow.node_of(p.instr));
            if let Some(node) = writer.filter(|&node| leaves(s, node)) {
                sent[node.index()] += 1;
                limits::check_steps(node, sent[node.index()])?;
            }
            // An instruction whose span contains both this element and the previous one is divided here, and so are all
            // its streams.
            let span = unisono_base::Span::new(start, 1);
            let readers = flow.readers_by_sink(s).flat_map(|r| Flow::touching(r, span));
            for piece in Flow::touching(flow.writers(s), span).iter().chain(readers) {
                let into = start - piece.start;
                if into > 0 {
                    new.extend(ends(schedule, flow, piece.instr).into_iter().map(|(other, at)| (other, at + into)));
                }
            }
        }
        Ok(pieces)
    }

    /// Returns the index of the first element of each piece of a stream.
    pub fn starts_of(&self, stream: StreamId) -> impl Iterator<Item = u32> + '_ {
        self.starts[stream.index()].iter().copied()
    }

    /// Returns the offset and the length of each piece of an instruction, in elements.
    pub fn of(&self, schedule: &Schedule, flow: &Flow, id: InstrId) -> Vec<(u32, u32)> {
        let len = schedule.instr(id).len;
        let mut starts = vec![0];
        match ends(schedule, flow, id).first() {
            Some(&(s, at)) => starts.extend(self.starts[s.index()].range(at + 1..at + len).map(|b| b - at)),
            None => starts.extend((self.longest..len).step_by(self.longest as usize)),
        }
        let after = starts.iter().copied().skip(1).chain([len]).collect::<Vec<_>>();
        starts.into_iter().zip(after).map(|(from, to)| (from, to - from)).collect()
    }
}
