//! The conversion of a schedule for GPUs to a plan.
//!
//! Each GPU runs its instructions in one order of the whole schedule, in thread blocks of at most [`limits::OPS`]
//! operations, each of which starts when the previous one has ended. Each stream is stored in its own part of the
//! receiver's scratch memory: as packets in protocol LL, and by puts with signals in protocol Simple. No memory is
//! written twice, and each wait is for an earlier instruction in the order of the whole schedule, which excludes
//! deadlocks.
//!
//! Several thread blocks can share the work of each thread block ([`Form::shares`]): each does its share of every
//! operation, with its own channels and semaphores. They never wait for each other, so each share of a slice must be
//! read by the share that wrote it, that is, in slices of the same chunks. If slices are divided differently,
//! operations are on single chunks ([`Form::pieces`]).
//!
//! GPUs of one box have memory channels, and those of different boxes port channels. One or more GPUs request the work
//! of a switch ([`super::behind_switches`]). All plans are also correct if input and output share memory
//! ([`super::alias`]).

use std::collections::{BTreeMap, BTreeSet};

use unisono_base::{InstrId, NodeId, Span, StreamId, narrow};
use unisono_collective::Kind;
use unisono_schedule::{Flow, Operand, Schedule};

use super::{
    alias,
    behind_switches::{BehindSwitches, requests},
    limits,
    plan::{Buffer, Name, Plan, Protocol, Slice},
    step::{At, Step},
};

/// The number of operations of a thread block that instructions may fill. The other 6 operations are for its start and
/// its end.
const ROOM: usize = limits::OPS - 6;

/// The choices that distinguish the plans for one schedule.
#[derive(Clone, Copy, Debug)]
pub struct Form<'a> {
    pub protocol: Protocol,
    /// The number of elements of a chunk.
    pub unit: u32,
    pub in_place: bool,
    /// True if receivers of packets signal to the senders, at the end of the plan, that the packets have been read.
    pub answers: bool,
    /// The number of the box of each GPU.
    pub boxes: &'a [u32],
    /// The number of thread blocks that each do a share of every operation.
    pub shares: u32,
    /// True if every operation is on a single chunk.
    pub pieces: bool,
    /// True if several GPUs request parts of a sum from a switch where [`BehindSwitches::part`] permits that.
    pub parted: bool,
}

pub struct Exporter<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) flow: &'a Flow,
    order: &'a [InstrId],
    pub(super) form: Form<'a>,
    pub(super) switches: BehindSwitches,
    /// For each stream and sink, the offset of the received data in the sink's scratch memory, in chunks or packets.
    pub(super) landing: BTreeMap<(StreamId, NodeId), u32>,
    /// For each GPU, the number of chunks of scratch memory for streams.
    pub(super) landed: Vec<u32>,
    /// For each GPU, the number of chunks of the schedule's own scratch memory.
    pub(super) own: Vec<u32>,
    /// For each GPU, the number of chunks of the input's copy.
    pub(super) copied: Vec<u32>,
    /// For each GPU, the number of chunks of scratch memory for intermediate results of an instruction.
    pub(super) temporary: Vec<u32>,
    /// For each instruction, true if it reads inputs from the copy of the input.
    endangered: Vec<bool>,
    /// The thread blocks of each instruction; all thread blocks that share work ([`Form::shares`]) count as one.
    blocks: Vec<Vec<At>>,
    /// The index of the last thread block of each GPU; all thread blocks that share work count as one.
    pub(super) last: Vec<usize>,
    pub(super) made: BTreeMap<At, Vec<Step>>,
    /// The channels between two thread blocks of different GPUs.
    pub(super) channels: BTreeSet<(At, At)>,
    /// The number of messages that the first thread block has sent to the second one.
    pub(super) sent: BTreeMap<(At, At), u32>,
    /// The number of messages of the first thread block for which the second one has waited.
    pub(super) waited: BTreeMap<(At, At), u32>,
    /// The number of a message, counted from 1 for each pair of thread blocks. The key is the instruction that writes
    /// the stream, the writing thread block and the reading thread block.
    pub(super) messages: BTreeMap<(InstrId, At, At), u32>,
    /// Pairs of a leader and a GPU. A switch has accessed the GPU's memory for the leader, and the leader has not yet
    /// signaled the end of the access to the GPU.
    pub(super) untold: BTreeSet<(u32, u32)>,
}

