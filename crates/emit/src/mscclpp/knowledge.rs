//! What has certainly happened before each access, in every run of a plan.
//!
//! The threads of a thread block run its operations independently of each other until they meet, so an access is
//! complete only after the next `nop` or barrier, and a wait holds for the accesses after the next one. A signal passes
//! on what was complete when the threads met last. Three sets follow:
//!
//! * **strong**: accesses whose writes are visible and whose reads are over;
//! * **weak**: accesses whose reads are over. Relaxed signals and packets pass this on: a packet is read element by
//!   element, each after the reads that it was made from;
//! * **entered**: GPUs whose kernel has started.
//!
//! The access of a put on a port channel is complete for those who wait for a later signal on that channel, and for the
//! thread block after a flush of it. Later means by the same thread, or after the threads met: the n-th put, the n-th
//! signal and the n-th flush of an operation have thread n. Signals of several threads on one channel come in any order
//! until the threads meet, so only who waits for all of them knows what each of them follows.

use std::{collections::BTreeMap, rc::Rc};

use rustc_hash::FxHashMap;
use unisono_base::{interrupt::poll, limits};

use super::{
    program::{Act, Move, Program, Space, Span},
    run::{At, Run},
};

/// A set of small numbers.
#[derive(Clone, Default, Debug)]
pub struct Set(Vec<u64>);

impl Set {
    pub fn insert(&mut self, n: usize) {
        if self.0.len() <= n / 64 {
            self.0.resize(n / 64 + 1, 0);
        }
        self.0[n / 64] |= 1 << (n % 64);
    }

    pub fn contains(&self, n: usize) -> bool {
        self.0.get(n / 64).is_some_and(|word| word >> (n % 64) & 1 == 1)
    }

    fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }
}

#[derive(Clone, Default, Debug)]
pub struct Known {
    pub strong: Rc<Set>,
    pub weak: Rc<Set>,
    pub entered: Rc<Set>,
}

impl Known {
    fn join(&mut self, other: &Self) {
        for (mine, theirs) in
            [(&mut self.strong, &other.strong), (&mut self.weak, &other.weak), (&mut self.entered, &other.entered)]
        {
            if !Rc::ptr_eq(mine, theirs) {
                Rc::make_mut(mine).join(theirs);
            }
        }
    }
}

/// A move of memory, or one grain of a move of packets.
#[derive(Debug)]
pub struct Event {
    pub at: At,
    pub reads: Vec<Span>,
    pub writes: Vec<Span>,
    /// What had happened when it began.
    pub known: Known,
}

/// The events of a plan, in an order in which they can happen, and what each GPU knows when its kernel ends.
pub struct History {
    pub events: Vec<Event>,
    pub ends: Vec<Known>,
}

/// The puts of a thread block on a port channel. Each is pushed by a thread of its own, so only the puts from before
/// the threads met last, and those of the same thread, are certainly before a signal or a flush.
#[derive(Default)]
struct Pending {
    pushed: Set,
    /// Thread and event, since the threads met last.
    latest: Vec<(u32, usize)>,
}

impl Pending {
    /// Adds the puts that a signal or a flush of a thread comes after.
    fn complete(&self, thread: u32, known: &mut Known) {
        for set in [&mut known.strong, &mut known.weak] {
            let set = Rc::make_mut(set);
            set.join(&self.pushed);
            self.latest.iter().filter(|put| put.0 == thread).for_each(|put| set.insert(put.1));
        }
    }
}

/// The threads of a block have met: all its puts have been pushed.
fn pushed(pending: &mut BTreeMap<(usize, u32), Pending>, block: usize) {
    for puts in pending.range_mut((block, 0)..=(block, u32::MAX)).map(|(_, puts)| puts) {
        puts.latest.drain(..).for_each(|put| puts.pushed.insert(put.1));
    }
}

/// Signals on each end of a channel: the act that signals, and its thread.
type Signals = BTreeMap<u32, Vec<((At, usize), u32)>>;

/// The signals of several threads on one port channel between two meetings, each with true for the last.
fn mixed(program: &Program) -> FxHashMap<(At, usize), bool> {
    let mut found = FxHashMap::default();
    for (b, block) in program.blocks.iter().enumerate() {
        let mut open = Signals::new();
        let mut close = |open: &mut Signals| {
            for signals in std::mem::take(open).into_values() {
                if signals.iter().any(|signal| signal.1 != signals[0].1) {
                    let last = signals.len() - 1;
                    found.extend(signals.into_iter().enumerate().map(|(n, (signal, _))| (signal, n == last)));
                }
            }
        };
        for (s, step) in block.steps.iter().enumerate() {
            for (n, act) in step.acts.iter().enumerate() {
                match act {
                    Act::Sync | Act::Barrier { .. } => close(&mut open),
                    Act::Signal { end, thread, .. } if program.ends[*end as usize].is_port => {
                        open.entry(*end).or_default().push((((b, s), n), *thread));
                    }
                    _ => {}
                }
            }
        }
        close(&mut open);
    }
    found
}

#[derive(Default)]
struct BlockState {
    known: Known,
    /// Events since the threads met last, and what waits have brought since then.
    own: Vec<usize>,
    brought: Known,
}

