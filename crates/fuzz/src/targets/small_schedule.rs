//! Small schedules from draws. Most perform their collective, with several lanes, streams with capacities, multicasts,
//! several sinks, sums in place, and dependencies within and between nodes. Some are then damaged.

use unisono_base::{InstrId, NodeId};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::File;
use unisono_schedule::{BuildError, Builder, Operand, Schedule};

use crate::{Draws, Form, FuzzTarget, uses};

pub const TARGET: FuzzTarget = FuzzTarget::new(
    "small-schedule",
    "makes a small schedule; methods of proof agree, it reads back, and stored it gives the interpreter's numbers",
    run,
)
.form(Form::Draws)
.quick_runs(3000);

fn run(input: &[u8]) -> bool {
    let Ok(schedule) = draw(&mut Draws::new(input)) else { return false };
    uses::file(&File { schedule, placement: None, machine: None, blocks: None });
    true
}

/// A schedule being built, with the instructions added so far.
struct Made<'a, 'b> {
    b: Builder,
    d: &'a mut Draws<'b>,
    lanes: u32,
    ids: Vec<InstrId>,
}

/// Draws a schedule with up to three additions that its collective does not need.
///
/// # Errors
/// Returns an error if the builder refuses an addition.
pub fn draw(d: &mut Draws<'_>) -> Result<Schedule, BuildError> {
    let kind = d.pick(&Kind::ALL);
    let (ranks, elements) = (1 + d.below(5), 1 + d.below(6));
    let root = d.below(ranks);
    let operator = d.pick(&[Operator::Sum, Operator::Sum, Operator::Max, Operator::Ordered]);
    let c = Collective::new(kind, ranks, u64::from(elements), u64::from(root), operator, Dtype::I64)
        .unwrap_or_else(|e| panic!("a small collective is none: {e}"));
    let mut b = Builder::new(c);
    for n in 0..ranks {
        b.scratch(NodeId(n), elements);
    }
    let lanes = 1 + d.below(3);
    let mut made = Made { b, d, lanes, ids: Vec::new() };
    match kind {
        Kind::Allreduce | Kind::Reduce | Kind::Barrier => made.trees(&c),
        _ => made.messages(&c),
    }
    for _ in 0..made.d.below(4) {
        made.damage(&c);
    }
    made.b.finish()
}

impl Made<'_, '_> {
    fn lane(&mut self) -> u32 {
        self.d.below(self.lanes)
    }

    /// Adds an instruction, which may wait for an earlier one of any node.
    fn combine(&mut self, node: NodeId, lane: u32, len: u32, sources: &[Operand], sinks: &[Operand]) -> InstrId {
        let id = self.b.combine(node, lane, len, sources, sinks);
        if self.d.once_in(8) && !self.ids.is_empty() {
            let earlier = self.ids[self.d.below(self.ids.len() as u32) as usize];
            self.b.after(id, earlier);
        }
        self.ids.push(id);
        id
    }

    fn stream(&mut self, from: NodeId, to: &[NodeId]) -> Operand {
        let stream = self.b.stream(from, to);
        if self.d.once_in(4) {
            let capacity = self.d.below(5);
            self.b.capacity(stream, capacity);
        }
        Operand::Stream(stream)
    }

    /// Splits a vector into random pieces, returned as (start, length).
    fn chunks(&mut self, elements: u32) -> Vec<(u32, u32)> {
        let (mut chunks, mut start) = (Vec::new(), 0);
        while start < elements {
            let len = 1 + self.d.below(elements - start);
            chunks.push((start, len));
            start += len;
        }
        chunks
    }

