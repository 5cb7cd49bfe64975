//! An index of a schedule: the range of stream elements that each operand transfers, and each stream's writers and
//! readers.
//!
//! One lane of the source writes a stream, and one lane of each sink reads the stream. So the FIFO order of a stream is
//! program order. [`well_formed::check`] enforces this.

use std::ops::Range;

use unisono_base::{Diagnostics, InstrId, LaneId, NodeId, Span, StreamId, interrupt::poll};

use crate::{
    instrs::Instr,
    schedule::{Operand, Schedule},
    well_formed,
};

/// Range of a stream that one instruction pushes or pops; its length is that of the instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// First element of the range, counted from the start of the stream.
    pub start: u32,
    pub instr: InstrId,
}

#[derive(Default)]
pub struct Flow {
    /// First stream element of each operand, by instruction; 0 for slices of memory.
    position: Vec<u32>,
    /// Index in `position` of the first operand of each instruction. Empty if it is [`Instr::first_operand`].
    first: Vec<u32>,
    lane_of: Vec<LaneId>,
    node_of_lane: Vec<NodeId>,
    writer_rows: Vec<u32>,
    writers: Vec<Piece>,
    reader_rows: Vec<u32>,
    /// The pieces that are popped, sorted by stream, then by sink node, then by position.
    readers: Vec<Piece>,
}

impl Flow {
    /// Indexes a schedule, and adds violations of the rules of [`well_formed`] to `found`. The index is empty if
    /// `found` is not empty.
    pub fn new(schedule: &Schedule, found: &mut Diagnostics) -> Self {
        well_formed::check(schedule, found);
        if found.is_empty() { Self::index(schedule) } else { Self::default() }
    }

    /// Indexes a schedule that [`well_formed::check`] found to be well-formed.
    pub(crate) fn index(schedule: &Schedule) -> Self {
        let (operands, first) = schedule.instrs.starts();
        let mut flow = Self {
            position: vec![0; operands],
            first,
            lane_of: schedule.lanes_of_instrs(),
            node_of_lane: schedule.nodes_of_lanes(),
            writer_rows: vec![0; schedule.streams.len() + 1],
            reader_rows: vec![0; schedule.streams.len() + 1],
            ..Self::default()
        };
        flow.count(schedule);
        flow.fill(schedule);
        flow
    }

    fn count(&mut self, schedule: &Schedule) {
        for id in (0..schedule.instrs.len()).map(InstrId::new) {
            poll();
            let (_, sources, sinks) = schedule.whole(id);
            for s in sources.iter().filter_map(Operand::stream) {
                self.reader_rows[s.index() + 1] += 1;
            }
            for s in sinks.iter().filter_map(Operand::stream) {
                self.writer_rows[s.index() + 1] += 1;
            }
        }
        for rows in [&mut self.writer_rows, &mut self.reader_rows] {
            for i in 1..rows.len() {
                rows[i] += rows[i - 1];
            }
        }
        let none = Piece { start: 0, instr: InstrId(0) };
        self.writers = vec![none; self.writer_rows.last().map_or(0, |&n| n as usize)];
        self.readers = vec![none; self.reader_rows.last().map_or(0, |&n| n as usize)];
    }

    fn fill(&mut self, schedule: &Schedule) {
        /// For a stream, the next row in `writers`, the next row in `readers`, and the numbers of elements pushed and
        /// popped. `popped` is used only if every stream has one sink. The numbers are stored together, because streams
        /// are accessed at random addresses.
        struct Next {
            writer: u32,
            reader: u32,
            pushed: u32,
            popped: u32,
        }
        let rows = self.writer_rows.iter().zip(&self.reader_rows);
        let next = |(&writer, &reader)| Next { writer, reader, pushed: 0, popped: 0 };
        let mut next: Vec<Next> = rows.map(next).collect();
        let one_sink_each = schedule.has_one_sink_each();
        let mut by_sink = vec![0; if one_sink_each { 0 } else { schedule.sinks.len() }];
        let take = |from: &mut u32, count: u32| {
            *from += count;
            *from - count
        };
        for id in (0..schedule.instrs.len()).map(InstrId::new) {
            poll();
            let (instr, sources, sinks) = schedule.whole(id);
            let (len, first) = (instr.len, self.first(id, instr));
            for (row, source) in (first..).zip(sources.iter()) {
                if let Operand::Stream(s) = source {
                    let next = &mut next[s.index()];
                    let popped = if one_sink_each {
                        &mut next.popped
                    } else {
                        &mut by_sink[schedule.row_of_sink(s, self.node_of(id))]
                    };
                    let start = take(popped, len);
                    self.position[row] = start;
                    self.readers[take(&mut next.reader, 1) as usize] = Piece { start, instr: id };
                }
            }
            for (row, sink) in (first + sources.len()..).zip(sinks.iter()) {
                if let Operand::Stream(s) = sink {
                    let next = &mut next[s.index()];
                    let start = take(&mut next.pushed, len);
                    self.position[row] = start;
                    self.writers[take(&mut next.writer, 1) as usize] = Piece { start, instr: id };
                }
            }
        }
    }

