//! Checks that lanes do not race: if two lanes of a node access the same slice and one of them writes, one access must
//! be ordered before the other.
//!
//! `clock.rs` finds the order of instructions. Lanes and dependencies of the node itself define most orders; the
//! remaining pairs are searched across all nodes, for the lanes of several nodes at once.
//!
//! A read is compared with the last write before it; a write is compared with the reads since the last write, or with
//! that write if there are no such reads. "Before" is transitive, so if all of these pairs are ordered, all pairs are.
//! On average there are at most two comparisons for each access and interval, for any number of lanes.

use std::collections::BTreeMap;

use unisono_base::{Diagnostics, InstrId, LaneId, Span, interrupt};

use super::{
    allowance::Allowance,
    clock::{Clash, Clocks, LANES, OverAllowance},
};
use crate::{flow::Flow, order::Dependents, runs::Runs, schedule::Schedule};

struct Access {
    instr: InstrId,
    lane: LaneId,
    span: Span,
    writes: bool,
}

/// Returns true if some node has several lanes. Without such a node there is no race.
fn has_two_lanes(schedule: &Schedule) -> bool {
    schedule.all_nodes().any(|node| schedule.lanes(node).len() > 1)
}

/// Adds the races of all nodes to `found`; returns an error if the search exceeds the limits of the proof.
pub fn check(
    schedule: &Schedule,
    order: &Runs,
    allowance: &mut Allowance,
    found: &mut Diagnostics,
) -> Result<(), OverAllowance> {
    if !has_two_lanes(schedule) {
        return Ok(());
    }
    let flow = &Flow::index(schedule);
    let dependents = Dependents::new(schedule, &[]);
    // The instructions of each node, whose ids are consecutive, in topological order.
    let (node_of_lane, mut sorted) = (schedule.nodes_of_lanes(), vec![InstrId(0); schedule.instr_count()]);
    let mut next: Vec<usize> = schedule.all_nodes().map(|node| schedule.node_instrs(node).start).collect();
    for (lane, run) in order.iter(schedule) {
        interrupt::poll();
        let next = &mut next[node_of_lane[lane.index()].index()];
        for id in run.map(InstrId) {
            sorted[*next] = id;
            *next += 1;
        }
    }
    let mut open = Vec::new();
    for node in schedule.all_nodes().filter(|&n| schedule.lanes(n).len() > 1) {
        let ids = &sorted[schedule.node_instrs(node)];
        let mut here = clashes(schedule, flow, ids, allowance)?;
        if here.is_empty() {
            continue;
        }
        let mut clocks = Clocks::new(schedule, flow, &dependents, ids, false, allowance)?;
        for batch in batches(flow, &mut here) {
            clocks.settle(batch, allowance)?;
        }
        let settled = here.len();
        open.extend(here.into_iter().filter(|clash| !clash.ordered));
        allowance.free(2 * settled as u64);
    }
    if open.is_empty() {
        return Ok(());
    }
    let mut clocks = Clocks::new(schedule, flow, &dependents, &order.instrs(schedule), true, allowance)?;
    for batch in batches(flow, &mut open) {
        if found.is_full() {
            break;
        }
        clocks.settle(batch, allowance)?;
        for clash in batch.iter().filter(|clash| !clash.ordered) {
            report(schedule, flow, clash, found);
        }
    }
    Ok(())
}

fn report(schedule: &Schedule, flow: &Flow, clash: &Clash, found: &mut Diagnostics) {
    let (first, second) = (clash.earlier.min(clash.later), clash.earlier.max(clash.later));
    let node = flow.node_of(second);
    found.push("race", Some(node), Some(second), || {
        let meet = place(schedule, first, second);
        let place =
            meet.map_or_else(String::new, |(buffer, span)| format!(" at {}{span}", ["in", "out", "tmp"][buffer]));
        format!("{first} and {second} run in two lanes of {node} and meet{place} in no fixed order")
    });
}

/// Returns the first slice of `second`, as buffer (0 `in`, 1 `out`, 2 `tmp`) and span, that both instructions access
/// and at least one instruction writes.
fn place(schedule: &Schedule, first: InstrId, second: InstrId) -> Option<(usize, Span)> {
    let slices = |id: InstrId| {
        let len = schedule.instr(id).len;
        let reads = schedule.sources(id).iter().map(|o| (o, false));
        let all = reads.chain(schedule.sinks(id).iter().map(|o| (o, true)));
        all.filter_map(move |(o, writes)| Some((o.slice(len)?, writes)))
    };
    slices(second).find_map(|(at, writes)| {
        let meets =
            |((buffer, span), other): ((usize, Span), bool)| buffer == at.0 && span.overlaps(at.1) && (writes || other);
        slices(first).any(meets).then_some(at)
    })
}

/// Sorts the clashes by the lane of the earlier access, and splits them into batches of at most [`LANES`] such lanes.
fn batches<'a>(flow: &Flow, clashes: &'a mut Vec<Clash>) -> Vec<&'a mut [Clash]> {
    clashes.sort_unstable_by_key(|c| (flow.lane_of(c.earlier), c.earlier, c.later));
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

