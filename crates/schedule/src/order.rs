//! An order in which a schedule can run, and the proof that it always can.
//!
//! Edges of the constraint graph lead from an instruction to: the next one in its lane; each one that depends on it
//! explicitly; each one that pops an element that it pushes; and, for a stream of capacity `c`, from the instruction
//! that pops element `n - c` to the one that pushes element `n`.
//!
//! **No cycle means no deadlock at any granularity.** At the coarsest granularity an instruction fires when all of its
//! input is available and all of its output fits, so a run exists exactly if this graph has no cycle. At a finer
//! granularity, chunk `j` of an instruction waits only for chunks of instructions that precede the instruction in the
//! graph, or for its own chunk `j - 1`; a cycle of chunks would therefore imply a cycle in this graph.

use unisono_base::{Diagnostics, InstrId, LaneId, NodeId, Span, StreamId, interrupt};

use crate::{
    flow::Flow,
    instrs::Instr,
    runs::Runs,
    schedule::{Operand, Schedule, Stream},
};

/// Returns a topological order of all instructions. If there is a cycle, reports one cycle in `found`, and returns only
/// the instructions that can run.
pub fn topological(schedule: &Schedule, flow: &Flow, found: &mut Diagnostics) -> Vec<InstrId> {
    topological_with(schedule, flow, &[], found)
}

/// Returns a topological order as [`topological`] does, under the additional dependencies `(instruction, earlier)` in
/// `more`, such as those of a placement.
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

/// Writes a topological order to `runs`, in which each lane runs as far as it can before another lane runs. Data is
/// then mostly read soon after it was written, and streams hold few elements. If there is a cycle, the order has only
/// the instructions that can run, and `found` gets the cycle.
///
/// The order is that of a run at the coarsest granularity. The run stores a few numbers per lane and sink, and only the
/// explicit dependencies among the edges. Once an instruction can run, other lanes cannot block it again. So if there
/// is no cycle, all instructions run, whatever the order of lanes.
pub fn depth_first(schedule: &Schedule, runs: &Runs, found: &mut Diagnostics) {
    let mut lanes = Lanes::new(schedule);
    let mut open: Vec<LaneId> = (0..schedule.lane_count()).map(LaneId::new).filter(|&l| lanes.can_run(l)).collect();
    open.reverse();
    let (mut order, mut done) = (runs.write(), 0);
    while let Some(lane) = open.pop() {
        let start = lanes.next[lane.index()].instr;
        while lanes.can_run(lane) {
            interrupt::poll();
            let top = open.len();
            lanes.run(lane, &mut open);
            // Of the lanes that one instruction woke, the first one continues first.
            open[top..].reverse();
        }
        let end = lanes.next[lane.index()].instr;
        if end > start {
            order.push((lane, end));
            done += (end - start) as usize;
        }
    }
    drop((lanes, order));
    if done < schedule.instr_count() {
        topological(schedule, &Flow::index(schedule), found);
        assert!(!found.is_empty(), "instructions that cannot run wait for each other in a cycle");
    }
}

/// Entry of a sink at which no lane waits.
const NOBODY: u32 = u32::MAX;

/// Next instruction of a lane, and the operands that need not be checked again.
#[derive(Clone, Copy)]
struct Next {
    instr: u32,
    /// The number of operands that are already available, or [`AWAITS`] while an explicit dependency has not completed.
    /// If the next operand is an outgoing stream with a capacity below its length, `sinks` counts the sinks of the
    /// stream with enough room.
    operands: u32,
    sinks: u32,
}

const AWAITS: u32 = u32::MAX;

/// A sink of a stream.
#[derive(Clone, Copy)]
struct Sink {
    /// The numbers of elements that the source pushed (`pushed`) and that this sink popped (`popped`).
    pushed: u32,
    popped: u32,
    /// The lane that waits for elements at this sink, or [`NOBODY`]. `writer` is the lane that waits for room.
    reader: u32,
    writer: u32,
}

/// Lanes of a running schedule, and the lanes that wait at each sink.
struct Lanes<'a> {
    schedule: &'a Schedule,
    node_of_lane: Vec<NodeId>,
    next: Vec<Next>,
    /// The sinks, by row of the table of sinks. All numbers of a sink are stored together, because sinks are accessed
    /// at random addresses.
    sinks: Vec<Sink>,
    one_sink_each: bool,
    /// True if some stream cannot hold all its elements. Otherwise no lane waits for room.
    bounded: bool,
    dependents: Dependents,
    /// The lane of each instruction. `awaited` has the number of its dependencies that have not completed. Both are
    /// empty without dependencies.
    lane_of: Vec<LaneId>,
    awaited: Vec<u32>,
}

impl<'a> Lanes<'a> {
    fn new(schedule: &'a Schedule) -> Self {
        let first = &schedule.lane_instrs[..schedule.lane_count()];
        let (mut lane_of, mut awaited) = (Vec::new(), Vec::new());
        if !schedule.deps.is_empty() {
            lane_of = schedule.lanes_of_instrs();
            awaited = vec![0; schedule.instrs.len()];
            schedule.deps.iter().for_each(|(instr, _)| awaited[instr.index()] += 1);
        }
        Self {
            schedule,
            node_of_lane: schedule.nodes_of_lanes(),
            next: first.iter().map(|&instr| Next { instr, operands: 0, sinks: 0 }).collect(),
            sinks: vec![Sink { pushed: 0, popped: 0, reader: NOBODY, writer: NOBODY }; schedule.sinks.len()],
            one_sink_each: schedule.has_one_sink_each(),
            bounded: schedule.streams.iter().any(|s| s.capacity < s.len),
            dependents: Dependents::new(schedule, &[]),
            lane_of,
            awaited,
        }
    }

