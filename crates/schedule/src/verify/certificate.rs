//! The certificate of a proof: evidence that lets an independent program check the proof in one pass over the
//! instructions. `docs/certificates.md` defines the format and the rules, and `python/unisono/certificate_checker.py`
//! is such a program.
//!
//! A certificate has a topological order of all instructions, and facts. A fact states "I is over (has completed) when
//! J starts" or "I is over when J ends"; it follows from a direct predecessor of J and from an earlier fact by the
//! rules of [`super::clock`]. If accesses of two lanes of a node clash, a direct dependency or a fact must order them;
//! facts are written only for clashes that no dependency orders. Contents need no evidence: with a given order they are
//! computed without a search.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write,
};

use rustc_hash::FxHashMap;
use unisono_base::{Diagnostic, Diagnostics, InstrId, LaneId, NodeId, Span, interrupt::poll};

use crate::{
    flow::Flow,
    order::{Dependents, next_in_lane, topological},
    schedule::Schedule,
};

/// Number of characters after which a line of the order ends.
const LINE: usize = 100;

/// Writes the certificate of a schedule whose proof holds, with the bitwise properties `bits`; `digest` is the SHA-256
/// of the schedule's text form, in hexadecimal.
///
/// # Errors
/// Returns an error if the schedule is not well-formed, can deadlock, or has a race. Contents are not examined.
pub fn certificate(schedule: &Schedule, bits: &[&str], digest: &str) -> Result<String, Vec<Diagnostic>> {
    let mut found = Diagnostics::default();
    let flow = Flow::new(schedule, &mut found);
    if !found.is_empty() {
        return Err(found.into_vec());
    }
    let order = topological(schedule, &flow, &mut found);
    if !found.is_empty() {
        return Err(found.into_vec());
    }
    let mut evidence = Evidence::new(schedule, &flow, &order);
    evidence.collect(&order, &mut found);
    if !found.is_empty() {
        return Err(found.into_vec());
    }
    Ok(print(&evidence, &order, bits, digest))
}

/// A statement that `of` completes before the start or the end of `at`.
struct Fact {
    at: InstrId,
    /// Direct predecessor of `at` from which the fact follows.
    via: InstrId,
    reason: Reason,
    of: InstrId,
}

/// Reason why the instruction `of` a fact has completed when the fact's predecessor `via` starts or ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Reason {
    /// `of` is the predecessor itself, which ends.
    End,
    /// `of` precedes the predecessor in its lane, and the predecessor starts.
    Start,
    /// An earlier fact has the same `of`, and its `at` is the predecessor or an earlier instruction in the
    /// predecessor's lane.
    Fact(u32),
}

/// The time of an instruction, its start or its end, by which another instruction has completed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Over {
    AtEnd,
    AtStart,
}

/// Returns the row of a search state, in tables with two rows for each instruction.
fn state(id: InstrId, over: Over) -> usize {
    2 * id.index() + usize::from(over == Over::AtStart)
}

struct Evidence<'a> {
    schedule: &'a Schedule,
    flow: &'a Flow,
    dependents: Dependents,
    /// Position of each instruction in the order.
    rank: Vec<u32>,
    facts: Vec<Fact>,
    numbers: FxHashMap<(InstrId, InstrId, Reason), u32>,
    /// For a pair (first lane, second lane): the latest instruction of the second lane that has completed before the
    /// next instruction of the first lane starts.
    known: FxHashMap<(LaneId, LaneId), InstrId>,
    /// For each state, the number of the last search that reached it. `before` has the state from which it was reached,
    /// and true if the two states belong to consecutive instructions of a lane.
    reached: Vec<u32>,
    before: Vec<(u32, bool)>,
    search: u32,
}

