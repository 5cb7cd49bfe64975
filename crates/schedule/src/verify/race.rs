//! No race between lanes: two lanes of a node touch one slice, one of them writing, only if one access is ordered
//! before the other.
//!
//! What is ordered is said in `clock.rs`. Most orders are made on the node itself, by its lanes and what waits for what;
//! only what is left is looked for over all nodes, for the lanes of several nodes at once.
//!
//! An access is compared with one access of each other lane, the latest that it clashes with: a lane runs in order, so
//! what comes after that one comes after all before it.

use std::collections::BTreeMap;

use unisono_base::{Diagnostics, InstrId, LaneId, NodeId, Span};

use super::clock::{Clash, Clocks, LANES};
use crate::{flow::Flow, schedule::Schedule};

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
    let mut clocks = Clocks::new(schedule, flow, order, false);
    let mut open = Vec::new();
    for node in schedule.all_nodes().filter(|&n| schedule.lanes(n).len() > 1) {
        let mut here = clashes(schedule, flow, node, &clocks);
        for batch in batches(flow, &mut here) {
            clocks.settle(batch);
        }
        open.extend(here.into_iter().filter(|clash| !clash.ordered));
    }
    if open.is_empty() {
        return;
    }
    let mut clocks = Clocks::new(schedule, flow, order, true);
    for batch in batches(flow, &mut open) {
        if found.is_full() {
            return;
        }
        clocks.settle(batch);
        for clash in batch.iter().filter(|clash| !clash.ordered) {
            report(flow, clash, found);
        }
    }
}

fn report(flow: &Flow, clash: &Clash, found: &mut Diagnostics) {
    let (earlier, later, node) = (clash.earlier, clash.later, flow.node_of(clash.later));
    let (span, name) = (clash.span, ["in", "out", "tmp"][clash.buffer]);
    found.push("race", Some(node), Some(later), || {
        format!("{earlier} and {later} run in two lanes of {node} and meet at {name}{span} in no fixed order")
    });
}

/// The clashes by the lane of the earlier access, parted so that no part has more such lanes than a sweep takes.
fn batches<'a>(flow: &Flow, clashes: &'a mut Vec<Clash>) -> Vec<&'a mut [Clash]> {
    clashes.sort_by_key(|c| (flow.lane_of(c.earlier), c.earlier, c.later));
    clashes.dedup_by_key(|c| (c.earlier, c.later));
    let mut batches = Vec::new();
    let mut rest = &mut clashes[..];
    while !rest.is_empty() {
        let lanes = rest.chunk_by(|a, b| flow.lane_of(a.earlier) == flow.lane_of(b.earlier));
        let (batch, others) = rest.split_at_mut(lanes.take(LANES).map(<[Clash]>::len).sum());
        batches.push(batch);
        rest = others;
    }
    batches
}

/// The pairs of accesses of a node's lanes of which one must come before the other.
fn clashes(schedule: &Schedule, flow: &Flow, node: NodeId, clocks: &Clocks<'_>) -> Vec<Clash> {
    let mut accesses = accesses(schedule, flow, node);
    accesses.sort_by_key(|a| clocks.rank(a.instr));
    let mut touched: [Touched; 3] = Default::default();
    let mut clashes = Vec::new();
    for a in accesses {
        let (later, buffer, span) = (a.instr, a.buffer, a.span);
        let earlier = touched[a.buffer].clashes(&a);
        clashes.extend(earlier.map(|earlier| Clash { earlier, later, buffer, span, ordered: false }));
    }
    clashes
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
