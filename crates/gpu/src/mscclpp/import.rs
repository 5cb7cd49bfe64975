//! The import of a plan, after its run, as a schedule. A thread block becomes a lane. An operation becomes an
//! instruction; each of its remote buffers becomes a stream to or from an instruction of the other GPU, in a separate
//! lane for each thread block that accesses that GPU. A switch becomes a node. Signals, semaphores and barriers do not
//! become instructions: the run has used them to order all accesses, and in the schedule each access depends on the
//! earlier accesses of the same memory.
//!
//! If only the requesting GPU reads a sum of a switch, the schedule does not store the sum on other GPUs: the runtime
//! has no sum for one GPU, and the result does not wait for these stores.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use unisono_base::{InstrId, NodeId, StreamId, interrupt::poll, narrow};
use unisono_collective::{Collective, Kind};
use unisono_schedule::{
    BuildError, Builder, Operand, Schedule,
    verify::{Rounding, Roundings},
};

use super::{
    alias::Ranges,
    layout::Layout,
    program::{Act, Move, Program, Space, Span},
    run::{At, Run},
};

/// A schedule, and the step of the plan for each instruction. The step is `None` for copies between input and output,
/// and for the message by which a broadcast's root sends its output back for a check.
pub struct Imported {
    pub schedule: Schedule,
    pub steps: Vec<Option<At>>,
    /// The sums that are not plain additions: they begin with +0, or a switch chooses their order.
    pub roundings: Roundings,
}

/// An instruction, preceded by its lane.
type By = (u32, InstrId);

/// An interval of grains that ends at `end`: its last writer, and its readers since then.
#[derive(Clone)]
struct Accessed {
    end: u32,
    writer: Option<By>,
    readers: Vec<By>,
}

/// The intervals of a memory, by their first grain.
#[derive(Default)]
struct Accesses(BTreeMap<u32, Accessed>);

impl Accesses {
    /// Divides the interval that contains `at` in two.
    fn cut(&mut self, at: u32) {
        if let Some((_, entry)) = self.0.range_mut(..at).next_back()
            && entry.end > at
        {
            let rest = entry.clone();
            entry.end = at;
            self.0.insert(at, rest);
        }
    }

    /// Adds an access, and returns the earlier accesses that it must follow.
    fn add(&mut self, span: Span, by: By, writes: bool) -> Vec<By> {
        self.cut(span.start);
        self.cut(span.end());
        let (mut at, mut gaps, mut earlier) = (span.start, Vec::new(), Vec::new());
        for (&start, entry) in self.0.range_mut(span.start..span.end()) {
            if start > at {
                gaps.push((at, start));
            }
            at = entry.end;
            earlier.extend(entry.writer.filter(|_| !writes || entry.readers.is_empty()));
            if writes {
                earlier.append(&mut entry.readers);
                entry.writer = Some(by);
            } else {
                entry.readers.retain(|r| r.0 != by.0);
                entry.readers.push(by);
            }
        }
        if at < span.end() {
            gaps.push((at, span.end()));
        }
        for (start, end) in gaps {
            let (writer, readers) = if writes { (Some(by), Vec::new()) } else { (None, vec![by]) };
            self.0.insert(start, Accessed { end, writer, readers });
        }
        earlier.sort_unstable();
        earlier.dedup();
        earlier
    }
}

/// The instructions of a lane, each with its step of the plan, and the rounding of its sum unless it is a plain
/// addition.
type Lane = Vec<(Option<At>, Option<Rounding>)>;

struct Making<'a> {
    program: &'a Program,
    layout: &'a Layout,
    b: Builder,
    /// The operands at the start of the input, the output, the scratch memory and the packets of each GPU.
    bases: Vec<[Operand; 4]>,
    accesses: BTreeMap<(u32, Space), Accesses>,
    /// The node of each group of GPUs behind a switch.
    switches: BTreeMap<Vec<u32>, NodeId>,
    lanes: BTreeMap<(NodeId, u32), Lane>,
    /// The number of sums by switches so far.
    sums: u32,
    /// The steps whose stores by a switch only the GPU of the step reads.
    for_one: FxHashSet<At>,
}

