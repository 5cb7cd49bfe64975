//! Runs a plan without data: each thread block advances until a signal, semaphore, barrier or packet is missing.
//!
//! Each signal, semaphore and packet has one thread that waits for it, or several in an order that meetings, barriers
//! and semaphores fix ([`super::shared`]), so no step consumes the signal of another step. If one run ends, every run
//! therefore ends; if one run gets stuck, every run gets stuck at the same steps.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use unisono_base::{interrupt::poll, limits};

use super::{
    fault::Fault,
    program::{Act, Program, Space, Span, Step},
    shared::{barriers, unordered},
    stuck::fault,
};

/// A step: the indices of thread block and step.
pub type At = (usize, usize);

/// The steps of a run, and their order.
pub struct Run {
    /// All completed steps, in a possible order.
    pub order: Vec<At>,
    /// For each step, the steps that must complete before it because of signals, semaphores, barriers and packets.
    pub after: FxHashMap<At, Vec<At>>,
    /// For each wait, the signal that it consumes; for each acquire, the release that it consumes, unless the
    /// semaphore's initial value permits it. Keys and values are a step and the index of one of its effects.
    pub taken: FxHashMap<(At, usize), (At, usize)>,
    /// True if all thread blocks end, in every run; `None` if barriers have faults, or runs may differ in their order.
    pub ends: Option<bool>,
    pub faults: Vec<Fault>,
}

pub(super) struct State<'a> {
    pub(super) program: &'a Program,
    /// The number of completed steps of each thread block.
    pub(super) done: Vec<usize>,
    /// The signals sent from each end, each as a step and an index among the step's effects.
    pub(super) signals: Vec<Vec<(At, usize)>>,
    /// The number of completed waits at each end.
    pub(super) waits: Vec<usize>,
    /// The releases of each semaphore, each as a step and an index among the step's effects.
    pub(super) releases: Vec<Vec<(At, usize)>>,
    acquires: Vec<usize>,
    /// The thread blocks that have reached each barrier, by GPU and id.
    arrived: BTreeMap<(u32, u32), Vec<usize>>,
    /// The packets written: by GPU and first grain, the end and the step.
    packets: BTreeMap<(u32, u32), (u32, At)>,
    run: Run,
}

/// Runs a plan until it ends or gets stuck, unless its barriers have faults.
pub fn run(program: &Program) -> Run {
    let mut state = State {
        program,
        done: vec![0; program.blocks.len()],
        signals: vec![Vec::new(); program.ends.len()],
        waits: vec![0; program.ends.len()],
        releases: vec![Vec::new(); program.semaphores.len()],
        acquires: vec![0; program.semaphores.len()],
        arrived: BTreeMap::new(),
        packets: BTreeMap::new(),
        run: Run {
            order: Vec::new(),
            after: FxHashMap::default(),
            taken: FxHashMap::default(),
            ends: None,
            faults: Vec::new(),
        },
    };
    state.run.faults = barriers(program);
    if !state.run.faults.is_empty() {
        return state.run;
    }
    let mut moved = true;
    while moved {
        moved = false;
        for block in 0..program.blocks.len() {
            limits::spend("the run of the plan", 8);
            while state.done[block] < program.blocks[block].steps.len() && state.advance(block) {
                poll();
                moved = true;
            }
        }
    }
    let open = unordered(program, &state.run, &state.done);
    if !open.is_empty() {
        state.run.faults = open;
        return state.run;
    }
    state.finish()
}