/// Returns the pairs of accesses of a node that must be ordered. `ids` are its instructions in topological order.
fn clashes(
    schedule: &Schedule,
    flow: &Flow,
    ids: &[InstrId],
    allowance: &mut Allowance,
) -> Result<Vec<Clash>, OverAllowance> {
    let mut touched: [Touched; 3] = Default::default();
    let mut clashes = Vec::new();
    for &instr in ids {
        interrupt::poll();
        let (len, lane) = (schedule.instr(instr).len, flow.lane_of(instr));
        for (operands, writes) in [(schedule.sources(instr), false), (schedule.sinks(instr), true)] {
            for (buffer, span) in operands.iter().filter_map(|o| o.slice(len)) {
                // No instruction writes to the input, so the input needs no check.
                if buffer > 0 {
                    let before = clashes.len();
                    let access = Access { instr, lane, span, writes };
                    let spent = touched[buffer].note(&access, &mut clashes);
                    if !allowance.take(2 * (clashes.len() - before) as u64 + spent, spent) {
                        return Err(OverAllowance);
                    }
                }
            }
        }
    }
    allowance.free(touched.iter().map(Touched::units).sum());
    Ok(clashes)
}

/// Latest accesses to an interval of a buffer.
#[derive(Clone, Default)]
struct Stretch {
    end: u64,
    write: Option<(LaneId, InstrId)>,
    /// The reads since the last write: at least the latest read of each lane.
    reads: Vec<(LaneId, InstrId)>,
    /// The number of reads at which covered reads are dropped. A read is covered by a later read of its lane.
    full: usize,
}

/// Accesses to a buffer so far: disjoint intervals by their start.
#[derive(Default)]
struct Touched(BTreeMap<u64, Stretch>);

impl Touched {
    /// Adds an access that follows all earlier accesses, and adds the clashes that must be ordered. Returns its cost,
    /// which is the same number in units of 8 bytes and in steps.
    fn note(&mut self, a: &Access, clashes: &mut Vec<Clash>) -> u64 {
        let (start, end) = (u64::from(a.span.start), a.span.end());
        let mut spent = self.cut(start) + self.cut(end);
        let first = clashes.len();
        let clash = |earlier| Clash { earlier, later: a.instr, ordered: false };
        let (mut gaps, mut at) = (Vec::new(), start);
        for (&from, stretch) in self.0.range_mut(start..end) {
            if at < from {
                gaps.push((at, from));
            }
            at = stretch.end;
            let other = |&&(lane, _): &&(LaneId, InstrId)| lane != a.lane;
            if a.writes && !stretch.reads.is_empty() {
                stretch.drop_covered();
                clashes.extend(stretch.reads.iter().filter(other).map(|&(_, earlier)| clash(earlier)));
            } else {
                clashes.extend(stretch.write.iter().filter(other).map(|&(_, earlier)| clash(earlier)));
            }
            stretch.note(a);
            spent += 1;
        }
        if at < end {
            gaps.push((at, end));
        }
        for (from, end) in gaps {
            let mut stretch = Stretch { end, ..Stretch::default() };
            stretch.note(a);
            self.0.insert(from, stretch);
            spent += 8;
        }
        // The same accesses mostly touch several adjacent intervals, so equal clashes are merged.
        clashes[first..].sort_unstable_by_key(|c| c.earlier);
        let mut kept = first;
        for next in first..clashes.len() {
            if next == first || clashes[next].earlier != clashes[kept - 1].earlier {
                clashes.swap(kept, next);
                kept += 1;
            }
        }
        clashes.truncate(kept);
        spent
    }

    /// Cuts the interval that contains `at` in two. The second interval starts at `at`. Returns the memory of the new
    /// interval in units of 8 bytes, or 0 without a cut.
    fn cut(&mut self, at: u64) -> u64 {
        if let Some((_, stretch)) = self.0.range_mut(..at).next_back()
            && stretch.end > at
        {
            let second = stretch.clone();
            stretch.end = at;
            let units = 8 + second.reads.len() as u64;
            self.0.insert(at, second);
            return units;
        }
        0
    }

    fn units(&self) -> u64 {
        self.0.values().map(|s| 8 + s.reads.len() as u64).sum()
    }
}

impl Stretch {
    fn note(&mut self, a: &Access) {
        if a.writes {
            self.write = Some((a.lane, a.instr));
            self.reads.clear();
        } else {
            if let Some(last) = self.reads.last_mut().filter(|last| last.0 == a.lane) {
                last.1 = a.instr;
                return;
            }
            if self.reads.len() >= self.full.max(8) {
                self.drop_covered();
                self.full = 2 * self.reads.len();
            }
            self.reads.push((a.lane, a.instr));
        }
    }

    /// Keeps only the last read of each lane, which has the highest id of the lane.
    fn drop_covered(&mut self) {
        self.reads.sort_unstable();
        let mut last = None;
        for read in std::mem::take(&mut self.reads).into_iter().rev() {
            if last != Some(read.0) {
                last = Some(read.0);
                self.reads.push(read);
            }
        }
    }
}