impl<'a> Evidence<'a> {
    fn new(schedule: &'a Schedule, flow: &'a Flow, order: &[InstrId]) -> Self {
        let mut rank = vec![0; order.len()];
        for (at, id) in order.iter().enumerate() {
            rank[id.index()] = at as u32;
        }
        Self {
            schedule,
            flow,
            dependents: Dependents::new(schedule, &[]),
            rank,
            facts: Vec::new(),
            numbers: FxHashMap::default(),
            known: FxHashMap::default(),
            reached: Vec::new(),
            before: Vec::new(),
            search: 0,
        }
    }

    fn collect(&mut self, order: &[InstrId], found: &mut Diagnostics) {
        if self.schedule.all_nodes().all(|n| self.schedule.lanes(n).len() < 2) {
            return;
        }
        let mut touched: FxHashMap<(NodeId, usize), Touched> = FxHashMap::default();
        for &id in order {
            poll();
            let (lane, node) = (self.flow.lane_of(id), self.flow.node_of(id));
            for &(_, earlier) in self.schedule.after(id) {
                self.learn(lane, earlier);
            }
            if self.schedule.lanes(node).len() < 2 {
                continue;
            }
            let len = self.schedule.instr(id).len;
            for (operands, writes) in [(self.schedule.sources(id), false), (self.schedule.sinks(id), true)] {
                for (buffer, span) in operands.iter().filter_map(|o| o.slice(len)) {
                    let earlier = touched.entry((node, buffer)).or_default().touch(lane, id, span, writes);
                    for earlier in earlier {
                        let known = self.known.get(&(lane, self.flow.lane_of(earlier)));
                        if known.is_none_or(|&known| known < earlier) && !self.explain(earlier, id) {
                            found.push("race", Some(node), Some(id), || {
                                format!("{earlier} and {id} run in two lanes of {node} in no fixed order")
                            });
                        }
                    }
                }
            }
        }
    }

    fn learn(&mut self, lane: LaneId, over: InstrId) {
        let known = self.known.entry((lane, self.flow.lane_of(over))).or_insert(over);
        *known = over.max(*known);
    }

    /// Finds facts that imply that `earlier` is over before the start of `later`.
    fn explain(&mut self, earlier: InstrId, later: InstrId) -> bool {
        // Most orders follow from lanes and dependencies of the node alone, and a search within one node is short. So
        // this search comes first.
        match self.find(earlier, later, false).or_else(|| self.find(earlier, later, true)) {
            Some(last) => {
                self.keep(earlier, last);
                true
            }
            None => false,
        }
    }

    /// Searches, from the end of `earlier`, for a state in the lane of `later` that is not after the start of `later`;
    /// returns `None` if there is none. Without `streams` the search stays within the node.
    fn find(&mut self, earlier: InstrId, later: InstrId, streams: bool) -> Option<usize> {
        let (schedule, flow) = (self.schedule, self.flow);
        self.reached.resize(2 * self.rank.len(), 0);
        self.before.resize(2 * self.rank.len(), (0, false));
        self.search += 1;
        let (lane, last) = (flow.lane_of(later), self.rank[later.index()]);
        let mut queue = VecDeque::from([(earlier, Over::AtEnd)]);
        self.reached[state(earlier, Over::AtEnd)] = self.search;
        while let Some((id, over)) = queue.pop_front() {
            poll();
            if flow.lane_of(id) == lane && (id < later || id == later && over == Over::AtStart) {
                return Some(state(id, over));
            }
            let mut visit = |next: InstrId, new: Over, in_lane: bool| {
                let to = state(next, new);
                let reached = self.reached[to].max(self.reached[state(next, Over::AtStart)]);
                if self.rank[next.index()] <= last && reached < self.search {
                    self.reached[to] = self.search;
                    self.before[to] = (state(id, over) as u32, in_lane);
                    queue.push_back((next, new));
                }
            };
            if let Some(next) = next_in_lane(schedule, flow, id) {
                visit(next, Over::AtStart, true);
            }
            for &next in self.dependents.of(id) {
                if streams || flow.node_of(next) == flow.node_of(id) {
                    visit(next, Over::AtStart, false);
                }
            }
            for (stream, span) in flow.pushes(schedule, id).filter(|_| streams) {
                for piece in flow.readers_by_sink(stream).flat_map(|r| Flow::touching(r, span)) {
                    let popped = Span::new(piece.start, schedule.instr(piece.instr).len);
                    if let Some(new) = across(span, popped, over) {
                        visit(piece.instr, new, false);
                    }
                }
            }
        }
        None
    }