/// Returns the steps whose multicast by a switch goes to scratch memory that only the GPU of the step reads later.
fn for_one(program: &Program, run: &Run) -> FxHashSet<At> {
    let (mut read_later, mut found) = (BTreeMap::<u32, Ranges>::new(), FxHashSet::default());
    let ends = |span: &Span| (u64::from(span.start), u64::from(span.start) + u64::from(span.len));
    for &at in run.order.iter().rev() {
        let gpu = program.blocks[at.0].gpu;
        let moves =
            || program.step(at).acts.iter().filter_map(|act| if let Act::Move(m) = act { Some(m) } else { None });
        let mut stores = moves().filter(|m| m.by_switch).flat_map(|m| &m.writes).peekable();
        let is_read = |span: &Span| {
            let (start, end) = ends(span);
            span.space != Space::Scratch || read_later.get(&span.gpu).is_some_and(|read| read.meets(start, end))
        };
        if stores.peek().is_some() && stores.all(|span| is_read(span) == (span.gpu == gpu)) {
            found.insert(at);
        }
        for span in moves().flat_map(|m| &m.reads).filter(|span| span.space == Space::Scratch) {
            let (start, end) = ends(span);
            read_later.entry(span.gpu).or_default().add(start, end);
        }
    }
    found
}

/// Returns the schedule of a plan for a known collective. With `root_answers`, the root of a broadcast finally sends
/// its output to another GPU, which stores it in its own output.
///
/// # Errors
/// Returns an error if the tables of a schedule cannot hold it.
pub fn import(
    program: &Program,
    layout: &Layout,
    collective: Collective,
    run: &Run,
    name: &str,
    root_answers: bool,
) -> Result<Imported, BuildError> {
    let mut made = Making {
        program,
        layout,
        b: Builder::new(collective),
        bases: Vec::new(),
        accesses: BTreeMap::new(),
        switches: BTreeMap::new(),
        lanes: BTreeMap::new(),
        sums: 0,
        for_one: for_one(program, run),
    };
    if !name.is_empty() {
        made.b.origin(name);
    }
    let writes_input: std::collections::BTreeSet<u32> =
        program.moves().flat_map(|(_, m)| &m.writes).filter(|s| s.space == Space::Input).map(|s| s.gpu).collect();
    (0..program.gpus).for_each(|gpu| made.place(gpu, writes_input.contains(&gpu)));
    for &at in &run.order {
        poll();
        for act in &program.step(at).acts {
            if let Act::Move(m) = act {
                made.instructions(at, m);
            }
        }
    }
    if layout.in_place() == Some(Kind::ReduceScatter) {
        (0..program.gpus).for_each(|gpu| made.copy_result(gpu));
    }
    if root_answers {
        made.answer(collective.root);
    }
    let (steps, rounded): (Vec<_>, Vec<_>) = made.lanes.into_values().flatten().unzip();
    // Sums of integers are exact.
    let rounded = rounded.into_iter().enumerate().filter(|_| !collective.dtype.is_integer());
    let roundings = rounded.filter_map(|(n, rounding)| Some((InstrId::new(n), rounding?))).collect();
    Ok(Imported { schedule: made.b.finish()?, steps, roundings })
}

