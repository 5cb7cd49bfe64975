//! The reference interpreter, which pushes real data through a schedule.
//!
//! Lanes advance chunk by chunk, in an order drawn from a seed, as soon as their input is available and their output
//! fits into the streams' capacities. So one interpreter covers every machine: chunks of one element behave like a
//! wafer, chunks of a whole instruction like store-and-forward, and a schedule whose result depends on timing fails
//! under some seed.

mod element;

pub use element::Element;
use unisono_base::{Diagnostics, InstrId, LaneId, NodeId, narrow};

use crate::{
    flow::Flow,
    order::Dependents,
    schedule::{Operand, Schedule},
};

/// The parameters of a run. `chunk` is the number of elements per step; with `None`, a step is a whole instruction.
/// `seed` determines the order of lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    pub chunk: Option<u32>,
    pub seed: u64,
}

/// Memory limit of a run in bytes, so that a damaged schedule does not exhaust the memory of the process.
const MOST_BYTES: u64 = 8 << 30;

#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum InterpretError {
    #[error("rank {rank} gives {found} elements; its input has {expected}")]
    InputLength { rank: usize, found: usize, expected: usize },
    #[error("{found} inputs were given for {expected} ranks")]
    InputCount { found: usize, expected: usize },
    #[error("the schedule is not well-formed: {0}")]
    IllFormed(String),
    #[error("the schedule stops with {} instructions not done, the first being {}", stuck.len(), stuck.first().map_or(String::new(), |i| i.to_string()))]
    Stuck { stuck: Vec<InstrId> },
    #[error("the outputs, scratch memory and streams take {bytes} bytes; the interpreter takes at most {MOST_BYTES}")]
    TooLarge { bytes: u64 },
    #[error("operator {operator} has no meaning for this element type")]
    Operator { operator: &'static str },
}

/// Runs the schedule on one input per rank and returns one output per node (empty for a switch and for a rank without
/// output).
///
/// # Errors
/// Returns an error if the number or the lengths of inputs do not fit the collective, if `T` lacks the operator of an
/// instruction that combines, if the schedule is not well-formed or needs more than 8 GiB, or on a deadlock, with the
/// stuck instructions.
pub fn run<T: Element>(
    schedule: &Schedule,
    inputs: &[Vec<T>],
    options: Options,
) -> Result<Vec<Vec<T>>, InterpretError> {
    let c = schedule.collective();
    if inputs.len() != c.ranks as usize {
        return Err(InterpretError::InputCount { found: inputs.len(), expected: c.ranks as usize });
    }
    for (rank, input) in inputs.iter().enumerate() {
        let expected = c.input_len(narrow(rank)) as usize;
        if input.len() != expected {
            return Err(InterpretError::InputLength { rank, found: input.len(), expected });
        }
    }
    let combines = (0..schedule.instr_count()).any(|i| schedule.sources(InstrId::new(i)).len() > 1);
    if combines && !T::knows(c.operator) {
        return Err(InterpretError::Operator { operator: c.operator.name() });
    }
    let mut found = Diagnostics::default();
    let flow = Flow::new(schedule, &mut found);
    if let Some(first) = found.into_vec().first() {
        return Err(InterpretError::IllFormed(first.to_string()));
    }
    let memory =
        schedule.all_nodes().map(|n| u64::from(schedule.output_len(n)) + u64::from(schedule.scratch_elements(n)));
    let streams = schedule.all_streams().map(|s| u64::from(schedule.stream(s).len));
    let bytes = memory.chain(streams).sum::<u64>().saturating_mul(std::mem::size_of::<T>() as u64);
    if bytes > MOST_BYTES {
        return Err(InterpretError::TooLarge { bytes });
    }
    let mut machine = Machine::new(schedule, &flow, inputs, options);
    machine.run();
    let stuck = machine.stuck();
    if stuck.is_empty() { Ok(machine.out) } else { Err(InterpretError::Stuck { stuck }) }
}

struct Channel<T> {
    data: Vec<T>,
    pushed: u32,
    /// Number of elements that each sink has popped, in the order of the stream's sinks.
    popped: Vec<u32>,
}

struct Machine<'a, T> {
    schedule: &'a Schedule,
    flow: &'a Flow,
    inputs: &'a [Vec<T>],
    chunk: u32,
    random: u64,
    dependents: Dependents,
    out: Vec<Vec<T>>,
    tmp: Vec<Vec<T>>,
    channels: Vec<Channel<T>>,
    /// For each lane, the index of its next instruction and the number of that instruction's elements that are done.
    lanes: Vec<(usize, u32)>,
    done: Vec<bool>,
    /// Lanes that may be able to advance; `queued` is true for each lane that is in `ready`.
    ready: Vec<LaneId>,
    queued: Vec<bool>,
    buffer: Vec<T>,
}

