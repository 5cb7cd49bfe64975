//! The import of a file as a schedule: a thread block becomes a lane, a connection a stream, a step as the executor
//! runs it an instruction, a wait a dependency. `verify` decides whether that schedule computes the stated collective.
//!
//! If `slots` has shown that the file ends at all its sizes, streams have unlimited capacity. Otherwise they have the
//! capacity of connections for the largest chunks, so that the proof finds the deadlock.
//!
//! A program that runs in place has one buffer instead of two: the schedule first copies its input into that buffer.

use std::collections::BTreeMap;

use unisono_base::{InstrId, LaneId, NodeId, StreamId, narrow};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_formats::{Facts, ImportError};
use unisono_lower::ThreadBlocks;
use unisono_machine::network::Protocol;
use unisono_schedule::{Builder, Operand, Schedule};

use super::{
    executed::{Running, Transmission, running},
    ops::{Buffer, Place},
    program::{Program, Type, counts_all_ranks},
    slots,
};

/// Returns the collective of a program at the size in `facts`, and the number of chunks of its elements: of one rank's
/// part, if the file counts the parts of all ranks. Values that `facts` omits are those of the file; the defaults are
/// one element for each chunk, f32, sum and root 0.
///
/// # Errors
/// Returns an error if the GPUs do not divide the file's chunks, the chunks do not divide the elements, or the
/// collective is not valid.
pub fn collective(p: &Program, facts: &Facts) -> Result<(Collective, u32), ImportError> {
    let ranks = narrow(p.gpus.len());
    let parts = if counts_all_ranks(p.kind) { ranks } else { 1 };
    if !p.chunks.is_multiple_of(parts) {
        let message =
            format!("nchunksperloop=\"{}\" is no multiple of the {ranks} GPUs, which have a part each", p.chunks);
        return Err(ImportError::new(0, message));
    }
    let chunks = p.chunks / parts;
    let elements = facts.elements.or(p.meaning.elements).unwrap_or(u64::from(chunks));
    if elements == 0 || !elements.is_multiple_of(u64::from(chunks)) {
        let message =
            format!("{elements} elements do not divide into the {chunks} chunks of the file; accepted are multiples");
        return Err(ImportError::new(0, message));
    }
    let dtype = dtype(p, facts);
    let operator = facts.operator.or(p.meaning.operator).unwrap_or(Operator::Sum);
    let root = facts.root.or(p.meaning.root).unwrap_or(0);
    let collective = Collective::new(p.kind, ranks, elements, root, operator, dtype);
    Ok((collective.map_err(|e| ImportError::new(0, e.to_string()))?, chunks))
}

/// Returns the schedule of a program, and its thread blocks. `in_place` selects whether it runs in place. With `None`,
/// it runs in place if the file permits that, and either writes its input or does not permit two buffers.
///
/// # Errors
/// Returns one sentence with the line if a schedule cannot express the program.
pub fn schedule(p: &Program, facts: &Facts, in_place: Option<bool>) -> Result<(Schedule, ThreadBlocks), ImportError> {
    let (collective, chunks) = collective(p, facts)?;
    let (elements, dtype) = (u64::from(collective.elements), collective.dtype);
    let writes_input = p
        .gpus
        .iter()
        .flat_map(|g| &g.blocks)
        .flat_map(|b| &b.steps)
        .find(|s| s.kind.writes() && s.count > 0 && s.destination.buffer == Buffer::Input);
    if let Some(step) = writes_input.filter(|_| !p.in_place) {
        return Err(ImportError::new(step.line, "the step writes the input, and the file has inplace=\"0\""));
    }
    let in_place = in_place.unwrap_or(p.in_place && (writes_input.is_some() || !p.out_of_place));
    if let Some(step) = writes_input.filter(|_| !in_place) {
        let message = "the step writes the input, which a call with two buffers keeps";
        return Err(ImportError::new(step.line, message));
    }
    if in_place && matches!(p.kind, Kind::Gather | Kind::Scatter) {
        return Err(ImportError::new(0, format!("a program for {} in place is not read", p.kind)));
    }
    let unit = narrow(elements / u64::from(chunks));
    let running = running(p)?;
    let hangs = slots::hangs(p, &running, slots::sizes(p, bytes(p, facts))).is_some();
    let room = hangs.then(|| slots::room(&p.protocol, p.kind).slots);
    let mut made = Making {
        p,
        running: &running,
        room,
        b: Builder::new(collective),
        unit,
        in_place,
        memory: Vec::new(),
        copies: Vec::new(),
    };
    if !p.name.is_empty() {
        made.b.origin(&p.name);
    }
    let streams = made.streams()?;
    let ids = made.lanes(&streams)?;
    made.waits(&ids);
    let copies = made.copies;
    let schedule = made.b.finish().map_err(|e| ImportError::new(0, e.to_string()))?;
    let protocol = Protocol::of_name(&p.protocol);
    let of_node = |(node, copies): (NodeId, usize)| {
        let count = schedule.lanes(node).map(|lane| schedule.lane_instrs(LaneId::new(lane)).len()).sum::<usize>();
        (0..count).map(move |n| (n >= copies).then_some(protocol))
    };
    let size = slots::bytes_of(p, elements, dtype);
    let blocks = ThreadBlocks::new(schedule.all_nodes().zip(copies).flat_map(of_node).collect())
        .of_file(slots::unserved(p, Some(size)));
    Ok((schedule, blocks))
}