impl Making<'_> {
    /// Creates the memories of a GPU. If the plan runs in place, writes its input, or the plan's input is longer than
    /// the collective's, the input is copied first.
    fn place(&mut self, gpu: u32, writes_input: bool) {
        let (node, c) = (NodeId(gpu), *self.b.collective());
        let elements = |space| self.layout.len(gpu, space) * self.layout.elements;
        let [input, output, scratch, packets] = Space::ALL.map(elements);
        let (in_len, out_len) = (c.input_len(gpu), c.output_len(gpu));
        let mut copy = None;
        let out = if out_len >= output { Operand::Out(0) } else { Operand::Tmp(self.b.scratch(node, output)) };
        let (base_in, base_out) = match self.layout.in_place() {
            None if !writes_input && in_len >= input => (Operand::In(0), out),
            None => {
                let shadow = Operand::Tmp(self.b.scratch(node, input));
                copy = Some((Space::Input, 0));
                (shadow, out)
            }
            Some(Kind::ReduceScatter) => {
                copy = Some((Space::Input, 0));
                (Operand::Tmp(self.b.scratch(node, input)), out)
            }
            Some(kind) => {
                let shift = if kind == Kind::Allgather { gpu * in_len } else { 0 };
                copy = Some((Space::Output, shift));
                (out, out)
            }
        };
        let scratch = Operand::Tmp(self.b.scratch(node, scratch));
        let packets = Operand::Tmp(self.b.scratch(node, packets));
        self.bases.push([base_in, base_out, scratch, packets]);
        if let Some((space, shift)) = copy.filter(|_| in_len > 0) {
            let each = self.layout.elements;
            let span = Span { gpu, space, start: shift / each, len: in_len / each };
            let sink = self.operand(span);
            self.combine(node, 0, None, in_len, &[Operand::In(0)], &[sink], &[(span, true)]);
        }
    }

    fn copy_result(&mut self, gpu: u32) {
        let (len, each) = (self.b.collective().output_len(gpu), self.layout.elements);
        let span = Span { gpu, space: Space::Input, start: gpu * (len / each), len: len / each };
        let source = self.operand(span);
        self.combine(NodeId(gpu), 0, None, len, &[source], &[Operand::Out(0)], &[(span, false)]);
    }

    fn answer(&mut self, root: u32) {
        let other = u32::from(root == 0);
        let [from, to] = [root, other].map(|gpu| {
            let len = self.layout.len(gpu, Space::Output);
            self.layout.canonical(Span { gpu, space: Space::Output, start: 0, len })
        });
        let len = from.len * self.layout.elements;
        let stream = self.b.stream(NodeId(root), &[NodeId(other)]);
        let (source, sink) = (self.operand(from), self.operand(to));
        self.combine(NodeId(root), 0, None, len, &[source], &[Operand::Stream(stream)], &[(from, false)]);
        self.combine(NodeId(other), 0, None, len, &[Operand::Stream(stream)], &[sink], &[(to, true)]);
    }

    fn operand(&self, span: Span) -> Operand {
        let by = span.start * self.layout.elements;
        match self.bases[span.gpu as usize][span.space as usize] {
            Operand::In(start) => Operand::In(start + by),
            Operand::Out(start) => Operand::Out(start + by),
            Operand::Tmp(start) => Operand::Tmp(start + by),
            Operand::Stream(s) => Operand::Stream(s),
        }
    }

    /// Adds an instruction that depends on the earlier instructions in conflict with its `accesses`. An access is a
    /// span, and true if it is a write.
    #[expect(clippy::too_many_arguments, reason = "the parts of an instruction")]
    fn combine(
        &mut self,
        node: NodeId,
        lane: u32,
        at: Option<At>,
        len: u32,
        sources: &[Operand],
        sinks: &[Operand],
        accesses: &[(Span, bool)],
    ) {
        let id = self.b.combine(node, lane, len, sources, sinks);
        self.lanes.entry((node, lane)).or_default().push((at, None));
        for &(span, writes) in accesses {
            let earlier = self.accesses.entry((span.gpu, span.space)).or_default().add(span, (lane, id), writes);
            earlier.into_iter().filter(|e| e.0 != lane).for_each(|e| self.b.after(id, e.1));
        }
    }

    /// Returns the lane of `gpu` for the accesses of a thread block, of this or of another GPU, to the memory of `gpu`.
    fn lane(&self, gpu: u32, block: usize) -> u32 {
        let own = &self.program.blocks[block];
        narrow::<u32>(block) + 1 + if own.gpu == gpu { 0 } else { narrow::<u32>(self.program.blocks.len()) }
    }

    /// Returns the lane for the reads, or the writes, of a switch on behalf of a thread block.
    fn switch_lane(&self, block: usize, writes: bool) -> u32 {
        narrow(block + 1 + self.program.blocks.len() * if writes { 3 } else { 2 })
    }

    fn instructions(&mut self, at: At, m: &Move) {
        let gpu = self.program.blocks[at.0].gpu;
        let (node, len) = (NodeId(gpu), m.len() * self.layout.elements);
        if m.by_switch {
            return self.switched(at, m, len);
        }
        let (mut sources, mut sinks, mut accesses) = (Vec::new(), Vec::new(), Vec::new());
        for &read in &m.reads {
            if read.gpu == gpu {
                sources.push(self.operand(read));
                accesses.push((read, false));
            } else {
                let stream = self.b.stream(NodeId(read.gpu), &[node]);
                let lane = self.lane(read.gpu, at.0);
                self.send(at, lane, len, stream, read);
                sources.push(Operand::Stream(stream));
            }
        }
        let mut arriving = Vec::new();
        for &write in &m.writes {
            if write.gpu == gpu {
                sinks.push(self.operand(write));
                accesses.push((write, true));
            } else {
                let stream = self.b.stream(node, &[NodeId(write.gpu)]);
                sinks.push(Operand::Stream(stream));
                arriving.push((stream, write));
            }
        }
        let lane = self.lane(gpu, at.0);
        self.combine(node, lane, Some(at), len, &sources, &sinks, &accesses);
        if m.from_zero {
            self.round(node, lane, Rounding::FromZero);
        }
        for (stream, write) in arriving {
            let lane = self.lane(write.gpu, at.0);
            self.receive(at, NodeId(write.gpu), lane, len, stream, write);
        }
    }

    /// Records the rounding of the last instruction of a lane.
    fn round(&mut self, node: NodeId, lane: u32, rounding: Rounding) {
        if let Some(last) = self.lanes.entry((node, lane)).or_default().last_mut() {
            last.1 = Some(rounding);
        }
    }

    fn send(&mut self, at: At, lane: u32, len: u32, stream: StreamId, read: Span) {
        let source = self.operand(read);
        self.combine(NodeId(read.gpu), lane, Some(at), len, &[source], &[Operand::Stream(stream)], &[(read, false)]);
    }

    fn receive(&mut self, at: At, node: NodeId, lane: u32, len: u32, stream: StreamId, write: Span) {
        let sink = self.operand(write);
        self.combine(node, lane, Some(at), len, &[Operand::Stream(stream)], &[sink], &[(write, true)]);
    }

    /// Adds a move through a switch, which reduces the data of the group, or copies the data of one GPU, and sends the
    /// result to the group.
    fn switched(&mut self, at: At, m: &Move, len: u32) {
        let group: Vec<u32> = m.writes.iter().map(|s| s.gpu).collect();
        let known = self.switches.get(&group).copied();
        let switch = known.unwrap_or_else(|| self.b.switch());
        self.switches.insert(group.clone(), switch);
        let mut sources = Vec::new();
        for &read in &m.reads {
            let stream = self.b.stream(NodeId(read.gpu), &[switch]);
            let lane = self.switch_lane(at.0, false);
            self.send(at, lane, len, stream, read);
            sources.push(Operand::Stream(stream));
        }
        let leader = self.program.blocks[at.0].gpu;
        let (own, others): (Vec<Span>, Vec<Span>) = m.writes.iter().copied().partition(|write| write.gpu == leader);
        let others = if self.for_one.contains(&at) { Vec::new() } else { others };
        // The leader has its own stream, because its link carries more data than the links of the other GPUs.
        let mut sinks = Vec::new();
        for writes in [&own, &others].into_iter().filter(|writes| !writes.is_empty()) {
            let nodes: Vec<NodeId> = writes.iter().map(|write| NodeId(write.gpu)).collect();
            sinks.push(self.b.stream(switch, &nodes));
        }
        let operands: Vec<Operand> = sinks.iter().map(|&stream| Operand::Stream(stream)).collect();
        self.combine(switch, narrow(at.0), Some(at), len, &sources, &operands, &[]);
        if sources.len() > 1 {
            self.round(switch, narrow(at.0), Rounding::Own(self.sums));
            self.sums += 1;
        }
        let lane = self.switch_lane(at.0, true);
        for (writes, stream) in [own, others].into_iter().filter(|writes| !writes.is_empty()).zip(sinks) {
            for write in writes {
                self.receive(at, NodeId(write.gpu), lane, len, stream, write);
            }
        }
    }
}