impl State<'_> {
    /// Runs the next step of a thread block if its waits are satisfied, and returns whether it has run.
    fn advance(&mut self, block: usize) -> bool {
        let program = self.program;
        let at = (block, self.done[block]);
        let step = program.step(at);
        if let Some(&Act::Barrier { id, blocks }) = step.acts.first() {
            return self.arrive(at, program.blocks[block].gpu, id, blocks);
        }
        let Some((after, taken)) = self.ready(step) else { return false };
        for (n, signal) in taken {
            self.run.taken.insert((at, n), signal);
        }
        if !after.is_empty() {
            self.run.after.insert(at, after);
        }
        for (n, act) in step.acts.iter().enumerate() {
            match act {
                Act::Signal { end, .. } => self.signals[*end as usize].push((at, n)),
                Act::Wait { end, .. } => self.waits[*end as usize] += 1,
                Act::Release(semaphore) => self.releases[*semaphore as usize].push((at, n)),
                Act::Acquire(semaphore) => self.acquires[*semaphore as usize] += 1,
                Act::Move(m) => {
                    for &span in m.writes.iter().filter(|s| s.space == Space::Packets) {
                        self.write_packets(at, step, span);
                    }
                }
                Act::Sync | Act::Barrier { .. } | Act::Flush { .. } => {}
            }
        }
        self.complete(at);
        true
    }

    fn complete(&mut self, at: At) {
        self.done[at.0] += 1;
        self.run.order.push(at);
    }

    /// Returns the steps that a step must follow, and the signals that its waits take; `None` while it must wait.
    #[expect(clippy::type_complexity, reason = "two lists of one function")]
    fn ready(&self, step: &Step) -> Option<(Vec<At>, Vec<(usize, (At, usize))>)> {
        let (mut after, mut taken) = (Vec::new(), Vec::new());
        for (n, act) in step.acts.iter().enumerate() {
            let earlier = |same: &dyn Fn(&Act) -> bool| step.acts[..n].iter().filter(|a| same(a)).count();
            match act {
                Act::Wait { end, .. } => {
                    let before = earlier(&|a| matches!(a, Act::Wait { end: e, .. } if e == end));
                    let peer = self.program.ends[*end as usize].peer? as usize;
                    let signal = *self.signals[peer].get(self.waits[*end as usize] + before)?;
                    after.push(signal.0);
                    taken.push((n, signal));
                }
                Act::Acquire(semaphore) => {
                    let before = earlier(&|a| matches!(a, Act::Acquire(s) if s == semaphore));
                    let count = self.acquires[*semaphore as usize] + before;
                    let initial = self.program.semaphores[*semaphore as usize].2 as usize;
                    if let Some(at) = count.checked_sub(initial) {
                        let release = *self.releases[*semaphore as usize].get(at)?;
                        after.push(release.0);
                        taken.push((n, release));
                    }
                }
                Act::Move(m) if m.port.is_none() || m.has_packets() => {
                    for span in m.reads.iter().filter(|s| s.space == Space::Packets) {
                        after.extend(self.writers(*span)?);
                    }
                }
                _ => {}
            }
        }
        Some((after, taken))
    }

    /// Returns the steps that wrote some packets; `None` if a packet has not been written.
    fn writers(&self, span: Span) -> Option<Vec<At>> {
        let (mut at, mut writers) = (span.start, Vec::new());
        let before = self.packets.range(..=(span.gpu, span.start)).next_back();
        let from =
            before.filter(|((gpu, _), (end, _))| *gpu == span.gpu && *end > span.start).map_or(span.start, |b| b.0.1);
        for (&(_, start), &(end, writer)) in self.packets.range((span.gpu, from)..(span.gpu, span.end())) {
            if start > at {
                return None;
            }
            writers.push(writer);
            at = end;
        }
        (at >= span.end()).then_some(writers)
    }

    fn write_packets(&mut self, at: At, step: &Step, span: Span) {
        let later = self.packets.range((span.gpu, 0)..(span.gpu, span.end()));
        let twice = later.rev().map_while(|(k, v)| (v.0 > span.start).then_some((k, v))).next();
        if let Some((_, &(_, first))) = twice {
            let other = self.program.step(first).place;
            let message = format!(
                "{} and {other} write the same packets of gpu {} in one launch; a reader cannot distinguish them",
                step.place, span.gpu
            );
            let trace = vec![
                format!("{other} writes packets of gpu {}", span.gpu),
                format!("{} writes them again", step.place),
            ];
            self.run.faults.push(Fault::at("race", &step.place, message).with_trace(trace));
            return;
        }
        self.packets.insert((span.gpu, span.start), (span.end(), at));
    }

    fn arrive(&mut self, at: At, gpu: u32, id: u32, blocks: u32) -> bool {
        let here = self.arrived.entry((gpu, id)).or_default();
        if !here.contains(&at.0) {
            here.push(at.0);
        }
        if here.len() < blocks as usize {
            return false;
        }
        let here = std::mem::take(here);
        let all: Vec<At> = here.iter().map(|&b| (b, self.done[b])).collect();
        for &(b, step) in &all {
            let others = all.iter().filter(|o| o.0 != b && o.1 > 0).map(|&(o, s)| (o, s - 1));
            self.run.after.entry((b, step)).or_default().extend(others);
        }
        all.into_iter().for_each(|at| self.complete(at));
        true
    }

    fn finish(mut self) -> Run {
        if self.done.iter().zip(&self.program.blocks).any(|(&done, block)| done < block.steps.len()) {
            let found = fault(&self);
            self.run.faults.push(found);
            self.run.ends = Some(false);
            return self.run;
        }
        self.run.ends = Some(true);
        for (n, end) in self.program.ends.iter().enumerate() {
            let waits = end.peer.map_or(0, |peer| self.waits[peer as usize]);
            if let Some(&(at, _)) = self.signals[n].get(waits) {
                let sent = self.signals[n].len();
                let message = format!(
                    "{end} is signaled {sent} times and gpu {} waits {waits} times; the next launch takes what is left over",
                    end.peer_gpu
                );
                let trace = vec![
                    format!("{} signals {end}", self.program.step(at).place),
                    "no wait takes this signal".to_owned(),
                ];
                self.run.faults.push(Fault::at("unmatched", &self.program.step(at).place, message).with_trace(trace));
            }
        }
        for (n, &(gpu, index, initial)) in self.program.semaphores.iter().enumerate() {
            let (releases, acquires) = (self.releases[n].len(), self.acquires[n]);
            if releases != acquires {
                let message = format!(
                    "semaphore {index} of gpu {gpu} is released {releases} times and acquired {acquires} times; the next launch starts with {} instead of {initial}",
                    (initial as usize + releases).saturating_sub(acquires)
                );
                self.run.faults.push(Fault::of_gpu("unmatched", gpu, message));
            }
        }
        self.run
    }
}