    /// Returns the sink at which a node pops a stream.
    #[inline]
    fn sink(&mut self, stream: StreamId, node: NodeId) -> &mut Sink {
        let at = if self.one_sink_each { stream.index() } else { self.schedule.row_of_sink(stream, node) };
        &mut self.sinks[at]
    }

    /// Returns all sinks of a stream.
    #[inline]
    fn sinks(&mut self, stream: StreamId) -> &mut [Sink] {
        let at = stream.index();
        &mut self.sinks[if self.one_sink_each { at..at + 1 } else { self.schedule.sink_rows(stream) }]
    }

    /// Returns true if the next instruction of a lane can run. If not, registers the lane at the sink or instruction
    /// that it waits for.
    fn can_run(&mut self, lane: LaneId) -> bool {
        let schedule = self.schedule;
        let mut next = self.next[lane.index()];
        if next.instr == schedule.lane_instrs[lane.index() + 1] {
            return false;
        }
        let id = InstrId(next.instr);
        if self.awaited.get(id.index()).is_some_and(|&count| count > 0) {
            self.next[lane.index()].operands = AWAITS;
            return false;
        }
        let node = self.node_of_lane[lane.index()];
        let (instr, operands) = schedule.instrs.whole(id);
        let len = u64::from(instr.len);
        for n in next.operands as usize..operands.len() {
            if let Operand::Stream(s) = operands.get(n) {
                let mut waits = false;
                if n < usize::from(instr.sources) {
                    let sink = self.sink(s, node);
                    if u64::from(sink.popped) + len > u64::from(sink.pushed) {
                        sink.reader = lane.0;
                        waits = true;
                    }
                } else if self.bounded {
                    let Stream { len: all, capacity, .. } = schedule.streams[s.index()];
                    for sink in self.sinks(s)[next.sinks as usize..].iter_mut().take_while(|_| capacity < all) {
                        if u64::from(sink.pushed) + len - u64::from(sink.popped) > u64::from(capacity) {
                            sink.writer = lane.0;
                            waits = true;
                            break;
                        }
                        next.sinks += 1;
                    }
                }
                if waits {
                    self.next[lane.index()] = next;
                    return false;
                }
                next.sinks = 0;
            }
            next.operands += 1;
        }
        true
    }

    /// Runs the next instruction of a lane, and appends the lanes that can continue after it.
    fn run(&mut self, lane: LaneId, woken: &mut Vec<LaneId>) {
        let schedule = self.schedule;
        let next = &mut self.next[lane.index()];
        let id = InstrId(next.instr);
        *next = Next { instr: id.0 + 1, operands: 0, sinks: 0 };
        let node = self.node_of_lane[lane.index()];
        let mut wake = |waiting: &mut u32| {
            if *waiting != NOBODY {
                woken.push(LaneId(std::mem::replace(waiting, NOBODY)));
            }
        };
        let (Instr { len, .. }, sources, sinks) = schedule.whole(id);
        for s in sinks.iter().filter_map(Operand::stream) {
            for sink in self.sinks(s) {
                sink.pushed += len;
                wake(&mut sink.reader);
            }
        }
        for s in sources.iter().filter_map(Operand::stream) {
            let sink = self.sink(s, node);
            sink.popped += len;
            wake(&mut sink.writer);
        }
        for &later in self.dependents.of(id) {
            self.awaited[later.index()] -= 1;
            let waits = self.lane_of[later.index()];
            let next = &mut self.next[waits.index()];
            if self.awaited[later.index()] == 0 && next.instr == later.0 && next.operands == AWAITS {
                next.operands = 0;
                woken.push(waits);
            }
        }
    }
}

/// Returns the number of edges of the constraint graph that lead to each instruction.
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

/// Removes one edge to `next`, and returns `next` if no edge remains.
fn arrive(waiting: &mut [u32], next: InstrId) -> Option<InstrId> {
    let count = &mut waiting[next.index()];
    *count -= 1;
    (*count == 0).then_some(next)
}

/// Explicit dependencies reversed: for each instruction, the instructions that wait for it.
pub struct Dependents {
    /// Index in `rows` of the first dependent of each instruction, then the number of rows; empty if there are no rows.
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

pub fn successors(
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

/// Returns the writers whose last element fits only after the pops of `span`. These are the writers whose end is in
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

/// Reports a cycle: follows stuck predecessors until an instruction is visited twice.
fn report_cycle(schedule: &Schedule, flow: &Flow, dependents: &Dependents, waiting: &[u32], found: &mut Diagnostics) {
    // Every stuck instruction has a stuck predecessor, but some have no stuck successor. So the search goes backwards,
    // through a table of one stuck predecessor of each instruction.
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
