//! Checks channel ends and semaphores that several users share: several thread blocks of a GPU, or several threads of
//! one thread block (thread n uses the n-th channel or semaphore of an operation). The order of the uses must be the
//! same in every run: each use must follow the previous one, by barriers and semaphores of the GPU between meetings of
//! the threads.
//!
//! If this order holds in one run, it holds in all runs. Proof: consider the first step of another run that gets a
//! different signal. All earlier steps are equal in both runs, and so are the steps that order this use after the
//! previous one; so the previous use has happened in the other run too, and the step gets the same signal. A step that
//! waits forever counts as a use, because it could come earlier in another run.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use unisono_base::{limits, narrow};

use super::{
    fault::Fault,
    program::{Act, Program, Step},
    run::{At, Run},
};

/// A use of a channel end or a semaphore: the action, and the index of the end or the semaphore.
type Use = (&'static str, u32);

/// Returns the uses of a step, each with its thread. A signal or release also has its type (relaxed or not), because
/// two signals or releases of the same type after the same meeting are interchangeable.
fn uses(step: &Step) -> impl Iterator<Item = (Use, u32, Option<bool>)> {
    step.acts.iter().enumerate().filter_map(|(n, act)| {
        let thread = narrow::<u32>(n);
        Some(match act {
            // `knowledge` determines which puts a signal on a port channel follows.
            Act::Signal { end, relaxed, thread } => (("signal", *end), *thread, Some(*relaxed)),
            Act::Wait { end, .. } => (("wait on", *end), thread, None),
            Act::Acquire(semaphore) => (("acquire", *semaphore), thread, None),
            Act::Release(semaphore) => (("release", *semaphore), thread, Some(false)),
            Act::Sync | Act::Barrier { .. } | Act::Flush { .. } | Act::Move(_) => return None,
        })
    })
}

/// For each thread block, the step of its latest known meeting.
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
    /// For each thread block, the clock that its acquires since its latest meeting have brought.
    brought: BTreeMap<usize, Clock>,
    released: FxHashMap<(At, usize), Clock>,
    arrived: Vec<usize>,
}

impl Clocks {
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

/// Returns the faults of uses without an order, among the first `done` steps of each thread block and the step after
/// them.
pub fn unordered(program: &Program, run: &Run, done: &[usize]) -> Vec<Fault> {
    let mut users: BTreeMap<Use, ((usize, u32), bool)> = BTreeMap::new();
    for (b, block) in program.blocks.iter().enumerate() {
        for (found, thread, _) in block.steps.iter().flat_map(uses) {
            let (first, is_shared) = users.entry(found).or_insert(((b, thread), false));
            *is_shared |= *first != (b, thread);
        }
    }
    users.retain(|_, (_, is_shared)| *is_shared);
    if users.is_empty() {
        return Vec::new();
    }
    let (mut clocks, mut faults) = (Clocks::default(), Vec::new());
    // The uses that no known later use follows.
    let mut open: BTreeMap<Use, Vec<(At, u32, Option<bool>)>> = BTreeMap::new();
    let pending = (0..done.len()).map(|block| (block, done[block]));
    let pending = pending.filter(|&(block, step)| step < program.blocks[block].steps.len());
    for (at, has_run) in run.order.iter().map(|&at| (at, true)).chain(pending.map(|at| (at, false))) {
        limits::spend("the order of shared channels", 8);
        for (found, thread, kind) in uses(program.step(at)) {
            if !users.contains_key(&found) {
                continue;
            }
            let known = |before: At| {
                let of_block = clocks.known.get(&at.0).and_then(|known| known.get(&before.0));
                of_block.is_some_and(|&step| step > before.1)
            };
            // The waits of one operation end together, before any later use, so they need no order among themselves.
            let together = |before: At| before == at;
            let alike = |before: At, of: Option<bool>| before.0 == at.0 && kind.is_some() && of == kind;
            let earlier = open.entry(found).or_default();
            let other = earlier.iter().find(|&&(before, by, of)| {
                (before.0, by) != (at.0, thread) && !together(before) && !alike(before, of) && !known(before)
            });
            if let Some(&(before, ..)) = other {
                users.remove(&found);
                faults.push(fault(program, found, before, at));
            } else if has_run {
                earlier.retain(|&(before, ..)| !known(before));
                earlier.push((at, thread, kind));
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
    if before.0 == at.0 {
        let message = format!(
            "two threads of the thread block {does} {thing}, here and in {}; which of them comes first is open, so put a nop \
             between them, or give each a channel or semaphore of its own",
            program.step(before).place
        );
        return Fault::at("shared", &program.step(at).place, message);
    }
    let blocks = [before.0.min(at.0), before.0.max(at.0)].map(|block| program.blocks[block].id);
    let message = format!(
        "thread blocks {} and {} both {does} {thing}; which of them comes first is open, so give each its own, or put a barrier between them",
        blocks[0], blocks[1]
    );
    Fault::at("shared", &program.step(at).place, message)
}

/// Returns faults for barriers whose operations state different numbers of thread blocks, or that more thread blocks
/// use.
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
