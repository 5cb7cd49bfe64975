//! The order in which a schedule can run, and the proof that it always can.
//!
//! Edges of the constraint graph, instruction to instruction: the next one in a lane; an explicit dependency; who
//! pushes an element before who pops it; and, for a stream of capacity `c`, who pops element `n - c` before who pushes
//! element `n`.
//!
//! **No cycle means no deadlock at any granularity.** At the coarsest granularity an instruction fires when all its
//! input is there and all its output fits, so a run exists exactly if this graph has no cycle. At a finer granularity
//! chunk `j` of an instruction waits only for chunks of instructions that the graph already puts before it, or for
//! chunk `j - 1` of its own; a cycle of chunks would project to a cycle here.

use unisono_base::{Diagnostics, InstrId, Span, StreamId};

use crate::{flow::Flow, schedule::Schedule};

/// A topological order of all instructions; on a cycle what can run, and a diagnostic that names the cycle.
pub fn topological(schedule: &Schedule, flow: &Flow, found: &mut Diagnostics) -> Vec<InstrId> {
    topological_with(schedule, flow, &[], found)
}

/// The same with more dependencies than the schedule's own, `(instruction, earlier)`, that a placement adds.
pub fn topological_with(
    schedule: &Schedule,
    flow: &Flow,
    more: &[(InstrId, InstrId)],
    found: &mut Diagnostics,
) -> Vec<InstrId> {
    let count = schedule.instrs.len();
    let mut dependents = dependents(schedule);
    if !more.is_empty() {
        dependents.extend(more.iter().map(|&(instr, earlier)| (earlier, instr)));
        dependents.sort_unstable();
    }
    let mut waiting = vec![0u32; count];
    for id in (0..count).map(InstrId::new) {
        successors(schedule, flow, &dependents, id, |next| waiting[next.index()] += 1);
    }
    let mut order: Vec<InstrId> = (0..count).map(InstrId::new).filter(|i| waiting[i.index()] == 0).collect();
    let mut done = 0;
    while done < order.len() {
        let id = order[done];
        done += 1;
        successors(schedule, flow, &dependents, id, |next| {
            waiting[next.index()] -= 1;
            if waiting[next.index()] == 0 {
                order.push(next);
            }
        });
    }
    if order.len() < count {
        report_cycle(schedule, flow, &dependents, &waiting, found);
    }
    order
}

/// Explicit dependencies the other way round, sorted by what is waited for.
pub fn dependents(schedule: &Schedule) -> Vec<(InstrId, InstrId)> {
    let mut rows: Vec<_> = schedule.deps.iter().map(|&(instr, earlier)| (earlier, instr)).collect();
    rows.sort_unstable();
    rows
}

pub fn waiters(dependents: &[(InstrId, InstrId)], id: InstrId) -> impl Iterator<Item = InstrId> + '_ {
    let start = dependents.partition_point(|d| d.0 < id);
    dependents[start..].iter().take_while(move |d| d.0 == id).map(|d| d.1)
}

pub fn next_in_lane(schedule: &Schedule, flow: &Flow, id: InstrId) -> Option<InstrId> {
    let next = InstrId(id.0 + 1);
    (next.index() < schedule.instrs.len() && flow.lane_of(next) == flow.lane_of(id)).then_some(next)
}

fn successors(
    schedule: &Schedule,
    flow: &Flow,
    dependents: &[(InstrId, InstrId)],
    id: InstrId,
    mut visit: impl FnMut(InstrId),
) {
    next_in_lane(schedule, flow, id).into_iter().for_each(&mut visit);
    if !dependents.is_empty() {
        waiters(dependents, id).for_each(&mut visit);
    }
    for (stream, span) in flow.pushes(schedule, id) {
        for readers in flow.readers_by_sink(stream) {
            Flow::touching(schedule, readers, span).iter().for_each(|p| visit(p.instr));
        }
    }
    for (stream, span) in flow.pops(schedule, id) {
        unblocked_writers(schedule, flow, stream, span).for_each(&mut visit);
    }
}

/// Writers whose last element fits only when the pops of `span` have happened: those that end in
/// `span.start + capacity + 1 ..= span.end + capacity`.
fn unblocked_writers<'a>(
    schedule: &'a Schedule,
    flow: &'a Flow,
    stream: StreamId,
    span: Span,
) -> impl Iterator<Item = InstrId> + 'a {
    let Some(row) = schedule.streams.get(stream.index()) else { unreachable!("checked by Flow") };
    let capacity = u64::from(row.capacity);
    let writers = if row.capacity >= row.len { &[] } else { flow.writers(stream) };
    let end = |p: &crate::flow::Piece| u64::from(p.start) + u64::from(schedule.instr(p.instr).len);
    let from = writers.partition_point(|p| end(p) <= u64::from(span.start) + capacity);
    let last = span.end() + capacity;
    writers[from..].iter().take_while(move |p| end(p) <= last).map(|p| p.instr)
}

/// Walks from a stuck instruction to a stuck successor until one comes again: that is a cycle.
fn report_cycle(
    schedule: &Schedule,
    flow: &Flow,
    dependents: &[(InstrId, InstrId)],
    waiting: &[u32],
    found: &mut Diagnostics,
) {
    // Every stuck instruction waits for another stuck one, but not every one has a stuck successor: so the walk goes
    // backwards, over a predecessor table of the stuck part.
    let mut before = vec![None; waiting.len()];
    for id in (0..waiting.len()).map(InstrId::new).filter(|i| waiting[i.index()] > 0) {
        successors(schedule, flow, dependents, id, |next| before[next.index()] = Some(id));
    }
    let stuck = waiting.iter().filter(|&&w| w > 0).count();
    let Some(mut at) = (0..waiting.len()).map(InstrId::new).find(|i| waiting[i.index()] > 0) else {
        return;
    };
    let mut seen = vec![false; waiting.len()];
    while !std::mem::replace(&mut seen[at.index()], true) {
        at = before[at.index()].expect("a stuck instruction waits for a stuck one");
    }
    let mut cycle = vec![at];
    let mut back = before[at.index()];
    while let Some(id) = back.filter(|&id| id != at) {
        cycle.push(id);
        back = before[id.index()];
    }
    cycle.reverse();
    let shown: Vec<String> = cycle.iter().take(8).map(|&i| format!("{i} on {}", flow.node_of(i))).collect();
    let rest = if cycle.len() > 8 { format!(" and {} more", cycle.len() - 8) } else { String::new() };
    found.push("deadlock", Some(flow.node_of(at)), Some(at), || {
        format!("{stuck} instructions can never run; these wait for each other: {}{rest}", shown.join(", "))
    });
}
