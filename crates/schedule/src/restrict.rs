//! Restricts a schedule to the instructions that part of its outputs needs, such as a reduce out of an allreduce or a
//! scatter out of a broadcast. Also restricts a schedule to the instructions that part of its inputs determines, such
//! as a broadcast out of an allreduce.
//!
//! A walk against the topological order finds, for each instruction, the smallest range of its elements that contains
//! all needed elements, as compilers find live variables. Both ends of a stream must keep the same elements. If an
//! instruction pops more elements than it needs, it needs these elements too, so the walk is repeated until nothing
//! changes. After [`MOST_WALKS`] walks, everything is kept.

use std::collections::BTreeSet;

use unisono_base::{Diagnostics, InstrId, LaneId, NodeId, Span, narrow};

use crate::{
    builder::{BuildError, Builder},
    flow::Flow,
    order::topological,
    schedule::{Operand, Schedule},
};

/// The most walks. Their time is proportional to the number of instructions. Two walks suffice for all algorithms
/// except long chains.
const MOST_WALKS: usize = 8;

/// Disjoint ranges `start .. end` of the elements of a buffer, ascending.
#[derive(Clone, Default)]
struct Ranges(Vec<(u32, u32)>);

impl Ranges {
    fn add(&mut self, Span { start, len }: Span) {
        let (mut start, mut end) = (start, start + len);
        let from = self.0.partition_point(|range| range.1 < start);
        let to = self.0.partition_point(|range| range.0 <= end);
        if from < to {
            (start, end) = (start.min(self.0[from].0), end.max(self.0[to - 1].1));
        }
        self.0.splice(from..to, (start < end).then_some((start, end)));
    }

    fn remove(&mut self, Span { start, len }: Span) {
        let end = start + len;
        let from = self.0.partition_point(|range| range.1 <= start);
        let to = self.0.partition_point(|range| range.0 < end);
        if from < to {
            let ends = [(self.0[from].0, start), (end, self.0[to - 1].1)];
            self.0.splice(from..to, ends.into_iter().filter(|range| range.0 < range.1));
        }
    }

    /// Returns the parts of `span` that are in the ranges, as spans counted from the start of `span`.
    fn of(&self, Span { start, len }: Span) -> Vec<Span> {
        let from = self.0.partition_point(|range| range.1 <= start);
        let parts = self.0[from..].iter().take_while(|range| range.0 < start + len);
        parts
            .map(|range| (range.0.max(start) - start, range.1.min(start + len) - start))
            .map(|(from, end)| Span::new(from, end - from))
            .collect()
    }

    /// Returns the smallest span, counted from the start of `span`, that contains all elements of `span` in the ranges.
    fn within(&self, Span { start, len }: Span) -> Span {
        let from = self.0.partition_point(|range| range.1 <= start);
        let to = self.0.partition_point(|range| range.0 < start + len);
        if from == to {
            return Span::new(0, 0);
        }
        let (first, end) = (self.0[from].0.max(start), self.0[to - 1].1.min(start + len));
        Span::new(first - start, end - first)
    }
}

/// Returns the smallest span that contains both spans.
fn hull(a: Span, b: Span) -> Span {
    if a.is_empty() || b.is_empty() {
        return if a.is_empty() { b } else { a };
    }
    let start = a.start.min(b.start);
    Span::new(start, narrow::<u32>(a.end().max(b.end())) - start)
}

/// The needed elements of all instructions.
struct Needs<'a> {
    schedule: &'a Schedule,
    flow: Flow,
    order: Vec<InstrId>,
    /// The elements that an instruction must pop, because the other end of the stream pushes them.
    popped: Vec<Span>,
    of: Vec<Span>,
}

impl<'a> Needs<'a> {
    fn new(schedule: &'a Schedule, kept: impl Fn(u32) -> Span) -> Self {
        let flow = Flow::index(schedule);
        let order = topological(schedule, &flow, &mut Diagnostics::default());
        let none = vec![Span::new(0, 0); schedule.instr_count()];
        let mut needs = Self { schedule, flow, order, popped: none.clone(), of: none };
        needs.keep_uneven_streams();
        for _ in 0..MOST_WALKS {
            needs.walk(&kept);
            if !needs.pop_what_is_pushed() {
                return needs;
            }
        }
        needs.of = (0..schedule.instr_count()).map(|id| Span::new(0, schedule.instr(InstrId::new(id)).len)).collect();
        needs
    }

    /// Returns the instructions that pop the elements that an instruction pushes to the stream of operand `row`, one
    /// for each sink. `None` unless each of them pops exactly these elements.
    fn readers(&self, (sink, position): (Operand, u32), id: InstrId) -> Option<Vec<InstrId>> {
        let (stream, len) = (sink.stream()?, self.schedule.instr(id).len);
        let span = Span::new(position, len);
        let of_sink = |pieces| match Flow::touching(pieces, span) {
            [one] if one.start == span.start && self.schedule.instr(one.instr).len == len => Some(one.instr),
            _ => None,
        };
        self.flow.readers_by_sink(stream).map(of_sink).collect()
    }

