//! The accesses that happen before each access in every run of a plan.
//!
//! The threads of a thread block run its operations independently until they synchronize at a `nop` or a barrier,
//! called a meeting. An access is therefore complete only after the next meeting, and a wait orders only the accesses
//! after the next meeting. A signal passes on the accesses that were complete at the latest meeting. Three sets are
//! kept for each access. The accesses of a thread block complete in its order, so each of the first two sets is
//! represented by a number for each thread block, as in a vector clock ([`Clock`]):
//!
//! * **strong**: accesses whose writes are visible and whose reads are complete;
//! * **weak**: accesses whose reads are complete. Relaxed signals pass this set on;
//! * **entered**: GPUs whose kernel has started.
//!
//! A packet is read element by element, each after the reads of the elements that it was computed from. So a piece of a
//! move of packets ([`super::pieces`]) begins grain by grain: its grain k follows grain k of the pieces that it is
//! **aligned** with, and no other grain of them until the threads meet.
//!
//! The access of a put on a port channel is complete for each thread block that waits for a later signal on that
//! channel, and for its own thread block after a flush of that channel. A later signal is by the same thread, or after
//! a meeting: the n-th put, the n-th signal and the n-th flush of an operation have thread n. Signals of several
//! threads on one channel come in any order until the threads meet, so only a wait for all of them orders the accesses
//! before each of them.

use std::{collections::BTreeMap, rc::Rc};

use rustc_hash::FxHashMap;
use unisono_base::{interrupt::poll, limits, narrow};

use super::{
    pieces::{Pieces, WORK},
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

/// The position of an access in a sequence. Each thread block has a sequence, and each of its threads has one for each
/// port channel on which it puts.
type Tick = (u32, u32);

/// For each sequence, the number of completed accesses, which are the first ones of the sequence.
#[derive(Clone, Default, Debug)]
pub struct Clock(Vec<u32>);

impl Clock {
    fn raise(&mut self, (sequence, at): Tick) {
        let sequence = sequence as usize;
        if self.0.len() <= sequence {
            self.0.resize(sequence + 1, 0);
        }
        self.0[sequence] = self.0[sequence].max(at + 1);
    }

    fn contains(&self, (sequence, at): Tick) -> bool {
        self.0.get(sequence as usize).is_some_and(|&over| over > at)
    }

    fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a = (*a).max(*b));
    }
}

#[derive(Clone, Default, Debug)]
pub struct Known {
    strong: Rc<Clock>,
    weak: Rc<Clock>,
    /// Indices of the writers of packets whose reads are complete. A packet informs its reader that the write of the
    /// packet has begun, but not about other accesses of the writer's thread block since its latest meeting.
    writers: Rc<Set>,
    pub entered: Rc<Set>,
}

fn merge<T: Clone>(mine: &mut Rc<T>, theirs: &Rc<T>, join: impl Fn(&mut T, &T)) {
    if !Rc::ptr_eq(mine, theirs) {
        join(Rc::make_mut(mine), theirs);
    }
}

impl Known {
    /// Returns whether the writes of an access are visible and its reads are complete.
    pub fn is_over(&self, event: &Event) -> bool {
        self.strong.contains(event.tick)
    }

    /// Returns whether the reads of an access are complete.
    pub fn has_read(&self, event: &Event) -> bool {
        self.weak.contains(event.tick) || event.packets.is_some_and(|n| self.writers.contains(n))
    }

    /// Returns the knowledge that a packet passes on: all but the strong set.
    fn reads(&self) -> Self {
        Self { strong: Rc::default(), ..self.clone() }
    }

    fn join(&mut self, other: &Self) {
        merge(&mut self.strong, &other.strong, Clock::join);
        merge(&mut self.weak, &other.weak, Clock::join);
        merge(&mut self.writers, &other.writers, Set::join);
        merge(&mut self.entered, &other.entered, Set::join);
    }
}

/// An access: a move of data in memory, or a piece of a move of packets.
#[derive(Debug)]
pub struct Event {
    pub at: At,
    pub reads: Vec<Span>,
    pub writes: Vec<Span>,
    /// The accesses that had completed when the event began.
    pub known: Known,
    tick: Tick,
    /// The index of this event among the writers of packets; `None` if it writes none.
    packets: Option<usize>,
    /// The writers of packets, by index, whose reads of grain k had completed when grain k of this event began, for
    /// every k.
    aligned: Rc<Set>,
}

impl Event {
    /// Returns whether, for every k, grain k of this piece begins after grain k of `earlier` was read.
    pub fn is_aligned(&self, earlier: &Self) -> bool {
        earlier.packets.is_some_and(|n| self.aligned.contains(n))
    }
}

/// The events of a plan in a possible order, and the knowledge of each GPU at the end of its kernel.
pub struct History {
    pub events: Vec<Event>,
    pub ends: Vec<Known>,
}