    /// Converts the path from `earlier` to the state `last` into facts.
    fn keep(&mut self, earlier: InstrId, last: usize) {
        let lane = self.flow.lane_of(earlier);
        let mut hops = Vec::new();
        let mut at = last;
        while self.flow.lane_of(InstrId::new(at / 2)) != lane {
            let (before, in_lane) = self.before[at];
            if !in_lane {
                hops.push((before as usize, at));
            }
            at = before as usize;
        }
        let mut last_fact = None;
        for (before, at) in hops.into_iter().rev() {
            let (via, at, wanted) = (InstrId::new(before / 2), InstrId::new(at / 2), at % 2);
            let (reason, of) = match last_fact {
                Some(fact) => (Reason::Fact(fact), self.facts[fact as usize].of),
                None if self.level(via, at, Over::AtEnd) >= Some([Over::AtEnd, Over::AtStart][wanted]) => {
                    (Reason::End, via)
                }
                None => (Reason::Start, InstrId(via.0 - 1)),
            };
            let next = self.facts.len() as u32;
            let number = *self.numbers.entry((at, via, reason)).or_insert(next);
            if number == next {
                self.facts.push(Fact { at, via, reason, of });
                self.learn(self.flow.lane_of(at), of);
            }
            last_fact = Some(number);
        }
    }

    /// Returns the time of `at` by which an instruction has completed, if this instruction has completed at time `over`
    /// of `via`. `None` if no dependency or stream from `via` to `at` implies such a time.
    fn level(&self, via: InstrId, at: InstrId, over: Over) -> Option<Over> {
        if self.schedule.after(at).iter().any(|d| d.1 == via) {
            return Some(Over::AtStart);
        }
        let pushes = self.flow.pushes(self.schedule, via);
        let levels = pushes.filter_map(|(stream, span)| {
            let mut pops = self.flow.pops(self.schedule, at);
            pops.find(|p| p.0 == stream && p.1.overlaps(span)).and_then(|(_, popped)| across(span, popped, over))
        });
        levels.max()
    }
}

/// Returns the time of the popping instruction by which a third instruction has completed, if this instruction has
/// completed at time `over` of the pushing instruction. `None` if the stream implies no such time. `pushed` and
/// `popped` are the ranges of the stream.
fn across(pushed: Span, popped: Span, over: Over) -> Option<Over> {
    let last = u64::from(popped.start) + 1 >= pushed.end();
    if last || over == Over::AtStart && popped.start >= pushed.start {
        Some(Over::AtStart)
    } else if over == Over::AtStart || popped.end() >= pushed.end() {
        Some(Over::AtEnd)
    } else {
        None
    }
}

/// The accesses to a buffer so far: disjoint intervals by their start. Each has its end, and the latest read and the
/// latest write of each lane.
#[derive(Default)]
struct Touched(BTreeMap<u64, (u64, Vec<Touch>)>);

#[derive(Clone)]
struct Touch {
    lane: LaneId,
    read: Option<InstrId>,
    write: Option<InstrId>,
}