    /// Keeps all elements of streams whose pops and pushes are cut at different elements.
    fn keep_uneven_streams(&mut self) {
        for stream in self.schedule.all_streams() {
            let writers = self.flow.writers(stream);
            let is_even = |readers: &[crate::flow::Piece]| {
                let ends = |piece: &crate::flow::Piece| (piece.start, self.schedule.instr(piece.instr).len);
                readers.iter().map(ends).eq(writers.iter().map(ends))
            };
            if !self.flow.readers_by_sink(stream).all(is_even) {
                for id in writers.iter().chain(self.flow.readers(stream)).map(|piece| piece.instr) {
                    self.popped[id.index()] = Span::new(0, self.schedule.instr(id).len);
                }
            }
        }
    }

    fn walk(&mut self, kept: &impl Fn(u32) -> Span) {
        let schedule = self.schedule;
        let (mut outs, mut tmps) = (vec![Ranges::default(); schedule.node_count()], Vec::new());
        tmps.clone_from(&outs);
        for (rank, out) in (0..schedule.collective().ranks).zip(&mut outs) {
            out.add(kept(rank));
        }
        for &id in self.order.iter().rev() {
            let (node, len) = (self.flow.node_of(id).index(), schedule.instr(id).len);
            let mut needed = self.popped[id.index()];
            for sink in self.flow.sinks(schedule, id) {
                needed = match sink.0 {
                    Operand::Out(start) => hull(needed, outs[node].within(Span::new(start, len))),
                    Operand::Tmp(start) => hull(needed, tmps[node].within(Span::new(start, len))),
                    Operand::Stream(_) => {
                        let readers = self.readers(sink, id).unwrap_or_default();
                        readers.iter().fold(needed, |needed, reader| hull(needed, self.of[reader.index()]))
                    }
                    Operand::In(_) => needed,
                };
            }
            self.of[id.index()] = needed;
            let place = |start: u32| Span::new(start + needed.start, needed.len);
            for sink in schedule.sinks(id).iter().filter(|_| !needed.is_empty()) {
                match sink {
                    Operand::Out(start) => outs[node].remove(place(start)),
                    Operand::Tmp(start) => tmps[node].remove(place(start)),
                    Operand::In(_) | Operand::Stream(_) => {}
                }
            }
            for source in schedule.sources(id).iter().filter(|_| !needed.is_empty()) {
                match source {
                    Operand::Out(start) => outs[node].add(place(start)),
                    Operand::Tmp(start) => tmps[node].add(place(start)),
                    Operand::In(_) | Operand::Stream(_) => {}
                }
            }
        }
    }

    /// Makes readers pop, and use, all elements that are pushed to them. Returns false if they already do.
    fn pop_what_is_pushed(&mut self) -> bool {
        let mut changed = false;
        for at in 0..self.order.len() {
            let id = self.order[at];
            let pushed = self.of[id.index()];
            for sink in self.flow.sinks(self.schedule, id) {
                for reader in self.readers(sink, id).unwrap_or_default() {
                    if self.of[reader.index()] != pushed {
                        self.popped[reader.index()] = pushed;
                        self.of[reader.index()] = pushed;
                        changed = true;
                    }
                }
            }
        }
        changed
    }

    /// Returns the smallest span of a rank's output that needed instructions read or write.
    fn output(&self, node: NodeId) -> Span {
        let of = |id: InstrId| {
            let needed = self.of[id.index()];
            let operands = self.schedule.sources(id).iter().chain(self.schedule.sinks(id).iter());
            operands.fold(Span::new(0, 0), |all, operand| match operand {
                Operand::Out(start) if !needed.is_empty() => hull(all, Span::new(start + needed.start, needed.len)),
                _ => all,
            })
        };
        self.schedule.node_instrs(node).map(InstrId::new).map(of).fold(Span::new(0, 0), hull)
    }
}

