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

use unisono_base::{Diagnostics, InstrId, Span, StreamId, interrupt};

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
    let dependents = Dependents::new(schedule, more);
    let mut waiting = waiting(schedule, flow, &dependents);
    let mut order: Vec<InstrId> = ready(&waiting).collect();
    let mut done = 0;
    while done < order.len() {
        let id = order[done];
        done += 1;
        interrupt::poll();
        let visit = |next: InstrId| order.extend(arrive(&mut waiting, next));
        successors(schedule, flow, &dependents, id, visit);
    }
    if order.len() < waiting.len() {
        report_cycle(schedule, flow, &dependents, &waiting, found);
    }
    order
}

/// Another topological order: each lane runs as far as it can before another one does. What is read next was then
/// mostly read or written just before, and streams hold little.
pub fn depth_first(schedule: &Schedule, flow: &Flow, found: &mut Diagnostics) -> Vec<InstrId> {
    let dependents = Dependents::new(schedule, &[]);
    let mut waiting = waiting(schedule, flow, &dependents);
    let mut order = Vec::with_capacity(waiting.len());
    let mut open: Vec<InstrId> = ready(&waiting).collect();
    open.reverse();
    while let Some(id) = open.pop() {
        interrupt::poll();
        order.push(id);
        let top = open.len();
        successors(schedule, flow, &dependents, id, |next| open.extend(arrive(&mut waiting, next)));
        // The next one of the lane is found first and goes on first.
        open[top..].reverse();
    }
    if order.len() < waiting.len() {
        report_cycle(schedule, flow, &dependents, &waiting, found);
    }
    order
}

/// How many edges lead to each instruction.
fn waiting(schedule: &Schedule, flow: &Flow, dependents: &Dependents) -> Vec<u32> {
    let mut waiting = vec![0u32; schedule.instrs.len()];
    for id in (0..waiting.len()).map(InstrId::new) {
        interrupt::poll();
        successors(schedule, flow, dependents, id, |next| waiting[next.index()] += 1);
    }
    waiting
}

fn ready(waiting: &[u32]) -> impl Iterator<Item = InstrId> {
    waiting.iter().enumerate().filter(|&(_, &count)| count == 0).map(|(n, _)| InstrId::new(n))
}

/// Takes one edge to `next`, which is returned if that was the last one.
fn arrive(waiting: &mut [u32], next: InstrId) -> Option<InstrId> {
    let count = &mut waiting[next.index()];
    *count -= 1;
    (*count == 0).then_some(next)
}

/// Explicit dependencies the other way round: the instructions that wait for each one.
pub struct Dependents {
    /// The first row of each instruction and one past the last of all; empty if there are no rows.
    starts: Vec<u32>,
    rows: Vec<InstrId>,
}

impl Dependents {
    pub fn new(schedule: &Schedule, more: &[(InstrId, InstrId)]) -> Self {
        let all = || schedule.deps.iter().chain(more);
        let count = schedule.deps.len() + more.len();
        if count == 0 {
            return Self { starts: Vec::new(), rows: Vec::new() };
        }
        let mut starts = vec![0u32; schedule.instrs.len() + 2];
        for (_, earlier) in all() {
            starts[earlier.index() + 2] += 1;
        }
        for n in 2..starts.len() {
            starts[n] += starts[n - 1];
        }
        let mut rows = vec![InstrId(0); count];
        for &(instr, earlier) in all() {
            let at = &mut starts[earlier.index() + 1];
            rows[*at as usize] = instr;
            *at += 1;
        }
        starts.pop();
        Self { starts, rows }
    }

    pub fn of(&self, id: InstrId) -> &[InstrId] {
        match self.starts.get(id.index()..=id.index() + 1) {
            Some(&[start, end]) => &self.rows[start as usize..end as usize],
            _ => &[],
        }
    }
}

pub fn next_in_lane(schedule: &Schedule, flow: &Flow, id: InstrId) -> Option<InstrId> {
    let next = InstrId(id.0 + 1);
    (next.index() < schedule.instrs.len() && flow.lane_of(next) == flow.lane_of(id)).then_some(next)
}

fn successors(
    schedule: &Schedule,
    flow: &Flow,
    dependents: &Dependents,
    id: InstrId,
    mut visit: impl FnMut(InstrId),
) {
    next_in_lane(schedule, flow, id).into_iter().for_each(&mut visit);
    dependents.of(id).iter().copied().for_each(&mut visit);
    for (stream, span) in flow.pushes(schedule, id) {
        for readers in flow.readers_by_sink(stream) {
            Flow::touching(readers, span).iter().for_each(|p| visit(p.instr));
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
    dependents: &Dependents,
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
