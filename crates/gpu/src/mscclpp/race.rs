//! Races: conflicting accesses of the same memory without an order.
//!
//! Two accesses race if one of them writes and neither is known to be complete when the other begins. The end of a
//! kernel counts as an access to all memory of its GPU, since the user's program may then read and write it. Packets
//! carry flags and are exempt; [`super::run`] has refused plans that write a packet twice. A remote access must also
//! follow the start of that GPU's kernel, since its memory may be in use before.

use std::collections::{BTreeMap, BTreeSet};

use unisono_base::limits;

use super::{
    fault::Fault,
    knowledge::{Event, History},
    layout::Layout,
    program::{Program, Space, Span},
    run::{At, Run},
};

/// The number of faults after which the search ends.
const KEPT: usize = 64;

struct Access {
    span: Span,
    event: usize,
    writes: bool,
}

pub struct Races<'a> {
    pub program: &'a Program,
    pub layout: &'a Layout,
    pub run: &'a Run,
    pub history: &'a History,
    faults: Vec<Fault>,
    /// Pairs of steps that have already been reported; `None` stands for the start or the end of a kernel.
    told: BTreeSet<(At, Option<At>)>,
}

/// Returns the races of a plan. The search ends when it has found [`KEPT`] or more.
pub fn races(program: &Program, layout: &Layout, run: &Run, history: &History) -> Vec<Fault> {
    let mut races = Races { program, layout, run, history, faults: Vec::new(), told: BTreeSet::new() };
    races.check();
    races.faults
}

