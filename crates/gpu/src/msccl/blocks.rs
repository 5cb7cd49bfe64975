//! The thread blocks of a GPU. The operations of the GPU are in a topological order of the schedule, and each operation
//! is in the thread block that owns its connections.

use std::collections::BTreeMap;

use unisono_base::{InstrId, LaneId, NodeId, narrow};
use unisono_collective::Kind;
use unisono_schedule::{Flow, Operand, Schedule};

use super::{
    connections::Connections,
    limits,
    ops::{Buffer, End, Op, Place, lower},
    pieces::Pieces,
    program::{Block, Gpu, Step, Type},
    waits::{Alias, Work, waits},
};

/// The inputs for making the thread blocks of a GPU.
pub struct Maker<'a> {
    pub schedule: &'a Schedule,
    pub flow: &'a Flow,
    pub pieces: &'a Pieces,
    pub connections: &'a Connections,
    /// The maximum number of thread blocks of a GPU.
    pub most: usize,
}

#[derive(Default)]
struct Blocks {
    /// For each thread block, the index of the connection on which it sends, and of that from which it receives.
    ends: Vec<(Option<usize>, Option<usize>)>,
    sending: BTreeMap<usize, usize>,
    receiving: BTreeMap<usize, usize>,
}

impl Maker<'_> {
    /// Returns the program of a GPU with its instructions in the order `instrs`, and whether its input and output may
    /// be one buffer.
    ///
    /// # Errors
    /// Returns the reason if the executor's limits do not admit the program.
    pub fn gpu(&self, node: NodeId, instrs: &[InstrId]) -> Result<(Gpu, bool), String> {
        let s = self.schedule;
        let unit = self.pieces.unit;
        let mut blocks = self.blocks(node);
        let own = s.scratch_elements(node).div_ceil(unit);
        let temporary = self.temporaries(node, own);
        let (mut works, mut lengths) = (Vec::new(), vec![0; blocks.ends.len()]);
        let mut add = |ops: Vec<Op<usize>>, count: u32, blocks: &mut Blocks| {
            let home = ops.iter().find_map(|op| blocks.of(op));
            for op in ops {
                let block = blocks.of(&op).or(home).unwrap_or_else(|| blocks.local());
                lengths.resize(blocks.ends.len(), 0);
                works.push(Work { op, count, block, step: lengths[block] });
                lengths[block] += 1;
            }
            limits::check_steps(node, works.len())
        };
        for &id in instrs {
            for (from, len) in self.pieces.of(s, self.flow, id) {
                let count = len / unit;
                let end = |o: Operand| self.ends(o, node, from);
                let sources: Vec<_> = s.sources(id).iter().flat_map(|o| end(o)(true)).collect();
                let sinks: Vec<_> = s.sinks(id).iter().flat_map(|o| end(o)(false)).collect();
                let temporary = temporary[self.flow.lane_of(id).index() - s.lanes(node).start];
                let joined = |a: usize, b: usize| self.connections.joined[a] == Some(b);
                add(lower(&sources, &sinks, temporary, joined), count, &mut blocks)?;
            }
        }
        let c = s.collective();
        let mut output = s.output_len(node) / unit;
        if c.kind == Kind::Broadcast && node.0 == c.root {
            // The executor's broadcast has an output on every GPU, including the root.
            output = c.elements / unit;
            for chunk in (0..output).step_by(limits::COUNT as usize) {
                let at = |buffer| Place { buffer, chunk };
                let op = Op::Copy { from: at(Buffer::Input), into: at(Buffer::Output) };
                add(vec![op], limits::COUNT.min(output - chunk), &mut blocks)?;
            }
        }
        let input = s.input_len(node) / unit;
        let scratch = |p: Place, count: u32| if p.buffer == Buffer::Scratch { p.chunk + count } else { 0 };
        let touched = works.iter().flat_map(|w| w.op.reads().chain(w.op.writes()).map(|p| scratch(p, w.count)));
        let scratch = touched.max().unwrap_or(0);
        if let Some(chunks) = [input, output, scratch].into_iter().find(|&c| c > limits::CHUNKS) {
            return Err(format!(
                "a buffer of {node} has {chunks} chunks of {unit} elements, and at most {} are addressed",
                limits::CHUNKS
            ));
        }
        let alias = Alias { kind: c.kind, shift: node.0 * (c.elements / unit) };
        let in_place = alias.is_safe(&works);
        let blocks = self.steps(&works, &blocks, in_place.then_some(alias));
        limits::check(node, &blocks, self.most)?;
        Ok((Gpu { line: 0, input, output, scratch, blocks }, in_place))
    }

    fn ends(&self, operand: Operand, node: NodeId, from: u32) -> impl Fn(bool) -> Vec<End<usize>> + '_ {
        move |is_source| {
            let at = |buffer, start: u32| vec![End::Memory(Place { buffer, chunk: (start + from) / self.pieces.unit })];
            match operand {
                Operand::In(start) => at(Buffer::Input, start),
                Operand::Out(start) => at(Buffer::Output, start),
                Operand::Tmp(start) => at(Buffer::Scratch, start),
                Operand::Stream(s) if is_source => vec![End::Wire(self.connections.of(self.schedule, s, node))],
                Operand::Stream(s) => {
                    self.connections.of_all_sinks(self.schedule, s).iter().map(|&c| End::Wire(c)).collect()
                }
            }
        }
    }

    /// Returns one thread block for each connection or joined pair of a GPU, sorted by the GPU to which it sends, then
    /// by the GPU from which it receives, as in msccl-tools.
    fn blocks(&self, node: NodeId) -> Blocks {
        let c = self.connections;
        let of = |from: bool| {
            let here = move |n: &usize| if from { c.all[*n].source == node.0 } else { c.all[*n].sink == node.0 };
            (0..c.all.len()).filter(here)
        };
        let mut ends: Vec<_> = of(false).map(|n| (c.joined[n], Some(n))).collect();
        let taken: Vec<usize> = ends.iter().filter_map(|e| e.0).collect();
        ends.extend(of(true).filter(|n| !taken.contains(n)).map(|n| (Some(n), None)));
        ends.sort_unstable_by_key(|&(send, receive)| {
            (send.map(|n| c.all[n].sink), receive.map(|n| c.all[n].source), send, receive)
        });
        let mut blocks = Blocks::default();
        for (send, receive) in ends {
            blocks.sending.extend(send.map(|n| (n, blocks.ends.len())));
            blocks.receiving.extend(receive.map(|n| (n, blocks.ends.len())));
            blocks.ends.push((send, receive));
        }
        blocks
    }

    /// Returns, for each lane, the start of its scratch memory for partial results. The memory of a lane is as long as
    /// the longest piece of the lane. The first lane's memory starts at chunk `next`, after the scratch memory of the
    /// schedule.
    fn temporaries(&self, node: NodeId, mut next: u32) -> Vec<Place> {
        let s = self.schedule;
        let lane = |lane: usize| {
            let instrs = s.lane_instrs(LaneId::new(lane)).map(InstrId::new);
            let longest = instrs.flat_map(|id| self.pieces.of(s, self.flow, id)).map(|(_, len)| len).max();
            let at = Place { buffer: Buffer::Scratch, chunk: next };
            next += longest.unwrap_or(0) / self.pieces.unit;
            at
        };
        s.lanes(node).map(lane).collect()
    }

    fn steps(&self, works: &[Work], blocks: &Blocks, alias: Option<Alias>) -> Vec<Block> {
        let c = &self.connections.all;
        let mut made: Vec<Block> = blocks
            .ends
            .iter()
            .map(|&(send, receive)| Block {
                line: 0,
                send: send.map(|n| c[n].sink),
                receive: receive.map(|n| c[n].source),
                channel: send.or(receive).map_or(0, |n| c[n].channel),
                steps: Vec::new(),
            })
            .collect();
        // For each thread block, the index of the step of each of its operations.
        let mut at: Vec<Vec<u32>> = vec![Vec::new(); made.len()];
        for (work, waits) in works.iter().zip(waits(works, blocks.ends.len(), alias)) {
            let target = |(block, step): (usize, usize)| (narrow(block), at[block][step]);
            let mut waits: Vec<(u32, u32)> = waits.into_iter().map(target).collect();
            for &(block, step) in &waits {
                made[block as usize].steps[step as usize].is_awaited = true;
            }
            let last = waits.pop();
            let steps = &mut made[work.block].steps;
            steps.extend(waits.into_iter().map(|wait| step(None, 0, Some(wait))));
            unfuse(steps, work, last.is_some());
            at[work.block].push(narrow(steps.len()));
            steps.push(step(Some(&work.op), work.count, last));
        }
        made
    }
}