impl<'a> Exporter<'a> {
    /// # Errors
    /// Returns the reason if a plan cannot express the work of a switch.
    pub fn new(schedule: &'a Schedule, flow: &'a Flow, order: &'a [InstrId], form: Form<'a>) -> Result<Self, String> {
        let (unit, box_of) = (form.unit, |gpu: u32| form.boxes[gpu as usize]);
        let mut switches = requests(schedule, flow, order, unit, &box_of)?;
        if form.parted {
            switches.part(schedule, flow);
        }
        let mut landing = BTreeMap::new();
        let gpus = schedule.collective().ranks as usize;
        let mut landed = vec![switches.chunks; gpus];
        for stream in schedule.all_streams().filter(|stream| !switches.places.contains_key(stream)) {
            for &sink in schedule.stream_sinks(stream) {
                landing.insert((stream, sink), landed[sink.index()]);
                landed[sink.index()] += schedule.stream(stream).len / unit;
            }
        }
        let nodes = || schedule.all_nodes().take(gpus);
        let own = nodes().map(|n| schedule.scratch_elements(n).div_ceil(unit)).collect();
        let endangered = alias::endangered(schedule, flow, order);
        let (mut copied, mut temporary) = (vec![0; gpus], vec![0; gpus]);
        for &id in order {
            let node = flow.node_of(id);
            if node.index() >= gpus {
                continue;
            }
            let chunks = schedule.instr(id).len / unit * narrow::<u32>(1 + schedule.sources(id).len());
            temporary[node.index()] = chunks.max(temporary[node.index()]);
            if endangered[id.index()] {
                copied[node.index()] = schedule.input_len(node) / unit;
            }
        }
        let (blocks, made) = (vec![Vec::new(); schedule.instr_count()], BTreeMap::new());
        let (channels, sent, waited, messages, untold) = Default::default();
        let mut exporter = Self {
            schedule,
            flow,
            order,
            form,
            switches,
            landing,
            landed,
            own,
            copied,
            temporary,
            endangered,
            blocks,
            last: Vec::new(),
            made,
            channels,
            sent,
            waited,
            messages,
            untold,
        };
        exporter.assign();
        Ok(exporter)
    }

    /// Returns the largest number of thread blocks of a GPU; all thread blocks that share work count as one.
    pub fn chain(&self) -> usize {
        1 + self.last.iter().copied().max().unwrap_or(0)
    }

    /// Returns the plan with all operations.
    pub fn write(mut self) -> Plan {
        for gpu in 0..self.schedule.collective().ranks {
            self.before((gpu, 0));
        }
        if !self.is_ll() {
            self.start();
        }
        for &id in self.order {
            if self.switches.requests.contains_key(&id) {
                (0..self.blocks[id.index()].len()).for_each(|leader| self.request(id, leader));
            } else {
                self.instruction(id);
            }
        }
        self.end();
        self.plan()
    }

    pub(super) fn is_ll(&self) -> bool {
        self.form.protocol == Protocol::LL
    }

    /// Returns whether two GPUs are in different boxes.
    pub(super) fn is_port(&self, a: u32, b: u32) -> bool {
        self.form.boxes[a as usize] != self.form.boxes[b as usize]
    }

    /// Returns whether several GPUs request parts of a sum from a switch.
    pub fn is_parted(&self) -> bool {
        self.switches.parts > 1
    }

    fn gpus_of(&self, id: InstrId) -> Vec<u32> {
        self.switches.requests.get(&id).map_or_else(|| vec![self.flow.node_of(id).0], |request| request.leaders.clone())
    }

    /// Assigns each instruction a thread block, reserving the most operations that it may need.
    fn assign(&mut self) {
        let c = self.schedule.collective();
        let copied = |gpu: usize| {
            let output = if c.kind == Kind::Broadcast { c.elements / self.form.unit } else { 0 };
            if self.form.pieces { (self.copied[gpu] + output) as usize } else { 0 }
        };
        let mut filled: Vec<(usize, usize)> = (0..self.landed.len()).map(|gpu| (0, 16 + copied(gpu))).collect();
        for &id in self.order {
            let most = self.most_operations(id);
            for gpu in self.gpus_of(id) {
                let (block, ops) = &mut filled[gpu as usize];
                if *ops + most > ROOM {
                    (*block, *ops) = (*block + 1, 0);
                }
                *ops += most;
                self.blocks[id.index()].push((gpu, *block));
            }
        }
        self.last = filled.into_iter().map(|(block, _)| block).collect();
    }