impl<'a, T: Element> Machine<'a, T> {
    fn new(schedule: &'a Schedule, flow: &'a Flow, inputs: &'a [Vec<T>], options: Options) -> Self {
        let ready: Vec<LaneId> = (0..schedule.lane_count()).map(LaneId::new).collect();
        Self {
            schedule,
            flow,
            inputs,
            chunk: options.chunk.unwrap_or(u32::MAX).max(1),
            random: options.seed,
            dependents: Dependents::new(schedule, &[]),
            out: schedule.all_nodes().map(|n| vec![T::default(); schedule.output_len(n) as usize]).collect(),
            tmp: schedule.all_nodes().map(|n| vec![T::default(); schedule.scratch_elements(n) as usize]).collect(),
            channels: schedule
                .all_streams()
                .map(|s| Channel {
                    data: vec![T::default(); schedule.stream(s).len as usize],
                    pushed: 0,
                    popped: vec![0; schedule.stream_sinks(s).len()],
                })
                .collect(),
            lanes: ready.iter().map(|&l| (schedule.lane_instrs(l).start, 0)).collect(),
            done: vec![false; schedule.instr_count()],
            queued: vec![true; ready.len()],
            ready,
            buffer: Vec::new(),
        }
    }

    fn run(&mut self) {
        while !self.ready.is_empty() {
            // SplitMix64 draws the lane from the seed, so that a run can be repeated.
            self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let pick = narrow(unisono_base::mix(self.random) % self.ready.len() as u64);
            let lane = self.ready.swap_remove(pick);
            self.queued[lane.index()] = false;
            self.step(lane);
        }
    }

    fn stuck(&self) -> Vec<InstrId> {
        let done = |&i: &usize| !self.done[i];
        (0..self.done.len()).filter(done).map(InstrId::new).collect()
    }

    fn step(&mut self, lane: LaneId) {
        let (at, progress) = self.lanes[lane.index()];
        if at >= self.schedule.lane_instrs(lane).end {
            return;
        }
        let id = InstrId::new(at);
        let len = self.schedule.instr(id).len;
        let count = self.chunk.min(len - progress);
        if !self.can_run(id, progress, count) {
            return;
        }
        self.execute(id, progress, count);
        let finished = progress + count == len;
        self.lanes[lane.index()] = if finished { (at + 1, 0) } else { (at, progress + count) };
        self.done[at] = finished;
        self.wake(lane);
        // At each end of a stream, only one lane pushes or pops. So no other lane can wait for the stream.
        for (stream, _) in self.flow.pushes(self.schedule, id) {
            for readers in self.flow.readers_by_sink(stream) {
                self.wake(self.flow.lane_of(readers[0].instr));
            }
        }
        for (stream, _) in self.flow.pops(self.schedule, id) {
            self.wake(self.flow.lane_of(self.flow.writers(stream)[0].instr));
        }
        if finished {
            for n in 0..self.dependents.of(id).len() {
                self.wake(self.flow.lane_of(self.dependents.of(id)[n]));
            }
        }
    }

    fn wake(&mut self, lane: LaneId) {
        if !std::mem::replace(&mut self.queued[lane.index()], true) {
            self.ready.push(lane);
        }
    }

    fn can_run(&self, id: InstrId, progress: u32, count: u32) -> bool {
        let waits = self.schedule.after(id).iter().all(|d| self.done[d.1.index()]);
        let input = self
            .flow
            .pops(self.schedule, id)
            .all(|(stream, span)| self.channels[stream.index()].pushed >= span.start + progress + count);
        let room = self.flow.pushes(self.schedule, id).all(|(stream, span)| {
            let slowest = self.channels[stream.index()].popped.iter().copied().min().unwrap_or(u32::MAX);
            let end = span.start + progress + count;
            u64::from(end) <= u64::from(slowest) + u64::from(self.schedule.stream(stream).capacity)
        });
        waits && input && room
    }

    fn execute(&mut self, id: InstrId, progress: u32, count: u32) {
        let node = self.flow.node_of(id);
        let operator = self.schedule.collective().operator;
        let mut values = std::mem::take(&mut self.buffer);
        for (n, (source, position)) in self.flow.sources(self.schedule, id).enumerate() {
            let from = self.source(node, (source, position), progress, count);
            if n == 0 {
                values.clear();
                values.extend_from_slice(from);
            } else {
                values.iter_mut().zip(from).for_each(|(v, &x)| *v = T::combine(operator, *v, x));
            }
            if let Operand::Stream(s) = source {
                let sink = self.schedule.stream_sinks(s).binary_search(&node).expect("checked by Flow");
                self.channels[s.index()].popped[sink] += count;
            }
        }
        for (sink, position) in self.flow.sinks(self.schedule, id) {
            let to = |start: u32| (start + progress) as usize..(start + progress + count) as usize;
            match sink {
                Operand::In(_) => unreachable!("Flow refuses writes to in"),
                Operand::Out(start) => self.out[node.index()][to(start)].copy_from_slice(&values),
                Operand::Tmp(start) => self.tmp[node.index()][to(start)].copy_from_slice(&values),
                Operand::Stream(s) => {
                    let channel = &mut self.channels[s.index()];
                    channel.data[to(position)].copy_from_slice(&values);
                    channel.pushed += count;
                }
            }
        }
        self.buffer = values;
    }

    fn source(&self, node: NodeId, (source, position): (Operand, u32), progress: u32, count: u32) -> &[T] {
        let (data, start) = match source {
            Operand::In(start) => (&self.inputs[node.index()], start),
            Operand::Out(start) => (&self.out[node.index()], start),
            Operand::Tmp(start) => (&self.tmp[node.index()], start),
            Operand::Stream(s) => (&self.channels[s.index()].data, position),
        };
        &data[(start + progress) as usize..(start + progress + count) as usize]
    }
}