impl Schedule {
    /// Returns the part of the schedule that its ranks need for some of their outputs. The output of rank `r` becomes
    /// the span `kept(r)`, in the numbering of the instructions. Instructions may name elements beyond the end of an
    /// input, as padding of blocks, if these elements do not change the kept outputs.
    ///
    /// # Errors
    ///
    /// Returns an error if the tables cannot hold the schedule.
    pub fn restricted(&self, kept: impl Fn(u32) -> Span) -> Result<Schedule, BuildError> {
        let needs = Needs::new(self, &kept);
        let mut b = Builder::new(*self.collective());
        b.origin(self.origin());
        let streams: Vec<_> =
            self.all_streams().map(|s| b.stream(self.stream(s).source, self.stream_sinks(s))).collect();
        let mut made = vec![None; self.instr_count()];
        for node in (0..self.collective().ranks).map(NodeId) {
            b.scratch(node, self.scratch_elements(node));
            let (kept, used) = (kept(node.0), needs.output(node));
            // If some output elements are forwarded but not kept, all used elements of the output move to scratch
            // memory.
            let is_kept = used.is_empty() || used.start >= kept.start && used.end() <= kept.end();
            let moved = if is_kept { None } else { Some(b.scratch(node, used.len)) };
            let place = |operand: Operand| match operand {
                Operand::Out(start) => match moved {
                    None => Operand::Out(start - kept.start),
                    Some(at) => Operand::Tmp(at + (start - used.start)),
                },
                Operand::Stream(s) => Operand::Stream(streams[s.index()]),
                other => other,
            };
            self.rebuild(&mut b, node, &mut made, place, |id| {
                let needed = needs.of[id.index()];
                vec![(needed, self.sources(id).iter().map(|source| offset(source, needed.start)).collect())]
            });
            if let Some(at) = moved.filter(|_| !kept.is_empty()) {
                let ends = b.lane_ends(node);
                let last =
                    b.combine(node, 0, kept.len, &[Operand::Tmp(at + (kept.start - used.start))], &[Operand::Out(0)]);
                ends.into_iter().for_each(|end| b.after(last, end));
            }
        }
        self.order_rebuilt(&mut b, &made);
        b.finish()
    }

    /// Returns the schedule with other inputs, by a walk in topological order. Rank `r` has `inputs(r)` elements; reads
    /// beyond the end of the input repeat its elements. A rank with `None` has no input: sources that hold only its
    /// data are dropped, and so are instructions without other sources. A sum of several remaining sources stays a sum.
    ///
    /// # Errors
    ///
    /// Returns an error if the tables cannot hold the schedule.
    pub fn fed(&self, inputs: impl Fn(u32) -> Option<u32>) -> Result<Schedule, BuildError> {
        let flow = Flow::index(self);
        let mut outs = vec![Ranges::default(); self.node_count()];
        let (mut tmps, mut streams) = (outs.clone(), vec![Ranges::default(); self.all_streams().count()]);
        let mut pieces = vec![Vec::new(); self.instr_count()];
        for id in topological(self, &flow, &mut Diagnostics::default()) {
            let (node, len) = (flow.node_of(id).index(), self.instr(id).len);
            let fed = |(operand, position): (Operand, u32)| {
                let (fed, start) = match operand {
                    Operand::In(start) => return repeated(inputs(narrow(node)).unwrap_or(0), Span::new(start, len)),
                    Operand::Out(start) => (&outs[node], start),
                    Operand::Tmp(start) => (&tmps[node], start),
                    Operand::Stream(s) => (&streams[s.index()], position),
                };
                let ranges = fed.of(Span::new(start, len)).into_iter();
                ranges.map(|range| (range, offset(operand, range.start))).collect::<Vec<_>>()
            };
            let sources: Vec<(Span, Operand)> = flow.sources(self, id).flat_map(fed).collect();
            let ends = sources.iter().flat_map(|(range, _)| [range.start, narrow(range.end())]);
            let ends: BTreeSet<u32> = ends.collect();
            let of_piece = |(&start, &end): (&u32, &u32)| {
                let within = |(range, _): &&(Span, Operand)| range.start <= start && u64::from(end) <= range.end();
                let source = |(range, operand): &(Span, Operand)| offset(*operand, start - range.start);
                (Span::new(start, end - start), sources.iter().filter(within).map(source).collect::<Vec<_>>())
            };
            let made = ends.iter().zip(ends.iter().skip(1)).map(of_piece).filter(|piece| !piece.1.is_empty());
            pieces[id.index()] = made.collect();
            for (operand, position) in flow.sinks(self, id) {
                let (fed, first) = match operand {
                    Operand::Out(start) => (&mut outs[node], start),
                    Operand::Tmp(start) => (&mut tmps[node], start),
                    Operand::Stream(s) => (&mut streams[s.index()], position),
                    Operand::In(_) => continue,
                };
                fed.remove(Span::new(first, len));
                pieces[id.index()].iter().for_each(|(Span { start, len }, _)| fed.add(Span::new(first + start, *len)));
            }
        }
        let mut b = Builder::new(*self.collective());
        b.origin(self.origin());
        let mut made = vec![None; self.instr_count()];
        for stream in self.all_streams() {
            b.stream(self.stream(stream).source, self.stream_sinks(stream));
        }
        for node in (0..self.collective().ranks).map(NodeId) {
            b.scratch(node, self.scratch_elements(node));
            self.rebuild(&mut b, node, &mut made, |operand| operand, |id| std::mem::take(&mut pieces[id.index()]));
        }
        self.order_rebuilt(&mut b, &made);
        b.finish()
    }