/// Returns the type of the elements, by `facts`, by the file, or else f32.
fn dtype(p: &Program, facts: &Facts) -> Dtype {
    facts.dtype.or(p.meaning.dtype).unwrap_or(Dtype::F32)
}

/// Returns the bytes of a call, if `facts` states its number of elements.
pub fn bytes(p: &Program, facts: &Facts) -> Option<u64> {
    facts.elements.map(|elements| slots::bytes_of(p, elements, dtype(p, facts)))
}

struct Making<'a> {
    p: &'a Program,
    running: &'a Running,
    /// The capacity of each connection in chunks; `None`, which means unlimited, if the program ends at all its sizes.
    room: Option<u32>,
    b: Builder,
    /// The number of elements of a chunk.
    unit: u32,
    in_place: bool,
    /// The buffers of each GPU, as operands of its node.
    memory: Vec<Memory>,
    /// For each GPU, the number of copies in its first lane that the program does not contain.
    copies: Vec<usize>,
}

/// The input, output and scratch buffer of a GPU, each with the operand of its first element and its length in
/// elements.
struct Memory {
    buffers: [(Operand, u32); 3],
}

/// For each GPU and thread block, the stream on which it sends, and the stream from which it receives.
type Wires = BTreeMap<(usize, usize), (Option<StreamId>, Option<StreamId>)>;

/// The sender and the receiver of a connection, each as GPU and thread block.
type Ends = [Option<(usize, usize)>; 2];