impl Races<'_> {
    fn check(&mut self) {
        let mut of_memory: BTreeMap<(u32, Space), Vec<Access>> = BTreeMap::new();
        for (event, found) in self.history.events.iter().enumerate() {
            let both = found.reads.iter().map(|s| (s, false)).chain(found.writes.iter().map(|s| (s, true)));
            for (&span, writes) in both {
                of_memory.entry((span.gpu, span.space)).or_default().push(Access { span, event, writes });
            }
            self.overlap(found);
        }
        for ((gpu, space), accesses) in &mut of_memory {
            if *space == Space::Packets {
                continue;
            }
            accesses.sort_by_key(|a| a.span.start);
            for n in 0..accesses.len() {
                let a = &accesses[n];
                self.entry(a, *gpu);
                self.end(a, *gpu);
                for b in accesses[n + 1..].iter().take_while(|b| b.span.start < a.span.end()) {
                    limits::spend("the check for races", 4);
                    self.pair(a, b);
                }
                if self.faults.len() >= KEPT {
                    return;
                }
            }
        }
        self.mixed(&of_memory);
    }

    fn event(&self, a: &Access) -> &Event {
        &self.history.events[a.event]
    }

    fn describe(&self, a: &Access) -> String {
        let place = self.program.step(self.event(a).at).place;
        let does = if a.writes { "writes" } else { "reads" };
        format!("{place} {does} {}", self.name(a.span))
    }

    /// Prints a span in chunks, or as a part of chunks if it does not consist of whole ones.
    fn name(&self, span: Span) -> String {
        let each = self.layout.grains;
        let (first, last) = (span.start / each, (span.end() - 1) / each);
        let whole = span.start.is_multiple_of(each) && span.end().is_multiple_of(each);
        let part = if whole { "" } else { "part of " };
        let chunks = if first == last { format!("chunk {first}") } else { format!("chunks {first} to {last}") };
        format!("{part}{chunks} of the {} of gpu {}", span.space.name(), span.gpu)
    }

    fn pair(&mut self, a: &Access, b: &Access) {
        if !(a.writes || b.writes) || a.event == b.event {
            return;
        }
        let (a, b) = if a.event < b.event { (a, b) } else { (b, a) };
        let (earlier, later) = (self.event(a), self.event(b));
        // The pieces are aligned, so grain k of the later piece follows grain k of the earlier piece.
        let is_same = || a.span.start == b.span.start && later.is_aligned(earlier);
        if later.known.is_over(earlier) || (!a.writes && (later.known.has_read(earlier) || is_same())) {
            return;
        }
        let (first, second) = (self.event(a).at, self.event(b).at);
        if !self.told.insert((first, Some(second))) {
            return;
        }
        let message = format!("{}, and {}; nothing orders the two", self.describe(b), self.describe(a));
        let mut trace = before(self.program, self.run, &[first, second]);
        trace.push(self.describe(a));
        trace.push(format!("{} before that is over", self.describe(b)));
        let place = self.program.step(second).place;
        self.faults.push(Fault::at("race", &place, message).with_trace(trace));
    }

    /// Reports spans of one operation that overlap without being equal, because its threads run independently.
    fn overlap(&mut self, event: &Event) {
        let mut spans = event.writes.iter().enumerate().flat_map(|(n, w)| {
            let others = event.writes[n + 1..].iter();
            event
                .reads
                .iter()
                .filter(move |r| *r != w)
                .chain(others)
                .filter(move |s| s.meets(*w))
                .map(move |s| (*w, *s))
        });
        let Some((write, other)) = spans.next() else { return };
        if self.told.insert((event.at, Some(event.at))) {
            let place = self.program.step(event.at).place;
            let message =
                format!("{place} writes {} while its other threads use {}", self.name(write), self.name(other));
            self.faults.push(Fault::at("race", &place, message));
        }
    }

    /// Reports an access to the memory of `gpu` that does not follow the start of that GPU's kernel.
    fn entry(&mut self, a: &Access, gpu: u32) {
        let event = self.event(a);
        let at = event.at;
        if event.known.entered.contains(gpu as usize) || !self.told.insert((at, None)) {
            return;
        }
        let place = self.program.step(at).place;
        let message = format!(
            "{} without a wait for a signal of gpu {gpu}, whose kernel may not have started and whose memory may be in use",
            self.describe(a)
        );
        let mut trace = before(self.program, self.run, &[at]);
        trace.push(format!("{} while gpu {gpu} has not started", self.describe(a)));
        self.faults.push(Fault::at("entry", &place, message).with_trace(trace));
    }

    /// Reports an access to the memory of `gpu` that may not be complete when that GPU's kernel ends.
    fn end(&mut self, a: &Access, gpu: u32) {
        let (known, event) = (&self.history.ends[gpu as usize], self.event(a));
        if known.is_over(event) || (!a.writes && known.has_read(event)) {
            return;
        }
        let at = event.at;
        if !self.told.insert((at, None)) {
            return;
        }
        let why = if a.writes { "what it writes may come after that" } else { "it may read what comes after that" };
        let message = format!("{}, and no signal reaches gpu {gpu} before its kernel ends; {why}", self.describe(a));
        let mut trace = before(self.program, self.run, &[at]);
        trace.push(format!("{}, and is not over", self.describe(a)));
        trace.push(format!("gpu {gpu} runs all its operations, and its kernel ends"));
        let place = self.program.step(at).place;
        self.faults.push(Fault::at("race", &place, message).with_trace(trace));
    }

    /// Reports the first packets that overlap plain data. Packets of chunk `c` occupy chunks `2c` and `2c + 1`.
    fn mixed(&mut self, of_memory: &BTreeMap<(u32, Space), Vec<Access>>) {
        for ((gpu, space), packets) in of_memory {
            let Some(plain) = of_memory.get(&(*gpu, Space::Scratch)).filter(|_| *space == Space::Packets) else {
                continue;
            };
            for a in packets {
                let room = Span { space: Space::Scratch, start: 2 * a.span.start, len: 2 * a.span.len, ..a.span };
                limits::spend("the check of packets", plain.len() as u64);
                if let Some(b) = plain.iter().find(|b| b.span.meets(room)) {
                    let place = self.program.step(self.event(a).at).place;
                    let message = format!(
                        "{}, which take the room of two chunks each, and {}: they are in one place",
                        self.describe(a),
                        self.describe(b)
                    );
                    self.faults.push(Fault::at("packets", &place, message));
                    return;
                }
            }
        }
    }
}

/// Returns sentences on the operations that precede `steps` in every run: for each thread block, the last such
/// operation.
pub fn before(program: &Program, run: &Run, steps: &[At]) -> Vec<String> {
    let mut reached: BTreeMap<usize, usize> = BTreeMap::new();
    let mut open: Vec<At> = Vec::new();
    let earlier = |at: At| {
        let own = at.1.checked_sub(1).map(|step| (at.0, step));
        own.into_iter().chain(run.after.get(&at).into_iter().flatten().copied())
    };
    steps.iter().for_each(|&at| open.extend(earlier(at)));
    while let Some(at) = open.pop() {
        limits::spend("the trace", 4);
        let from = reached.get(&at.0).map_or(0, |&r| r + 1);
        for step in from..=at.1 {
            open.extend(run.after.get(&(at.0, step)).into_iter().flatten().copied());
        }
        let reach = reached.entry(at.0).or_insert(at.1);
        *reach = (*reach).max(at.1);
    }
    let line = |(&block, &step): (&usize, &usize)| {
        let b = &program.blocks[block];
        let place = b.steps[step].place;
        format!("gpus[{}].threadblocks[{}] runs its operations up to {place}", b.gpu, b.id)
    };
    reached.iter().map(line).collect()
}