    /// Sends each piece up a random tree and, except in a reduce, the sum down the same tree.
    fn trees(&mut self, c: &Collective) {
        for (start, len) in self.chunks(c.elements) {
            let mut order: Vec<u32> = (0..c.ranks).collect();
            if c.operator.commutative() {
                (1..c.ranks).rev().for_each(|n| order.swap(n as usize, self.d.below(n + 1) as usize));
            }
            if c.kind == Kind::Reduce {
                let at = order.iter().position(|&n| n == c.root).unwrap_or(0);
                order.swap(0, at);
            }
            let parent: Vec<u32> = (0..c.ranks).map(|n| if n == 0 { 0 } else { self.d.below(n) }).collect();
            let node = |n: u32| NodeId(order[n as usize]);
            let children = |n: u32| (n + 1..c.ranks).filter(|&m| parent[m as usize] == n).collect::<Vec<u32>>();
            let (lane, in_steps, twice) = (self.lane(), self.d.once_in(2), self.d.once_in(3));
            let up: Vec<Operand> = (1..c.ranks).map(|n| self.stream(node(n), &[node(parent[n as usize])])).collect();
            for n in (0..c.ranks).rev() {
                let mut sinks = vec![if n == 0 { Operand::Out(start) } else { up[n as usize - 1] }];
                if twice {
                    sinks.push(Operand::Tmp(start));
                }
                if self.d.once_in(2) {
                    sinks.reverse();
                }
                let arriving: Vec<Operand> = children(n).iter().map(|&m| up[m as usize - 1]).collect();
                if in_steps && !arriving.is_empty() {
                    let mut own = Operand::In(start);
                    for stream in arriving {
                        self.combine(node(n), lane, len, &[own, stream], &[Operand::Tmp(start)]);
                        own = Operand::Tmp(start);
                    }
                    sinks.retain(|sink| *sink != Operand::Tmp(start));
                    self.combine(node(n), lane, len, &[own], &sinks);
                } else {
                    let sources: Vec<Operand> = std::iter::once(Operand::In(start)).chain(arriving).collect();
                    self.combine(node(n), lane, len, &sources, &sinks);
                }
            }
            if c.kind == Kind::Reduce {
                continue;
            }
            let down = if self.d.once_in(2) { self.lane() } else { lane };
            let ends = self.b.lane_ends(node(0));
            for n in 0..c.ranks {
                let below: Vec<NodeId> = children(n).into_iter().map(node).collect();
                if below.is_empty() {
                    continue;
                }
                let stream = self.stream(node(n), &below);
                let id = self.combine(node(n), down, len, &[Operand::Out(start)], &[stream]);
                if n == 0 {
                    ends.iter().for_each(|&end| self.b.after(id, end));
                }
                for child in below {
                    let sinks = if twice && !self.d.once_in(2) {
                        vec![Operand::Out(start), Operand::Tmp(start)]
                    } else {
                        vec![Operand::Out(start)]
                    };
                    self.combine(child, down, len, &[stream], &sinks);
                }
            }
        }
    }

    /// Sends the parts of each output directly from their inputs.
    fn messages(&mut self, c: &Collective) {
        use unisono_collective::Source;
        for rank in 0..c.ranks {
            for required in c.required(rank).collect::<Vec<_>>() {
                let first = required.span.start;
                for (start, len) in self.chunks(required.span.len) {
                    let sources: Vec<u32> = match required.source {
                        Source::Copy { rank } => vec![rank],
                        Source::Reduction { ranks } | Source::AtLeastOnce { ranks } => (0..ranks).collect(),
                    };
                    let (lane, mut operands) = (self.lane(), Vec::new());
                    for from in sources {
                        let input = Operand::In(required.input_start + start);
                        if from == rank {
                            operands.push(input);
                            continue;
                        }
                        let stream = self.stream(NodeId(from), &[NodeId(rank)]);
                        let lane = self.lane();
                        self.combine(NodeId(from), lane, len, &[input], &[stream]);
                        operands.push(stream);
                    }
                    self.combine(NodeId(rank), lane, len, &operands, &[Operand::Out(first + start)]);
                }
            }
        }
    }

    /// Adds an instruction or a dependency that the collective does not need.
    fn damage(&mut self, c: &Collective) {
        let node = NodeId(self.d.below(c.ranks));
        let (lane, len) = (self.lane(), 1 + self.d.below(3));
        let mut place = || {
            let start = self.d.below(c.elements + 1);
            [Operand::In(start), Operand::Out(start), Operand::Tmp(start)][self.d.below(3) as usize]
        };
        let (from, to) = (place(), place());
        match self.d.below(4) {
            0 => drop(self.combine(node, lane, len, &[from], &[to])),
            1 if self.ids.len() > 1 => {
                let last = self.ids.len() as u32;
                let (one, other) = (self.d.below(last), self.d.below(last));
                self.b.after(self.ids[one as usize], self.ids[other as usize]);
            }
            2 if c.ranks > 1 => {
                let peer = NodeId((node.0 + 1) % c.ranks);
                let stream = self.stream(node, &[peer]);
                self.combine(node, lane, len, &[from], &[stream]);
                self.combine(peer, lane, len, &[stream], &[to]);
            }
            _ => drop(self.combine(node, lane, len, &[Operand::Tmp(0), from], &[Operand::Tmp(0), to])),
        }
    }
}
