//! Converts programs to a schedule, so that the proof of schedules applies to them: order, completeness, repeatability.
//!
//! A message becomes a stream. One instruction pushes it directly after the step that sends it, and one instruction
//! pops it directly before the step that consumes it. Both instructions are within the period in which the library may
//! read or write the message. [`super::windows`] checks that no other access to the memory of the message is in this
//! period.

use unisono_base::{InstrId, NodeId, StreamId};
use unisono_collective::Collective;

use super::{Place, RankProgram, Unsound, Wait, order::Message};
use crate::{
    builder::Builder,
    schedule::{Operand, Schedule},
};

fn operand(place: Place) -> Operand {
    match place {
        Place::In(start) => Operand::In(start),
        Place::Out(start) => Operand::Out(start),
        Place::Tmp(start) => Operand::Tmp(start),
    }
}

struct Raised {
    /// Last instruction of each step.
    steps: Vec<InstrId>,
    /// Instruction that pushes each departure.
    departures: Vec<InstrId>,
    /// Instructions that wait, each with its rows of waits.
    waits: Vec<(InstrId, std::ops::Range<u32>)>,
}

/// Returns the schedule that is equivalent to programs with these messages.
///
/// # Errors
/// Returns an error if there are more rows than a schedule can have.
pub fn raise(programs: &[RankProgram], c: &Collective, messages: &[Message]) -> Result<Schedule, Unsound> {
    let mut b = Builder::new(*c);
    let row = |count: usize| vec![StreamId(0); count];
    let mut leaves: Vec<Vec<StreamId>> = programs.iter().map(|p| row(p.departures.len())).collect();
    let mut arrives: Vec<Vec<StreamId>> = programs.iter().map(|p| row(p.arrivals.len())).collect();
    for m in messages {
        let stream = b.stream(NodeId(m.from), &[NodeId(m.to)]);
        leaves[m.from as usize][m.departure as usize] = stream;
        arrives[m.to as usize][m.arrival as usize] = stream;
    }
    for (rank, p) in programs.iter().enumerate() {
        let node = NodeId::new(rank);
        b.scratch(node, p.scratch_blocks);
        let mut raised = Raised {
            steps: Vec::with_capacity(p.steps.len()),
            departures: vec![InstrId(0); p.departures.len()],
            waits: Vec::new(),
        };
        for (lane, rows) in (0u32..).zip(&p.lanes) {
            for s in rows.steps.clone() {
                raised.step(&mut b, node, lane, p, s, (&leaves[rank], &arrives[rank]));
            }
        }
        for (instr, rows) in &raised.waits {
            for wait in &p.waits[rows.start as usize..rows.end as usize] {
                let earlier = match *wait {
                    Wait::Step(s) => raised.steps[s as usize],
                    Wait::Departure(d) => raised.departures[d as usize],
                };
                if earlier != *instr {
                    b.after(*instr, earlier);
                }
            }
        }
    }
    b.finish().map_err(|e| Unsound::Contents { why: e.to_string() })
}

impl Raised {
    fn step(
        &mut self,
        b: &mut Builder,
        node: NodeId,
        lane: u32,
        p: &RankProgram,
        s: u32,
        (leaves, arrives): (&[StreamId], &[StreamId]),
    ) {
        let step = &p.steps[s as usize];
        let mut last = None;
        for a in step.arrivals.clone() {
            let arrival = &p.arrivals[a as usize];
            let stream = Operand::Stream(arrives[a as usize]);
            let pop = b.combine(node, lane, arrival.len, &[stream], &[operand(arrival.place)]);
            self.waits.push((pop, arrival.waits.clone()));
            last = Some(pop);
        }
        let mut main = None;
        if let Some(to) = step.to {
            let sources = [Some(step.a), step.b].into_iter().flatten().map(operand).collect::<Vec<_>>();
            main = Some(b.combine(node, lane, step.len, &sources, &[operand(to)]));
            last = main;
        }
        for d in step.departures.clone() {
            let departure = &p.departures[d as usize];
            let stream = Operand::Stream(leaves[d as usize]);
            let push = b.combine(node, lane, departure.len, &[operand(departure.place)], &[stream]);
            self.departures[d as usize] = push;
            main = main.or(Some(push));
            last = Some(push);
        }
        // A step that neither writes nor sends becomes a copy to unused memory, so that it keeps its position in the
        // lane.
        let last = last.unwrap_or_else(|| {
            let nowhere = b.scratch(node, step.len);
            b.combine(node, lane, step.len, &[operand(step.a)], &[Operand::Tmp(nowhere)])
        });
        self.waits.push((main.unwrap_or(last), step.waits.clone()));
        self.steps.push(last);
    }
}
