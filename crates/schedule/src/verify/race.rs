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
    accesses.sort_by_key(|a| (a.buffer, a.span.start, a.instr));
    let mut reached: Option<(InstrId, FxHashSet<InstrId>)> = None;
    // Pairs are gathered by their earlier instruction so that one search serves all of its pairs.
    let mut pairs = Vec::new();
    for (i, a) in accesses.iter().enumerate() {
        for b in accesses[i + 1..].iter().take_while(|b| b.buffer == a.buffer && b.span.overlaps(a.span)) {
            if a.lane != b.lane && (a.writes || b.writes) {
                let first_a = search.rank[a.instr.index()] < search.rank[b.instr.index()];
                let (earlier, later) = if first_a { (a, b) } else { (b, a) };
                pairs.push((earlier.instr, later.instr, a.buffer, a.span));
            }
        }
    }
    pairs.sort_by_key(|p| (p.0, p.1, p.2, p.3.start));
    for (earlier, later, buffer, span) in pairs {
        if search.schedule.after(later).iter().any(|d| d.1 == earlier) {
            continue;
        }
        if reached.as_ref().is_none_or(|r| r.0 != earlier) {
            reached = Some((earlier, search.ordered_after(earlier)));
        }
        if !reached.as_ref().is_some_and(|r| r.1.contains(&later)) {
            let name = ["in", "out", "tmp"][buffer];
            found.push("race", Some(node), Some(later), || {
                format!("{earlier} and {later} run in two lanes of {node} and meet at {name}{span} in no fixed order")
            });
        }
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
    /// All instructions that are whole after `from`.
    fn ordered_after(&self, from: InstrId) -> FxHashSet<InstrId> {
        let (mut whole, mut done) = (FxHashSet::default(), FxHashSet::default());
        let mut todo = vec![(from, false)];
        done.insert(from);
        while let Some((id, is_whole)) = todo.pop() {
            let mut reach = |id: InstrId, as_whole: bool| {
                if done.insert(id) | (as_whole && whole.insert(id)) {
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
        }
        whole
    }
}