impl Touched {
    /// Adds an access. Returns, for each other lane, the latest earlier access that clashes with it.
    fn touch(&mut self, lane: LaneId, id: InstrId, span: Span, writes: bool) -> Vec<InstrId> {
        let (start, end) = (u64::from(span.start), span.end());
        self.cut(start);
        self.cut(end);
        let mut latest: BTreeMap<LaneId, InstrId> = BTreeMap::new();
        let (mut gaps, mut at) = (Vec::new(), start);
        for (&from, (to, touches)) in self.0.range_mut(start..end) {
            gaps.push((at, from));
            at = *to;
            for t in touches.iter().filter(|t| t.lane != lane) {
                if let Some(last) = if writes { t.read.max(t.write) } else { t.write } {
                    let so_far = latest.entry(t.lane).or_insert(last);
                    *so_far = last.max(*so_far);
                }
            }
            note(touches, lane, id, writes);
        }
        gaps.push((at, end));
        for (from, to) in gaps.into_iter().filter(|(from, to)| from < to) {
            let mut touches = Vec::with_capacity(1);
            note(&mut touches, lane, id, writes);
            self.0.insert(from, (to, touches));
        }
        latest.into_values().collect()
    }

    /// Cuts the interval that contains `at` in two. The second interval starts at `at`.
    fn cut(&mut self, at: u64) {
        if let Some((_, (end, touches))) = self.0.range_mut(..at).next_back()
            && *end > at
        {
            let second = (std::mem::replace(end, at), touches.clone());
            self.0.insert(at, second);
        }
    }
}

fn note(touches: &mut Vec<Touch>, lane: LaneId, id: InstrId, writes: bool) {
    let at = touches.iter().position(|t| t.lane == lane).unwrap_or_else(|| {
        touches.push(Touch { lane, read: None, write: None });
        touches.len() - 1
    });
    *(if writes { &mut touches[at].write } else { &mut touches[at].read }) = Some(id);
}

fn print(evidence: &Evidence<'_>, order: &[InstrId], bits: &[&str], digest: &str) -> String {
    let facts = &evidence.facts;
    // Facts are numbered in the order in which they are printed: by the position of their instruction `at`.
    let mut printed: Vec<u32> = (0..facts.len() as u32).collect();
    printed.sort_by_key(|&n| evidence.rank[facts[n as usize].at.index()]);
    let mut number = vec![0; facts.len()];
    for (at, &n) in printed.iter().enumerate() {
        number[n as usize] = at + 1;
    }
    let mut text = String::with_capacity(8 * order.len() + 16 * facts.len() + 256);
    let mut say = |part: std::fmt::Arguments<'_>| text.write_fmt(part).expect("strings take everything");
    say(format_args!("unisono-certificate 1\nschedule sha256={digest}\n"));
    say(format_args!("instructions {}\nfacts {}\n", order.len(), facts.len()));
    say(format_args!("claims complete deadlock-free race-free"));
    for property in bits {
        say(format_args!(" {}", if *property == "ranks" { "repeatable" } else { property }));
    }
    say(format_args!("\n"));
    say(format_args!("order\n"));
    let (mut line, mut at, mut rest) = (String::new(), 0, printed.iter().peekable());
    while at < order.len() {
        poll();
        let id = order[at];
        let has_fact = |rest: &mut std::iter::Peekable<std::slice::Iter<'_, u32>>, id: InstrId| {
            rest.peek().is_some_and(|&&n| facts[n as usize].at == id)
        };
        let start = at;
        at += 1;
        let more = if has_fact(&mut rest, id) {
            let mut more = String::new();
            while let Some(&n) = rest.next_if(|&&n| facts[n as usize].at == id) {
                let fact = &facts[n as usize];
                let of = match fact.reason {
                    Reason::End => format!("<{}", fact.via.0),
                    Reason::Start => format!("<={}", fact.via.0),
                    Reason::Fact(n) => format!("<{}@{}", fact.via.0, number[n as usize]),
                };
                more.push_str(&of);
            }
            more
        } else {
            let next = |at: usize| InstrId(id.0 + (at - start) as u32);
            while at < order.len() && order[at] == next(at) && !has_fact(&mut rest, order[at]) {
                at += 1;
            }
            if at == start + 1 { String::new() } else { format!("-{}", order[at - 1].0) }
        };
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&id.0.to_string());
        line.push_str(&more);
        if line.len() >= LINE || at == order.len() {
            say(format_args!("{line}\n"));
            line.clear();
        }
    }
    say(format_args!("end\n"));
    text
}
