//! The program of one rank while it is built.
//!
//! Each step, receive and send records the memory that it accesses, and waits for earlier accesses that clash with it.
//! Steps of several lanes are added alternately, so accesses and waits name a lane and a row; [`Rank::finish`] numbers
//! the steps of all lanes.

use unisono_base::{InstrId, LaneId, NodeId};

use super::{
    Arrival, Departure, Lane, Place, RankProgram, Step, StoreError, Wait,
    runs::Runs,
    touches::{Touches, region},
};
use crate::schedule::Schedule;

/// First instruction that accesses a block, its lane, and whether other lanes access the block too.
#[derive(Clone, Copy)]
pub struct First {
    pub lane: u32,
    pub instr: u32,
    pub shared: bool,
}

/// An access to memory, before the steps of all lanes are numbered.
#[derive(Clone, Copy, PartialEq)]
pub enum Access {
    /// A step, by its lane and its row in the lane.
    Step(u32, u32),
    /// A received message, by the lane and row of the step that consumes it.
    Arrival(u32, u32),
    /// A sent message.
    Departure(u32),
}

/// A wait as in [`Wait`], before the steps of all lanes are numbered.
#[derive(Clone, Copy, PartialEq)]
pub enum Await {
    Step(u32, u32),
    Departure(u32),
}

/// Rows that one lane has so far.
#[derive(Default)]
pub struct LaneBuild {
    pub steps: Vec<Step>,
    pub arrivals: Vec<Arrival>,
    /// First block of each slot for arriving messages.
    pub slots: Vec<u32>,
    pub next_slot: u32,
    /// Number of slots that the lane may have, at least as many as one instruction needs.
    pub most_slots: u32,
    pub staging: Option<u32>,
    /// Number of blocks of the lane's longest instruction.
    pub largest: u32,
}

/// Rows of a rank so far, and the latest accesses to its memory.
#[derive(Default)]
pub struct Rank {
    pub first_lane: u32,
    pub scratch: u32,
    pub lanes: Vec<LaneBuild>,
    pub departures: Vec<Departure>,
    pub waits: Vec<Await>,
    /// Latest accesses to the blocks of `out` and of `tmp`.
    pub touches: [Touches<Access>; 2],
    /// First instruction that accesses each block of `out` and of `tmp`.
    pub first: [Runs<First>; 2],
    /// For each block of `out` and `tmp`: the index of the input block that it holds, minus its own index.
    pub shift: [Runs<i64>; 2],
}

pub struct Sum {
    pub a: Place,
    pub b: Option<Place>,
    pub to: Option<Place>,
    pub arrivals: std::ops::Range<u32>,
}

impl Rank {
    /// Creates a rank without steps. Its lanes may have `slots` slots for messages, or more if an instruction needs
    /// more.
    pub fn new(schedule: &Schedule, node: NodeId, slots: u32) -> Self {
        let lanes = schedule.lanes(node);
        let mut first: [Runs<First>; 2] = Default::default();
        let mut builds = Vec::with_capacity(lanes.len());
        for lane in lanes.clone() {
            let mut build = LaneBuild { most_slots: slots, ..LaneBuild::default() };
            for instr in schedule.lane_instrs(LaneId::new(lane)) {
                let id = InstrId::new(instr);
                let streams = schedule.sources(id).iter().filter(|o| o.stream().is_some()).count();
                build.most_slots = build.most_slots.max(streams as u32);
                build.largest = build.largest.max(schedule.instr(id).len);
                let slices = schedule.sources(id).iter().chain(schedule.sinks(id).iter());
                for (buffer, span) in slices.filter_map(|o| o.slice(schedule.instr(id).len)).filter(|s| s.0 > 0) {
                    let here = First { lane: lane as u32, instr: id.0, shared: false };
                    first[buffer - 1].update(span, || here, |touch| touch.shared |= touch.lane != here.lane);
                }
            }
            builds.push(build);
        }
        Self {
            first_lane: lanes.start as u32,
            scratch: schedule.scratch_elements(node),
            lanes: builds,
            first,
            ..Self::default()
        }
    }

    pub fn take_scratch(&mut self, blocks: u32, rank: u32) -> Result<u32, StoreError> {
        let start = self.scratch;
        let most = u64::from(u32::MAX);
        self.scratch = start.checked_add(blocks).ok_or(StoreError::TooMany {
            rank,
            what: "blocks of scratch memory",
            found: u64::from(start) + u64::from(blocks),
            most,
        })?;
        Ok(start)
    }