    /// Adds the instructions of a node again, each as the pieces `pieces(id)` of its elements with their sources.
    /// `place` replaces their operands. Stores the first and last new instruction of each old instruction in `made`.
    fn rebuild(
        &self,
        b: &mut Builder,
        node: NodeId,
        made: &mut [Option<(InstrId, InstrId)>],
        place: impl Fn(Operand) -> Operand,
        mut pieces: impl FnMut(InstrId) -> Vec<(Span, Vec<Operand>)>,
    ) {
        for (lane, row) in self.lanes(node).enumerate() {
            let lane = narrow(lane);
            for id in self.lane_instrs(LaneId::new(row)).map(InstrId::new) {
                for (Span { start, len }, sources) in pieces(id) {
                    if len == 0 {
                        continue;
                    }
                    b.phase(&self.phases()[self.phase(id).index()]);
                    let mut sources: Vec<Operand> = sources.into_iter().map(&place).collect();
                    let sinks: Vec<Operand> = self.sinks(id).iter().map(|sink| place(offset(sink, start))).collect();
                    if sources == sinks {
                        continue;
                    }
                    for source in &mut sources {
                        if let Operand::In(start) = *source {
                            *source = padded(b, node, lane, Span::new(start, len), self.input_len(node));
                        }
                    }
                    let last = b.combine(node, lane, len, &sources, &sinks);
                    made[id.index()] = Some((made[id.index()].map_or(last, |(first, _)| first), last));
                }
            }
        }
    }

    /// Adds the dependencies between the instructions that [`Schedule::rebuild`] made.
    fn order_rebuilt(&self, b: &mut Builder, made: &[Option<(InstrId, InstrId)>]) {
        for &(id, earlier) in self.dependencies() {
            let end = narrow(self.lane_instrs(self.lane_of(id)).end);
            let first = (id.0..end).find_map(|id| made[id as usize]);
            if let Some((first, _)) = first {
                self.kept_before(earlier, made).into_iter().for_each(|earlier| b.after(first, earlier));
            }
        }
    }

    /// Returns the instructions of the restricted schedule that must complete before instruction `id` can: the new
    /// instruction if `id` is kept. Otherwise these are the last kept instruction before `id` in its lane, and the kept
    /// instructions on which `id` and the dropped instructions between depend.
    fn kept_before(&self, id: InstrId, made: &[Option<(InstrId, InstrId)>]) -> Vec<InstrId> {
        let mut found = Vec::new();
        for id in (self.lane_instrs(self.lane_of(id)).start..=id.index()).rev() {
            if let Some((_, kept)) = made[id] {
                found.push(kept);
                break;
            }
            let before = self.after(InstrId::new(id)).iter();
            found.extend(before.flat_map(|&(_, earlier)| self.kept_before(earlier, made)));
        }
        found
    }
}

/// Returns the operand that starts `by` elements after another operand. A stream is returned unchanged, because it
/// continues by itself.
fn offset(operand: Operand, by: u32) -> Operand {
    match operand {
        Operand::In(start) => Operand::In(start + by),
        Operand::Out(start) => Operand::Out(start + by),
        Operand::Tmp(start) => Operand::Tmp(start + by),
        Operand::Stream(_) => operand,
    }
}

/// Divides a span of an input that repeats its first `period` elements: returns ranges of the span with the operands
/// that hold them. Returns no ranges if the input is empty.
fn repeated(period: u32, Span { start, len }: Span) -> Vec<(Span, Operand)> {
    let (mut parts, mut done) = (Vec::new(), 0);
    while done < len && period > 0 {
        let first = (start + done) % period;
        let count = (period - first).min(len - done);
        parts.push((Span::new(done, count), Operand::In(first)));
        done += count;
    }
    parts
}

/// Returns the source of the elements `span` of a rank's input. If the span ends beyond the input, it is copied to
/// scratch memory, with other elements of the input as padding.
fn padded(b: &mut Builder, node: NodeId, lane: u32, Span { start, len }: Span, input: u32) -> Operand {
    if start + len <= input {
        return Operand::In(start);
    }
    let at = b.scratch(node, len);
    let mut done = input.saturating_sub(start);
    b.combine(node, lane, done, &[Operand::In(start)], &[Operand::Tmp(at)]);
    while done < len && input > 0 {
        let more = input.min(len - done);
        b.combine(node, lane, more, &[Operand::In(0)], &[Operand::Tmp(at + done)]);
        done += more;
    }
    Operand::Tmp(at)
}