/// The history of a run that ended. With `trust_relaxed`, relaxed signals order writes too.
///
/// # Errors
/// It takes more memory than the limit.
pub fn history(program: &Program, run: &Run, trust_relaxed: bool) -> Result<History, limits::OverLimit> {
    let grains = |m: &Move| if m.has_packets() { m.len() as usize } else { 1 };
    let events: usize = program.moves().map(|(_, m)| grains(m)).sum();
    let meets = run.order.len() + events;
    limits::admit(
        "the order of the plan's accesses",
        (events / 8 + 64) as u128 * meets as u128 * 2,
        (events * meets / 32) as u128,
    )?;
    let mut made = History { events: Vec::with_capacity(events), ends: vec![Known::default(); program.gpus as usize] };
    let mut blocks: Vec<BlockState> = program
        .blocks
        .iter()
        .map(|b| {
            let mut state = BlockState::default();
            Rc::make_mut(&mut state.known.entered).insert(b.gpu as usize);
            state
        })
        .collect();
    let mut carried: FxHashMap<(At, usize), (Known, bool)> = FxHashMap::default();
    let mut pending: BTreeMap<(usize, u32), Pending> = BTreeMap::new();
    let mut writers: FxHashMap<(u32, u32), usize> = FxHashMap::default();
    let mut barrier: Vec<usize> = Vec::new();
    let mixed = mixed(program);
    let mut together: BTreeMap<(usize, u32), Known> = BTreeMap::new();
    for &at in &run.order {
        poll();
        let (block, gpu) = (at.0, program.blocks[at.0].gpu);
        for (n, act) in program.step(at).acts.iter().enumerate() {
            match act {
                Act::Sync => {
                    meet(&mut blocks[block], &made.events);
                    pushed(&mut pending, block);
                }
                Act::Barrier { blocks: count, .. } => {
                    meet(&mut blocks[block], &made.events);
                    pushed(&mut pending, block);
                    barrier.push(block);
                    if barrier.len() == *count as usize {
                        let mut all = Known::default();
                        barrier.iter().for_each(|&b| all.join(&blocks[b].known));
                        barrier.drain(..).for_each(|b| blocks[b].known = all.clone());
                    }
                }
                Act::Signal { end, relaxed, thread } => {
                    let follows = |thread: u32| {
                        let mut known = blocks[block].known.clone();
                        pending.get(&(block, *end)).into_iter().for_each(|puts| puts.complete(thread, &mut known));
                        known
                    };
                    let mut known = follows(*thread);
                    if let Some(is_last) = mixed.get(&(at, n)) {
                        let all = together.entry((block, *end)).or_default();
                        all.join(&known);
                        // Before the last, the puts of no certain thread.
                        known = if *is_last { std::mem::take(all) } else { follows(u32::MAX) };
                    }
                    carried.insert((at, n), (known, *relaxed && !trust_relaxed));
                }
                Act::Release(_) => {
                    carried.insert((at, n), (blocks[block].known.clone(), false));
                }
                Act::Wait { .. } | Act::Acquire(_) => {
                    let relaxed = matches!(act, Act::Wait { relaxed: true, .. }) && !trust_relaxed;
                    if let Some((mut known, weak)) = run.taken.get(&(at, n)).and_then(|from| carried.remove(from)) {
                        if weak || relaxed {
                            known.strong = Rc::default();
                        }
                        blocks[block].brought.join(&known);
                    }
                }
                Act::Flush { end, thread } => {
                    if let Some(puts) = pending.get(&(block, *end)) {
                        puts.complete(*thread, &mut blocks[block].brought);
                    }
                }
                Act::Move(m) => {
                    let parts = if m.has_packets() { m.len() } else { 1 };
                    for part in 0..parts {
                        let cut = |spans: &[Span]| -> Vec<Span> {
                            if parts == 1 { spans.to_vec() } else { spans.iter().map(|s| s.part(part, 1)).collect() }
                        };
                        let (reads, writes) = (cut(&m.reads), cut(&m.writes));
                        let mut known = blocks[block].known.clone();
                        for from in reads.iter().filter(|s| s.space == Space::Packets) {
                            if let Some(&writer) = writers.get(&(from.gpu, from.start)) {
                                let event: &Event = &made.events[writer];
                                let theirs = Known { strong: Rc::default(), ..event.known.clone() };
                                known.join(&theirs);
                                Rc::make_mut(&mut known.weak).insert(writer);
                            }
                        }
                        let id = made.events.len();
                        for to in writes.iter().filter(|s| s.space == Space::Packets) {
                            writers.insert((to.gpu, to.start), id);
                        }
                        match m.port {
                            Some((end, thread)) => pending.entry((block, end)).or_default().latest.push((thread, id)),
                            None => blocks[block].own.push(id),
                        }
                        made.events.push(Event { at, reads, writes, known });
                    }
                }
            }
        }
        if at.1 + 1 == program.blocks[block].steps.len() {
            meet(&mut blocks[block], &made.events);
            made.ends[gpu as usize].join(&blocks[block].known);
        }
    }
    Ok(made)
}

/// The threads of a block meet: what they did and waited for holds for all of them.
fn meet(block: &mut BlockState, events: &[Event]) {
    let brought = std::mem::take(&mut block.brought);
    block.known.join(&brought);
    for id in block.own.drain(..) {
        let event = &events[id];
        if event.reads.iter().any(|s| s.space == Space::Packets) {
            block.known.join(&Known { strong: Rc::default(), ..event.known.clone() });
        }
        Rc::make_mut(&mut block.known.strong).insert(id);
        Rc::make_mut(&mut block.known.weak).insert(id);
    }
}
