//! Channel ends and semaphores that several thread blocks of a GPU use. The order of their uses has to be the same in
//! every run: each use comes after the one before it, by barriers and semaphores of the GPU between meetings of the
//! threads.
//!
//! If that holds for one run, it holds for all. Take the first step of another run that gets another signal than here:
//! the use before it has not happened there. But what orders the two here has happened in the same way there, since all
//! earlier steps are alike. A step that waits forever counts as a use too, since it could come earlier in another run.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use unisono_base::limits;

use super::{
    fault::Fault,
    program::{Act, Program},
    run::{At, Run},
};

/// The use of a channel end or a semaphore: what is done, and the number of the end or the semaphore.
type Use = (&'static str, u32);

fn use_of(act: &Act) -> Option<Use> {
    Some(match act {
        Act::Signal { end, .. } => ("signal", *end),
        Act::Wait { end, .. } => ("wait on", *end),
        Act::Acquire(semaphore) => ("acquire", *semaphore),
        Act::Release(semaphore) => ("release", *semaphore),
        Act::Sync | Act::Barrier { .. } | Act::Flush { .. } | Act::Move(_) => return None,
    })
}

/// For each thread block, up to which step it has met, as another one knows it.
type Clock = BTreeMap<usize, usize>;

fn join(clock: &mut Clock, other: &Clock) {
    for (&block, &step) in other {
        let known = clock.entry(block).or_default();
        *known = step.max(*known);
    }
}

#[derive(Default)]
struct Clocks {
    known: BTreeMap<usize, Clock>,
    /// What acquires have brought since the threads met last.
    brought: BTreeMap<usize, Clock>,
    released: FxHashMap<(At, usize), Clock>,
    arrived: Vec<usize>,
}

impl Clocks {
    /// The threads of a block meet at a step.
    fn meet(&mut self, (block, step): At) {
        let brought = self.brought.remove(&block).unwrap_or_default();
        let known = self.known.entry(block).or_default();
        join(known, &brought);
        known.insert(block, step);
    }

    fn advance(&mut self, program: &Program, run: &Run, at: At) {
        for (n, act) in program.step(at).acts.iter().enumerate() {
            match act {
                Act::Sync => self.meet(at),
                Act::Barrier { blocks, .. } => {
                    self.meet(at);
                    self.arrived.push(at.0);
                    if self.arrived.len() == *blocks as usize {
                        let mut all = Clock::new();
                        self.arrived.iter().for_each(|block| join(&mut all, &self.known[block]));
                        for block in std::mem::take(&mut self.arrived) {
                            self.known.insert(block, all.clone());
                        }
                    }
                }
                Act::Release(_) => {
                    self.released.insert((at, n), self.known.get(&at.0).cloned().unwrap_or_default());
                }
                Act::Acquire(_) => {
                    if let Some(clock) = run.taken.get(&(at, n)).and_then(|from| self.released.get(from)) {
                        join(self.brought.entry(at.0).or_default(), clock);
                    }
                }
                _ => {}
            }
        }
    }
}

/// The faults of uses that nothing orders, where `done` steps of each thread block have run.
pub fn unordered(program: &Program, run: &Run, done: &[usize]) -> Vec<Fault> {
    let mut users: BTreeMap<Use, (usize, bool)> = BTreeMap::new();
    for (b, block) in program.blocks.iter().enumerate() {
        for found in block.steps.iter().flat_map(|step| &step.acts).filter_map(use_of) {
            let (first, is_shared) = users.entry(found).or_insert((b, false));
            *is_shared |= *first != b;
        }
    }
    users.retain(|_, (_, is_shared)| *is_shared);
    if users.is_empty() {
        return Vec::new();
    }
    let (mut clocks, mut faults) = (Clocks::default(), Vec::new());
    let mut last: BTreeMap<Use, At> = BTreeMap::new();
    let pending = (0..done.len()).map(|block| (block, done[block]));
    let pending = pending.filter(|&(block, step)| step < program.blocks[block].steps.len());
    for (at, has_run) in run.order.iter().map(|&at| (at, true)).chain(pending.map(|at| (at, false))) {
        limits::spend("the order of shared channels", 8);
        for found in program.step(at).acts.iter().filter_map(use_of) {
            if !users.contains_key(&found) {
                continue;
            }
            let before = last.get(&found).copied().filter(|before| before.0 != at.0);
            let known = |before: At| clocks.known.get(&at.0).and_then(|known| known.get(&before.0)).copied();
            if let Some(before) = before.filter(|&before| known(before).is_none_or(|step| step <= before.1)) {
                users.remove(&found);
                faults.push(fault(program, found, before, at));
            } else if has_run {
                last.insert(found, at);
            }
        }
        if has_run {
            clocks.advance(program, run, at);
        }
    }
    faults
}

fn fault(program: &Program, (does, id): Use, before: At, at: At) -> Fault {
    let thing = if does == "signal" || does == "wait on" {
        program.ends[id as usize].to_string()
    } else {
        let (gpu, index, _) = program.semaphores[id as usize];
        format!("semaphore {index} of gpu {gpu}")
    };
    let blocks = [before.0.min(at.0), before.0.max(at.0)].map(|block| program.blocks[block].id);
    let message = format!(
        "thread blocks {} and {} both {does} {thing}; which of them comes first is open, so give each its own, or put a barrier between them",
        blocks[0], blocks[1]
    );
    Fault::at("shared", &program.step(at).place, message)
}

/// Barriers that other thread blocks use than they count.
pub fn barriers(program: &Program) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut found: BTreeMap<(u32, u32), (u32, Vec<usize>)> = BTreeMap::new();
    for (b, block) in program.blocks.iter().enumerate() {
        for step in &block.steps {
            let Some(&Act::Barrier { id, blocks }) = step.acts.first() else { continue };
            let entry = found.entry((block.gpu, id)).or_insert((blocks, Vec::new()));
            if !entry.1.contains(&b) {
                entry.1.push(b);
            }
            if entry.0 != blocks || entry.1.len() > blocks as usize {
                let message = format!(
                    "barrier {id} of gpu {} is for {blocks} thread blocks here, and for others elsewhere",
                    block.gpu
                );
                faults.push(Fault::at("barrier", &step.place, message));
                entry.0 = blocks;
            }
        }
    }
    faults
}