    fn most_operations(&self, id: InstrId) -> usize {
        let (s, flow) = (self.schedule, self.flow);
        if let Some(request) = self.switches.requests.get(&id) {
            return 6 + 2 * request.group.len().div_ceil(limits::OP_CHANNELS);
        }
        let (sources, sinks) = (s.sources(id).len(), s.sinks(id).len());
        let is_switched = |stream: &StreamId| self.switches.places.contains_key(stream);
        let streams: Vec<StreamId> = flow.pops(s, id).chain(flow.pushes(s, id)).map(|(stream, _)| stream).collect();
        if !streams.is_empty() && streams.iter().all(is_switched) {
            let parts = self.switches.parts as usize;
            return (1 + parts) * sinks + 2 * parts.div_ceil(limits::OP_CHANNELS) * streams.len();
        }
        let is_far = flow.pushes(s, id).any(|(stream, _)| {
            let source = s.stream(stream).source.0;
            !is_switched(&stream) && s.stream_sinks(stream).iter().any(|sink| self.is_port(source, sink.0))
        });
        let pieces = if self.form.pieces { (s.instr(id).len / self.form.unit) as usize } else { 1 };
        let moves = sinks + if self.is_ll() { sources } else { 1 };
        8 + 2 * sources + if is_far { 8 } else { 3 } * sinks + (pieces - 1) * moves
    }

    /// Returns the thread blocks that run an instruction: one, or those of the leaders of a request.
    pub(super) fn blocks_of(&self, id: InstrId) -> &[At] {
        &self.blocks[id.index()]
    }

    pub(super) fn push(&mut self, at: At, step: Step) {
        self.made.entry(at).or_default().push(step);
    }

    /// Adds a synchronization of the block's threads (`nop`), unless the last operation is one.
    pub(super) fn meet(&mut self, at: At) {
        let steps = self.made.entry(at).or_default();
        if steps.last().is_none_or(|step| step.name != Name::Nop) {
            steps.push(Step::meeting());
        }
    }

    /// Adds the copies that a GPU makes first: of its input, if output may overwrite the input; and at the root of a
    /// broadcast, from the input to the output.
    fn before(&mut self, at: At) {
        let n = at.0 as usize;
        let c = self.schedule.collective();
        let copied = self.copied[n];
        let all = c.elements / self.form.unit;
        if copied > 0 {
            let to = Slice::local(Buffer::Scratch, self.copy_of_input(NodeId(at.0)), copied);
            self.op(at, Name::Copy, &[Slice::local(Buffer::Input, 0, copied)], &[to]);
        }
        if c.kind == Kind::Broadcast && at.0 == c.root {
            let [from, to] = [Buffer::Input, Buffer::Output].map(|buffer| Slice::local(buffer, 0, all));
            self.op(at, Name::Copy, &[from], &[to]);
        }
    }

    /// Returns the source of a put on a port channel. In place, a GPU's own part lies inside the whole buffer, and the
    /// runtime finds the part only by an offset in that buffer.
    pub(super) fn source_of_port(&self, gpu: u32, place: Slice) -> Slice {
        let c = self.schedule.collective();
        let (part, whole, len) = match c.kind {
            Kind::Allgather => (Buffer::Input, Buffer::Output, c.input_len(gpu)),
            Kind::ReduceScatter => (Buffer::Output, Buffer::Input, c.output_len(gpu)),
            _ => return place,
        };
        if !self.form.in_place || place.buffer != Some(part) {
            return place;
        }
        Slice::local(whole, place.index + gpu * (len / self.form.unit), place.size)
    }

    /// Returns the first chunk of the schedule's own scratch memory. It follows the packets, which take two chunks
    /// each.
    fn scratch(&self, gpu: NodeId) -> u32 {
        self.landed[gpu.index()] * if self.is_ll() { 2 } else { 1 }
    }