impl Making<'_> {
    /// Creates a stream for each connection, and checks that both ends move pieces of the same sizes.
    fn streams(&mut self) -> Result<Wires, ImportError> {
        let mut ends: BTreeMap<(u32, u32, u32), Ends> = BTreeMap::new();
        for (g, gpu) in self.p.gpus.iter().enumerate() {
            for (t, block) in gpu.blocks.iter().enumerate() {
                let out = block.send.map(|to| ((narrow(g), to, block.channel), 0, "send to"));
                let into = block.receive.map(|from| ((from, narrow(g), block.channel), 1, "receive from"));
                for (key, end, does) in out.into_iter().chain(into) {
                    let place = &mut ends.entry(key).or_default()[end];
                    if let Some((_, other)) = *place {
                        let peer = if end == 0 { key.1 } else { key.0 };
                        let message =
                            format!("thread blocks {other} and {t} of gpu {g} {does} gpu {peer} on channel {}", key.2);
                        return Err(ImportError::new(block.line, message));
                    }
                    *place = Some((g, t));
                }
            }
        }
        let mut wires = Wires::new();
        for ((source, sink, channel), [sender, receiver]) in ends {
            let block = |at: Option<(usize, usize)>| at.map(|(g, t)| &self.running[g][t]);
            let counts = |at, picks: fn(Type) -> bool| {
                let steps = block(at).into_iter().flatten();
                steps.filter(move |s| picks(s.kind) && s.count > 0).map(|s| (s.count, s.line))
            };
            let sent: Vec<_> = counts(sender, Type::sends).collect();
            let received: Vec<_> = counts(receiver, Type::receives).collect();
            let wrong =
                (0..sent.len().max(received.len())).find(|&n| sent.get(n).map(|s| s.0) != received.get(n).map(|r| r.0));
            if let Some(n) = wrong {
                let say = |of: &[(u32, u32)]| of.get(n).map_or("nothing".to_owned(), |(c, _)| format!("cnt=\"{c}\""));
                let line = sent.get(n).or(received.get(n)).map_or(0, |(_, line)| *line);
                let message = format!(
                    "message {n} from gpu {source} to gpu {sink} on channel {channel}: {} sent, {} received",
                    say(&sent),
                    say(&received)
                );
                return Err(ImportError::new(line, message));
            }
            let elements: u64 = sent.iter().map(|(c, _)| u64::from(*c) * u64::from(self.unit)).sum();
            let stream = self.b.stream(NodeId(source), &[NodeId(sink)]);
            if let Some(room) = self.room {
                let holds = elements.min(u64::from(room) * u64::from(self.unit));
                self.b.capacity(stream, u32::try_from(holds).unwrap_or(u32::MAX));
            }
            sender.into_iter().for_each(|at| wires.entry(at).or_default().0 = Some(stream));
            receiver.into_iter().for_each(|at| wires.entry(at).or_default().1 = Some(stream));
        }
        Ok(wires)
    }

    /// Creates the buffers of a GPU, and returns them with the instruction that all others wait for. In place, input
    /// and output share one buffer, into which this instruction copies the input; otherwise it moves nothing.
    fn place_buffers(&mut self, node: NodeId) -> Result<(Memory, InstrId), ImportError> {
        let gpu = &self.p.gpus[node.index()];
        let c = *self.b.collective();
        let (input, output) = (c.input_len(node.0), c.output_len(node.0));
        let elements = |chunks: u32| {
            let all = u64::from(chunks) * u64::from(self.unit);
            u32::try_from(all).map_err(|_| {
                let message = format!("{chunks} chunks of {} elements are more than memory holds", self.unit);
                ImportError::new(gpu.line, message)
            })
        };
        let (spare, scratch) = (elements(gpu.output)?, elements(gpu.scratch)?);
        let scratch = (Operand::Tmp(self.b.scratch(node, scratch)), scratch);
        if !self.in_place {
            // The root of a broadcast, and the ranks of a reduce other than the root, have an output buffer without a
            // result.
            let out =
                if output > 0 { (Operand::Out(0), output) } else { (Operand::Tmp(self.b.scratch(node, spare)), spare) };
            let none = self.b.combine(node, 0, 0, &[], &[]);
            return Ok((Memory { buffers: [(Operand::In(0), input), out, scratch] }, none));
        }
        let whole = input.max(output);
        let base = if output == whole { Operand::Out(0) } else { Operand::Tmp(self.b.scratch(node, whole)) };
        let (of_input, of_output) = match c.kind {
            Kind::Allgather => (shifted(base, node.0 * c.elements), base),
            Kind::ReduceScatter => (base, shifted(base, node.0 * c.elements)),
            _ => (base, base),
        };
        let copied = self.b.combine(node, 0, input, &[Operand::In(0)], &[of_input]);
        let (i, o) = match c.kind {
            Kind::Allgather => (input, whole),
            Kind::ReduceScatter => (whole, output),
            _ => (whole, whole),
        };
        Ok((Memory { buffers: [(of_input, i), (of_output, o), scratch] }, copied))
    }

    fn operand(&self, node: NodeId, place: Place, step: &Transmission) -> Result<Operand, ImportError> {
        let (base, len) = self.memory[node.index()].buffers[place.buffer as usize];
        let end = (u64::from(place.chunk) + u64::from(step.count)) * u64::from(self.unit);
        if end > u64::from(len) {
            let name = super::write::buffer_name(place.buffer);
            let message = format!(
                "chunks {} to {} of buffer {name} of gpu {}, which has {}",
                place.chunk,
                u64::from(place.chunk) + u64::from(step.count),
                node.0,
                len / self.unit
            );
            return Err(ImportError::new(step.line, message));
        }
        Ok(shifted(base, place.chunk * self.unit))
    }

    /// Creates the instructions of all thread blocks. Returns for each transmission the latest instruction so far in
    /// its thread block, or `None` if all its transmissions so far move nothing.
    fn lanes(&mut self, wires: &Wires) -> Result<Vec<Vec<Vec<Option<InstrId>>>>, ImportError> {
        let running = self.running;
        let mut ids = Vec::with_capacity(running.len());
        for (g, blocks) in running.iter().enumerate() {
            let node = NodeId::new(g);
            let (memory, copied) = self.place_buffers(node)?;
            self.memory.push(memory);
            let c = *self.b.collective();
            let mut copies = usize::from(self.in_place && c.input_len(node.0) > 0);
            let mut of_gpu = Vec::with_capacity(blocks.len());
            for (t, block) in blocks.iter().enumerate() {
                let (to, from) = wires.get(&(g, t)).copied().unwrap_or_default();
                let mut last = None;
                let mut of_block = Vec::with_capacity(block.len());
                for step in block {
                    if step.count > 0 {
                        let id = self.step(node, narrow::<u32>(t) + 1, step, from, to)?;
                        if last.is_none() {
                            self.b.after(id, copied);
                        }
                        last = Some(id);
                    }
                    of_block.push(last);
                }
                of_gpu.push(of_block);
            }
            if self.in_place && c.kind == Kind::ReduceScatter {
                let ends: Vec<InstrId> = of_gpu.iter().filter_map(|b: &Vec<_>| b.last().copied().flatten()).collect();
                let result = self.memory[g].buffers[Buffer::Output as usize].0;
                if result != Operand::Out(0) {
                    let id = self.b.combine(node, 0, c.elements, &[result], &[Operand::Out(0)]);
                    ends.into_iter().for_each(|end| self.b.after(id, end));
                    copies += 1;
                }
            }
            self.copies.push(copies);
            ids.push(of_gpu);
        }
        Ok(ids)
    }

    fn step(
        &mut self,
        node: NodeId,
        lane: u32,
        step: &Transmission,
        from: Option<StreamId>,
        to: Option<StreamId>,
    ) -> Result<InstrId, ImportError> {
        let (mut sources, mut sinks) = (Vec::new(), Vec::new());
        sources.extend(from.filter(|_| step.kind.receives()).map(Operand::Stream));
        for &place in &step.sources {
            sources.push(self.operand(node, place, step)?);
        }
        if step.kind == Type::Reduce {
            // The executor adds the destination last.
            sources.push(self.operand(node, step.destination, step)?);
        }
        if step.kind.writes() {
            sinks.push(self.operand(node, step.destination, step)?);
        }
        sinks.extend(to.filter(|_| step.kind.sends()).map(Operand::Stream));
        let len = u64::from(step.count) * u64::from(self.unit);
        let len = u32::try_from(len).map_err(|_| ImportError::new(step.line, format!("{len} elements in one step")))?;
        if step.kind == Type::Copy && sources == sinks {
            // In place, a copy of a place onto itself only reads. The schedule writes the data to scratch memory
            // instead, so that other instructions may read the place at the same time.
            sinks = vec![Operand::Tmp(self.b.scratch(node, len))];
        }
        Ok(self.b.combine(node, lane, len, &sources, &sinks))
    }

    fn waits(&mut self, ids: &[Vec<Vec<Option<InstrId>>>]) {
        for (blocks, ids) in self.running.iter().zip(ids) {
            for (block, own) in blocks.iter().zip(ids) {
                let mut pending = Vec::new();
                for (step, id) in block.iter().zip(own) {
                    pending.extend(step.after.iter().filter_map(|&(b, at)| ids[b as usize][at as usize]));
                    if let Some(id) = id.filter(|_| step.count > 0) {
                        pending.drain(..).for_each(|earlier| self.b.after(id, earlier));
                    }
                }
            }
        }
    }
}

fn shifted(base: Operand, by: u32) -> Operand {
    match base {
        Operand::In(start) => Operand::In(start + by),
        Operand::Out(start) => Operand::Out(start + by),
        Operand::Tmp(start) => Operand::Tmp(start + by),
        Operand::Stream(s) => Operand::Stream(s),
    }
}