/// The puts of a thread block on a port channel. Each put has its own thread. A signal or a flush therefore follows, in
/// every run, only the puts before the latest meeting and the earlier puts of its own thread.
#[derive(Default)]
struct Pending {
    pushed: Clock,
    /// The puts since the latest meeting, each with its thread.
    latest: Vec<(u32, Tick)>,
}

impl Pending {
    /// Adds to `known` the puts that precede a signal or a flush of a thread in every run.
    fn complete(&self, thread: u32, known: &mut Known) {
        for clock in [&mut known.strong, &mut known.weak] {
            let clock = Rc::make_mut(clock);
            clock.join(&self.pushed);
            self.latest.iter().filter(|put| put.0 == thread).for_each(|put| clock.raise(put.1));
        }
    }
}

/// Records, after a meeting of a block's threads, that the block has issued all its puts.
fn pushed(pending: &mut BTreeMap<(usize, u32), Pending>, block: usize) {
    for puts in pending.range_mut((block, 0)..=(block, u32::MAX)).map(|(_, puts)| puts) {
        puts.latest.drain(..).for_each(|put| puts.pushed.raise(put.1));
    }
}

/// The signals on each end of a channel. A signal is the step, the index of its effect, and the thread.
type Signals = BTreeMap<u32, Vec<((At, usize), u32)>>;

/// Returns the signals of several threads on one port channel between two meetings; the value is true for the last one.
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
    /// The events since the latest meeting. `brought` is the knowledge from waits since the latest meeting.
    own: Vec<usize>,
    brought: Known,
}

/// Returns the sequences of puts on port channels, by thread block, channel end and thread, numbered after the blocks.
fn port_sequences(program: &Program) -> FxHashMap<(usize, u32, u32), u32> {
    let mut found = FxHashMap::default();
    for (b, block) in program.blocks.iter().enumerate() {
        for act in block.steps.iter().flat_map(|step| &step.acts) {
            if let Act::Move(Move { port: Some((end, thread)), .. }) = act {
                let next = narrow(program.blocks.len() + found.len());
                found.entry((b, *end, *thread)).or_insert(next);
            }
        }
    }
    found
}

/// Returns the history of a run that ended. With `trust_relaxed`, relaxed signals order writes too.
///
/// # Errors
/// Returns an error if the history exceeds the limit on memory.
pub fn history(program: &Program, run: &Run, trust_relaxed: bool) -> Result<History, limits::OverLimit> {
    let pieces = Pieces::new(program)?;
    let events = pieces.count() + program.moves().filter(|(_, m)| !m.has_packets()).count();
    let ports = port_sequences(program);
    let sequences = program.blocks.len() + ports.len();
    let meets = (run.order.len() + events) as u128;
    let each = (8 * sequences + pieces.count() / 8 + 64) as u128;
    limits::admit(WORK, each * meets, each * meets / 8)?;
    let (mut ticks, mut writings) = (vec![0_u32; sequences], 0);
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
                        // The order of the threads' signals is unknown, so only the last one implies the puts.
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
                    for (from, len) in pieces.of((at, n), m) {
                        let cut = |spans: &[Span]| spans.iter().map(|s| s.part(from, len)).collect::<Vec<_>>();
                        let (reads, writes) = (cut(&m.reads), cut(&m.writes));
                        let mut known = blocks[block].known.clone();
                        let mut aligned = Rc::<Set>::default();
                        for from in reads.iter().filter(|s| s.space == Space::Packets) {
                            if let Some(&writer) = writers.get(&(from.gpu, from.start)) {
                                let event: &Event = &made.events[writer];
                                known.join(&event.known.reads());
                                let earlier = Rc::make_mut(&mut aligned);
                                earlier.join(&event.aligned);
                                event.packets.into_iter().for_each(|n| earlier.insert(n));
                            }
                        }
                        let (id, first) = (made.events.len(), writings);
                        for to in writes.iter().filter(|s| s.space == Space::Packets) {
                            writers.insert((to.gpu, to.start), id);
                            writings = first + 1;
                        }
                        let packets = (writings > first).then_some(first);
                        let sequence = m.port.map_or(narrow(block), |(end, thread)| ports[&(block, end, thread)]);
                        let tick = (sequence, ticks[sequence as usize]);
                        ticks[sequence as usize] += 1;
                        match m.port {
                            Some((end, thread)) => pending.entry((block, end)).or_default().latest.push((thread, tick)),
                            None => blocks[block].own.push(id),
                        }
                        made.events.push(Event { at, reads, writes, known, tick, packets, aligned });
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

/// Completes a meeting: afterwards, the accesses and waits of all threads hold for the whole block.
fn meet(block: &mut BlockState, events: &[Event]) {
    let brought = std::mem::take(&mut block.brought);
    block.known.join(&brought);
    for id in block.own.drain(..) {
        let event = &events[id];
        if event.reads.iter().any(|s| s.space == Space::Packets) {
            block.known.join(&event.known.reads());
            Rc::make_mut(&mut block.known.writers).join(&event.aligned);
        }
        Rc::make_mut(&mut block.known.strong).raise(event.tick);
        Rc::make_mut(&mut block.known.weak).raise(event.tick);
    }
}