    pub fn lane_of(&self, id: InstrId) -> LaneId {
        self.lane_of[id.index()]
    }

    pub fn node_of(&self, id: InstrId) -> NodeId {
        self.node_of_lane[self.lane_of[id.index()].index()]
    }

    /// Returns the sources of an instruction, each with the first stream element that it pops; 0 for memory.
    #[inline(always)]
    pub(crate) fn sources<'a>(
        &'a self,
        schedule: &'a Schedule,
        id: InstrId,
    ) -> impl Iterator<Item = (Operand, u32)> + 'a {
        let (instr, sources, _) = schedule.whole(id);
        sources.iter().zip(self.position[self.first(id, instr)..].iter().copied())
    }

    /// Returns the sinks of an instruction, each with the first stream element that it pushes; 0 for memory.
    #[inline(always)]
    pub(crate) fn sinks<'a>(
        &'a self,
        schedule: &'a Schedule,
        id: InstrId,
    ) -> impl Iterator<Item = (Operand, u32)> + 'a {
        let (instr, sources, sinks) = schedule.whole(id);
        sinks.iter().zip(self.position[self.first(id, instr) + sources.len()..].iter().copied())
    }

    /// Returns the index in `position` of the first operand of an instruction.
    #[inline(always)]
    fn first(&self, id: InstrId, instr: Instr) -> usize {
        self.first.get(id.index()).copied().unwrap_or(instr.first_operand) as usize
    }

    pub fn writers(&self, id: StreamId) -> &[Piece] {
        &self.writers[rows(&self.writer_rows, id)]
    }

    /// Returns the instructions that pop a stream, sorted by sink, then by position.
    pub fn readers(&self, id: StreamId) -> &[Piece] {
        &self.readers[rows(&self.reader_rows, id)]
    }

    /// Returns the streams among an instruction's sources, each with the range of elements popped.
    #[inline(always)]
    pub fn pops<'a>(&'a self, schedule: &'a Schedule, id: InstrId) -> impl Iterator<Item = (StreamId, Span)> + 'a {
        spans(schedule.instr(id).len, self.sources(schedule, id))
    }

    /// Returns the streams among an instruction's sinks, each with the range of elements pushed.
    #[inline(always)]
    pub fn pushes<'a>(&'a self, schedule: &'a Schedule, id: InstrId) -> impl Iterator<Item = (StreamId, Span)> + 'a {
        spans(schedule.instr(id).len, self.sinks(schedule, id))
    }

    /// Returns the pieces that overlap `span`. `pieces` must be the writers of a stream, or its readers at one sink:
    /// each piece ends at the start of the next one.
    pub fn touching(pieces: &[Piece], span: Span) -> &[Piece] {
        // Most streams are cut into pieces of about equal length, at the same elements at both ends, so the guess is
        // mostly right.
        let guess = (span.start / span.len.max(1)) as usize;
        let from = match pieces.get(guess) {
            Some(p) if p.start == span.start => guess,
            _ => pieces.partition_point(|p| p.start <= span.start).saturating_sub(1),
        };
        let rest = &pieces[from..];
        let to = match rest.get(1) {
            Some(p) if u64::from(p.start) >= span.end() => 1,
            _ => rest.partition_point(|p| u64::from(p.start) < span.end()),
        };
        &rest[..to]
    }

    /// Returns the readers of a stream, one slice for each sink that pops elements.
    pub fn readers_by_sink(&self, id: StreamId) -> impl Iterator<Item = &[Piece]> {
        let mut rest = self.readers(id);
        std::iter::from_fn(move || {
            let node = self.node_of(rest.first()?.instr);
            // Most streams have one sink. Otherwise sinks ascend, and binary search finds the last piece of each sink.
            let one = rest.last().is_some_and(|p| self.node_of(p.instr) == node);
            let end = if one { rest.len() } else { rest.partition_point(|p| self.node_of(p.instr) <= node) };
            let (here, others) = rest.split_at(end);
            rest = others;
            Some(here)
        })
    }
}

/// Returns the streams among operands of `len` elements, each with its range.
#[inline(always)]
fn spans(len: u32, operands: impl Iterator<Item = (Operand, u32)>) -> impl Iterator<Item = (StreamId, Span)> {
    operands.filter_map(move |(operand, position)| Some((operand.stream()?, Span::new(position, len))))
}

fn rows(starts: &[u32], id: StreamId) -> Range<usize> {
    starts[id.index()] as usize..starts[id.index() + 1] as usize
}
