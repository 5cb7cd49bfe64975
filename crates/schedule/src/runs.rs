//! A topological order as runs of consecutive instructions of one lane. One thread can read it while another writes it.

use std::{
    ops::Range,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use unisono_base::{InstrId, LaneId, interrupt};

use crate::schedule::Schedule;

/// The number of runs in a part of the order. A reader gets a part as a whole; the last part may have fewer runs.
const PART: usize = 1 << 14;
/// The interval at which a waiting reader checks for an interrupt by the user.
const LOOK: Duration = Duration::from_millis(20);

/// Lane of a run and the index after its last instruction. The run starts at the end of the lane's previous run.
type End = (LaneId, u32);

#[derive(Default)]
pub struct Runs {
    parts: Mutex<Parts>,
    grown: Condvar,
}

#[derive(Default)]
struct Parts {
    full: Vec<Arc<[End]>>,
    ended: bool,
}

impl Runs {
    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a new order, which is complete when the writer is dropped.
    pub fn write(&self) -> Writer<'_> {
        *self.parts() = Parts::default();
        Writer { runs: self, part: Vec::new() }
    }

    /// Returns part `at` of the order, and waits until it is written; `None` after the last part.
    fn part(&self, at: usize) -> Option<Arc<[End]>> {
        let mut parts = self.parts();
        while parts.full.len() == at && !parts.ended {
            interrupt::check();
            parts = self.grown.wait_timeout(parts, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        parts.full.get(at).cloned()
    }

    /// Returns the lane and the instructions of each run, in order. The iterator waits for runs that are not written
    /// yet.
    pub fn iter<'a>(&'a self, schedule: &Schedule) -> impl Iterator<Item = (LaneId, Range<u32>)> + use<'a> {
        let mut next = schedule.lane_instrs.clone();
        let mut part = (0..).map_while(|at| self.part(at));
        let (mut here, mut at): (Arc<[End]>, usize) = (Arc::from([]), 0);
        std::iter::from_fn(move || {
            while at == here.len() {
                (here, at) = (part.next()?, 0);
            }
            let (lane, end) = here[at];
            at += 1;
            Some((lane, std::mem::replace(&mut next[lane.index()], end)..end))
        })
    }

    pub fn instrs(&self, schedule: &Schedule) -> Vec<InstrId> {
        let mut order = Vec::with_capacity(schedule.instr_count());
        self.iter(schedule).for_each(|(_, run)| order.extend(run.map(InstrId)));
        order
    }
}

pub struct Writer<'a> {
    runs: &'a Runs,
    part: Vec<End>,
}

impl Writer<'_> {
    pub fn push(&mut self, end: End) {
        self.part.push(end);
        if self.part.len() == PART {
            self.pass();
        }
    }

    fn pass(&mut self) {
        self.runs.parts().full.push(self.part.as_slice().into());
        self.part.clear();
        self.runs.grown.notify_all();
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.pass();
        self.runs.parts().ended = true;
        self.runs.grown.notify_all();
    }
}