    /// Adds `wait` to the table of waits, unless a row from `first` on contains it.
    pub fn wait(&mut self, first: usize, wait: Await) {
        if !self.waits[first..].contains(&wait) {
            self.waits.push(wait);
        }
    }

    /// Records that a message is received at `place`, and adds the waits that must end before its receive is posted.
    pub fn lands(&mut self, place: Place, len: u32, access: Access, first_wait: usize) {
        let mut found = Vec::new();
        let (buffer, span) = region(place, len);
        self.touches[buffer - 1].write(span, access, |earlier| found.push(earlier));
        for earlier in found {
            // Receives may be posted before the steps of their lane, so they wait for steps of their own lane too.
            let wait = match earlier {
                Access::Step(lane, row) | Access::Arrival(lane, row) => Await::Step(lane, row),
                Access::Departure(departure) => Await::Departure(departure),
            };
            self.wait(first_wait, wait);
        }
    }

    /// Records an access of the step with this lane and row, and adds the step's waits.
    fn touch(&mut self, place: Place, len: u32, writes: bool, (lane, row): (u32, u32), first_wait: usize) {
        let (buffer, span) = region(place, len);
        if buffer == 0 {
            return;
        }
        let mut found = Vec::new();
        let (touches, access) = (&mut self.touches[buffer - 1], Access::Step(lane, row));
        match writes {
            true => touches.write(span, access, |earlier| found.push(earlier)),
            false => touches.read(span, access, |earlier| found.push(earlier)),
        }
        for earlier in found {
            match earlier {
                Access::Step(other, earlier) | Access::Arrival(other, earlier) if other != lane => {
                    self.wait(first_wait, Await::Step(other, earlier));
                }
                // The access comes earlier in the same lane, or is a message that the step consumes. So no wait is
                // needed.
                Access::Step(..) | Access::Arrival(..) => {}
                Access::Departure(departure) => self.wait(first_wait, Await::Departure(departure)),
            }
        }
    }

    /// Adds a step whose waits begin at row `first_wait`.
    pub fn step(&mut self, part: &LanePiece, sum: Sum, first_wait: usize) {
        let row = (part.lane, self.lanes[part.lane as usize].steps.len() as u32);
        for place in [Some(sum.a), sum.b].into_iter().flatten() {
            self.touch(place, part.len, false, row, first_wait);
        }
        if let Some(to) = sum.to {
            self.touch(to, part.len, true, row, first_wait);
        }
        let departed = self.departures.len() as u32;
        let Sum { a, b, to, arrivals } = sum;
        let waits = first_wait as u32..self.waits.len() as u32;
        let step = Step { len: part.len, align: part.align, a, b, to, arrivals, departures: departed..departed, waits };
        self.lanes[part.lane as usize].steps.push(step);
    }

    /// Returns the finished program, with the steps of all lanes numbered. All alignments are 0 unless `aligned`.
    pub fn finish(mut self, aligned: bool) -> RankProgram {
        let mut program = RankProgram { scratch_blocks: self.scratch, ..RankProgram::default() };
        let mut first_step = Vec::new();
        let mut steps = 0;
        for lane in &self.lanes {
            first_step.push(steps);
            steps += lane.steps.len() as u32;
        }
        for lane in self.lanes.iter_mut().filter(|lane| !lane.steps.is_empty()) {
            let (step, arrival) = (program.steps.len() as u32, program.arrivals.len() as u32);
            for s in &mut lane.steps {
                s.arrivals = s.arrivals.start + arrival..s.arrivals.end + arrival;
                s.align = if aligned { s.align } else { 0 };
            }
            for a in &mut lane.arrivals {
                a.align = if aligned { a.align } else { 0 };
            }
            program.steps.append(&mut lane.steps);
            program.arrivals.append(&mut lane.arrivals);
            let (steps, arrivals) = (step..program.steps.len() as u32, arrival..program.arrivals.len() as u32);
            program.lanes.push(Lane { steps, arrivals });
        }
        for departure in &mut self.departures {
            departure.align = if aligned { departure.align } else { 0 };
        }
        program.departures = self.departures;
        let number = |w: Await| match w {
            Await::Step(lane, row) => Wait::Step(first_step[lane as usize] + row),
            Await::Departure(d) => Wait::Departure(d),
        };
        program.waits = self.waits.into_iter().map(number).collect();
        program
    }
}

/// One part of an instruction: its lane in the rank, and its length and alignment in blocks.
pub struct LanePiece {
    pub lane: u32,
    pub len: u32,
    pub align: u32,
}
