//! No race between lanes: two lanes of a node touch one slice, one of them writing, only if one access is ordered
//! before the other.
//!
//! An instruction touches memory from its start to its completion, at any granularity. `J` is ordered after `I` if
//! the completion of `I` comes before the start of `J`, by these facts, closed under each other (`done` = comes after
//! the completion of `I` at its end, `whole` = with all it does):
//!
//! * the next instruction of a lane, and whatever waits for an instruction that is done, is whole;
//! * whoever pops the last element of a done instruction's push is done, and whole too if that element, or anything of
//!   an instruction that is whole, is the first it pops of the stream.
//!
//! An access is compared with one access of each other lane, the latest that it clashes with: a lane runs in order, so
//! what comes after that one comes after all before it.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use unisono_base::{Diagnostics, InstrId, LaneId, NodeId, Span};

use crate::{
    flow::Flow,
    order::{dependents, next_in_lane, waiters},
    schedule::Schedule,
};

struct Access {
    instr: InstrId,
    lane: LaneId,
    buffer: usize,
    span: Span,
    writes: bool,
}

pub fn check(schedule: &Schedule, flow: &Flow, order: &[InstrId], found: &mut Diagnostics) {
    if schedule.all_nodes().all(|n| schedule.lanes(n).len() < 2) {
        return;
    }
    let mut rank = vec![0u32; schedule.instrs.len()];
    for (at, id) in order.iter().enumerate() {
        rank[id.index()] = at as u32;
    }
    let search = Search { schedule, flow, dependents: dependents(schedule), rank };
    for node in schedule.all_nodes().filter(|&n| schedule.lanes(n).len() > 1) {
        check_node(&search, node, found);
    }
}

fn check_node(search: &Search<'_>, node: NodeId, found: &mut Diagnostics) {
    let mut accesses = accesses(search.schedule, search.flow, node);
    accesses.sort_by_key(|a| search.rank[a.instr.index()]);
    let mut touched: [Touched; 3] = Default::default();
    let mut said = FxHashSet::default();
    for a in accesses {
        for earlier in touched[a.buffer].clashes(&a) {
            if found.is_full() {
                return;
            }
            if !search.is_ordered(earlier, a.instr) && said.insert((earlier, a.instr)) {
                let (later, span, name) = (a.instr, a.span, ["in", "out", "tmp"][a.buffer]);
                found.push("race", Some(node), Some(later), || {
                    format!(
                        "{earlier} and {later} run in two lanes of {node} and meet at {name}{span} in no fixed order"
                    )
                });
            }
        }
    }
}

/// The latest accesses of a lane to a stretch of a buffer.
#[derive(Clone)]
struct Touch {
    lane: LaneId,
    read: Option<InstrId>,
    write: Option<InstrId>,
}

/// What touched a buffer so far: disjoint stretches by their start, each with its end.
#[derive(Default)]
struct Touched(BTreeMap<u64, (u64, Vec<Touch>)>);

impl Touched {
    /// Of each other lane the latest access that clashes with `a`, which comes after all so far and is added.
    fn clashes(&mut self, a: &Access) -> impl Iterator<Item = InstrId> + use<> {
        let (start, end) = (u64::from(a.span.start), a.span.end());
        self.cut(start);
        self.cut(end);
        let mut latest: BTreeMap<LaneId, InstrId> = BTreeMap::new();
        let (mut gaps, mut at) = (Vec::new(), start);
        for (&from, (to, touches)) in self.0.range_mut(start..end) {
            gaps.push((at, from));
            at = *to;
            for t in touches.iter().filter(|t| t.lane != a.lane) {
                // Ids grow along a lane.
                if let Some(last) = if a.writes { t.read.max(t.write) } else { t.write } {
                    let so_far = latest.entry(t.lane).or_insert(last);
                    *so_far = last.max(*so_far);
                }
            }
            a.note(touches);
        }
        gaps.push((at, end));
        for (from, to) in gaps.into_iter().filter(|(from, to)| from < to) {
            let mut touches = Vec::with_capacity(1);
            a.note(&mut touches);
            self.0.insert(from, (to, touches));
        }
        latest.into_values()
    }

    /// Makes a stretch that holds `at` two, of which the second starts there.
    fn cut(&mut self, at: u64) {
        if let Some((_, (end, touches))) = self.0.range_mut(..at).next_back()
            && *end > at
        {
            let second = (std::mem::replace(end, at), touches.clone());
            self.0.insert(at, second);
        }
    }
}

impl Access {
    fn note(&self, touches: &mut Vec<Touch>) {
        let at = touches.iter().position(|t| t.lane == self.lane).unwrap_or_else(|| {
            touches.push(Touch { lane: self.lane, read: None, write: None });
            touches.len() - 1
        });
        *(if self.writes { &mut touches[at].write } else { &mut touches[at].read }) = Some(self.instr);
    }
}

fn accesses(schedule: &Schedule, flow: &Flow, node: NodeId) -> Vec<Access> {
    let mut accesses = Vec::new();
    for instr in schedule.node_instrs(node).map(InstrId::new) {
        let len = schedule.instr(instr).len;
        let lane = flow.lane_of(instr);
        for (operands, writes) in [(schedule.sources(instr), false), (schedule.sinks(instr), true)] {
            for (buffer, span) in operands.iter().filter_map(|o| o.slice(len)) {
                accesses.push(Access { instr, lane, buffer, span, writes });
            }
        }
    }
    accesses
}

struct Search<'a> {
    schedule: &'a Schedule,
    flow: &'a Flow,
    dependents: Vec<(InstrId, InstrId)>,
    /// Place of each instruction in the topological order.
    rank: Vec<u32>,
}

impl Search<'_> {
    /// Whether `to` is whole after `from`, which comes before it in the topological order.
    fn is_ordered(&self, from: InstrId, to: InstrId) -> bool {
        if self.schedule.after(to).iter().any(|d| d.1 == from) {
            return true;
        }
        let (mut whole, mut done) = (FxHashSet::default(), FxHashSet::default());
        let mut todo = vec![(from, false)];
        done.insert(from);
        while let Some((id, is_whole)) = todo.pop() {
            let mut reach = |id: InstrId, as_whole: bool| {
                // Whatever leads to `to` comes before it.
                let leads_on = self.rank[id.index()] <= self.rank[to.index()];
                if leads_on && (done.insert(id) | (as_whole && whole.insert(id))) {
                    todo.push((id, as_whole));
                }
            };
            next_in_lane(self.schedule, self.flow, id).into_iter().for_each(|n| reach(n, true));
            waiters(&self.dependents, id).for_each(|n| reach(n, true));
            for (stream, span) in self.flow.pushes(self.schedule, id) {
                let last = Span::new(span.start + span.len - 1, 1);
                for readers in self.flow.readers_by_sink(stream) {
                    for p in Flow::touching(self.schedule, readers, span) {
                        let first_here = p.start >= if is_whole { span.start } else { last.start };
                        let takes_last = u64::from(p.start) + u64::from(self.schedule.instr(p.instr).len) >= span.end();
                        if first_here {
                            reach(p.instr, true);
                        } else if takes_last || is_whole {
                            reach(p.instr, false);
                        }
                    }
                }
            }
            if whole.contains(&to) {
                return true;
            }
        }
        false
    }
}