impl Blocks {
    fn of(&self, op: &Op<usize>) -> Option<usize> {
        let receiving = op.receives().and_then(|c| self.receiving.get(&c));
        receiving.or_else(|| op.sends().and_then(|c| self.sending.get(&c))).copied()
    }

    /// Returns the thread block without connections, for operations on local memory; the first call creates it.
    fn local(&mut self) -> usize {
        let known = self.ends.iter().position(|e| *e == (None, None));
        known.unwrap_or_else(|| {
            self.ends.push((None, None));
            self.ends.len() - 1
        })
    }
}

/// Separates a reduction without a wait from a preceding reduction into the same place. The executor's parser would
/// merge the two. The merged step would have the length of the last reduction, a limited number of sources, and results
/// with other bits, because it adds the destination last. A step with `is_awaited` ends a run of merged steps.
fn unfuse(steps: &mut [Step], work: &Work, waits: bool) {
    let Op::Reduce { into, .. } = work.op else { return };
    if let Some(last) = steps.last_mut().filter(|last| last.kind == Type::Reduce && last.destination == into && !waits)
    {
        last.is_awaited = true;
    }
}

fn step(op: Option<&Op<usize>>, count: u32, waits_for: Option<(u32, u32)>) -> Step {
    // An unused operand repeats the used operand, as in files of msccl-tools.
    let (kind, source, destination) = match op {
        None => (Type::Nothing, None, None),
        Some(&Op::Send { from, .. }) => (Type::Send, Some(from), None),
        Some(&Op::Receive { into, on, .. }) => {
            (if on.is_some() { Type::ReceiveCopySend } else { Type::Receive }, None, Some(into))
        }
        Some(&Op::ReceiveReduce { with, into, on, .. }) => {
            let kind = match (into, on) {
                (_, None) => Type::ReceiveReduceCopy,
                (Some(_), Some(_)) => Type::ReceiveReduceCopySend,
                (None, Some(_)) => Type::ReceiveReduceSend,
            };
            (kind, Some(with), into)
        }
        Some(&Op::Copy { from, into }) => (Type::Copy, Some(from), Some(into)),
        Some(&Op::Reduce { from, into }) => (Type::Reduce, Some(from), Some(into)),
    };
    let nowhere = Place { buffer: Buffer::Input, chunk: 0 };
    let any = source.or(destination).unwrap_or(nowhere);
    Step {
        line: 0,
        number: 0,
        kind,
        source: source.unwrap_or(any),
        destination: destination.unwrap_or(any),
        count,
        waits_for,
        is_awaited: false,
    }
}