    fn copy_of_input(&self, gpu: NodeId) -> u32 {
        self.scratch(gpu) + self.own[gpu.index()]
    }

    pub(super) fn temporary(&self, gpu: NodeId, n: u32, size: u32) -> Slice {
        Slice::local(Buffer::Scratch, self.copy_of_input(gpu) + self.copied[gpu.index()] + n * size, size)
    }

    fn memory(&self, id: InstrId, operand: Operand, size: u32) -> Option<Slice> {
        let (gpu, unit) = (self.flow.node_of(id), self.form.unit);
        match operand {
            Operand::In(start) if self.endangered[id.index()] => {
                Some(Slice::local(Buffer::Scratch, self.copy_of_input(gpu) + start / unit, size))
            }
            Operand::In(start) => Some(Slice::local(Buffer::Input, start / unit, size)),
            Operand::Out(start) => Some(Slice::local(Buffer::Output, start / unit, size)),
            Operand::Tmp(start) => Some(Slice::local(Buffer::Scratch, self.scratch(gpu) + start / unit, size)),
            Operand::Stream(_) => None,
        }
    }

    fn instruction(&mut self, id: InstrId) {
        let (s, at, node, unit) = (self.schedule, self.blocks_of(id)[0], self.flow.node_of(id), self.form.unit);
        let size = s.instr(id).len / unit;
        // The sources in order; the flag is true if the source consists of packets.
        let mut pops = self.flow.pops(s, id).collect::<Vec<_>>().into_iter();
        let (mut sources, mut waits) = (Vec::new(), Vec::new());
        for operand in s.sources(id).iter() {
            if let Some(place) = self.memory(id, operand, size) {
                sources.push((place, false));
                continue;
            }
            let Some((stream, span)) = pops.next() else { continue };
            let switched = self.switches.places.get(&stream);
            let first = switched.copied().unwrap_or_else(|| self.landing[&(stream, node)]);
            sources.push((Slice::local(Buffer::Scratch, first + span.start / unit, size), self.is_ll()));
            waits.extend(self.messages_of(stream, span, at));
        }
        let mut local: Vec<Slice> = s.sinks(id).iter().filter_map(|o| self.memory(id, o, size)).collect();
        let mut remote = Vec::new();
        for (stream, span) in self.flow.pushes(s, id) {
            if let Some(first) = self.switches.places.get(&stream) {
                local.push(Slice::local(Buffer::Scratch, first + span.start / unit, size));
                continue;
            }
            for &sink in s.stream_sinks(stream) {
                let index = self.landing[&(stream, sink)] + span.start / unit;
                remote.push((sink.0, Slice::remote(sink.0, index, size)));
            }
        }
        if !self.is_ll() {
            self.wait(at, waits);
        }
        let readers = if self.is_ll() { Vec::new() } else { self.readers(id, at) };
        let puts = self.data(at, node, size, sources, &local, &remote, &readers);
        self.signal(id, at, &readers, puts);
    }

    /// Returns the thread blocks that write a part of a stream. Each comes with the number of the message that it sends
    /// to `at` after its write; the number is 0 if it sends no message.
    pub(super) fn messages_of(&self, stream: StreamId, span: Span, at: At) -> impl Iterator<Item = (At, u32)> {
        let writers = Flow::touching(self.flow.writers(stream), span).iter();
        let blocks = writers.flat_map(move |p| self.blocks_of(p.instr).iter().map(move |&from| (p.instr, from)));
        blocks.map(move |(id, from)| (from, self.messages.get(&(id, from, at)).copied().unwrap_or(0)))
    }

    /// Returns the thread blocks of other GPUs that read the data that an instruction writes to streams.
    pub(super) fn readers(&self, id: InstrId, at: At) -> Vec<At> {
        let mut readers: Vec<At> = Vec::new();
        for (stream, span) in self.flow.pushes(self.schedule, id) {
            for pieces in self.flow.readers_by_sink(stream) {
                let pieces = Flow::touching(pieces, span).iter();
                readers.extend(pieces.flat_map(|piece| self.blocks_of(piece.instr)));
            }
        }
        readers.retain(|reader| reader.0 != at.0);
        readers.sort_unstable();
        readers.dedup();
        readers
    }
}
