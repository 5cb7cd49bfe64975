//! Lowers a schedule to a task graph: the sends, receives and reductions of its instructions.
//!
//! An instruction becomes its receives, one reduce if it has two or more sources (a calc if it copies and copies take
//! time), then its sends in the order of its sinks, one for each sink of a stream. A message is the data that one
//! instruction pushes. If a node pops the message in several pieces, the receive belongs to the instruction that pops
//! the first piece. The next instruction of the lane waits until receives and the reduce are done and sends have
//! started, because started sends do not need their operands. All lanes of a rank share one CPU and one network
//! interface. All messages of stream s have tag s.
//!
//! A switch is an additional rank of the graph. Its messages are on CPU 0, and its reduces on the CPUs of its engines,
//! to which its lanes are assigned round-robin. A reduce of a switch counts the bytes of its result, because the
//! operands arrive in parallel.
//!
//! An instruction ends when its sends have started, under a rendezvous protocol too: streams buffer their data, so an
//! exchange of long messages is not a deadlock. `draft` and `draft_with_switches` lower a schedule without a proof,
//! only for the planner's times, because proofs of all candidates would take too long.

use unisono_base::{Diagnostics, InstrId, LaneId, NodeId, StreamId, TaskId, limits, narrow, rounded, rounded_up};
use unisono_machine::network::Switches;
use unisono_schedule::{Flow, Schedule, verify::Verified};

use super::{Builder, Kind, Passes, Task, TaskError, TaskGraph, crossings};

/// Estimated bytes of memory and steps of computation for each instruction or stream, including those for the
/// schedule's [`Flow`].
const BYTES_EACH: u128 = 96;
const STEPS_EACH: u128 = 128;

/// Returns the task graph of a proved schedule without switches.
///
/// # Errors
/// Returns an error if the schedule is too large, has dependencies between nodes, which no message carries, or has
/// nodes that are switches.
pub fn from_schedule(proven: &Verified) -> Result<TaskGraph, TaskError> {
    draft(proven.schedule())
}

/// Returns the task graph of a candidate whose time is needed before it is proved. The result must not be run or
/// written.
///
/// # Errors
/// Returns an error if [`from_schedule`] does, or if the schedule is not well-formed.
pub fn draft(schedule: &Schedule) -> Result<TaskGraph, TaskError> {
    schedule.check_ranks_only().map_err(TaskError::Switches)?;
    draft_with_switches(schedule, (&Switches::default(), &[]), Charges::default())
}

/// Returns the task graph of a schedule with switches. `on` has the computing switches of a network, and the node of
/// its plane for each node of the schedule (if empty, node k runs on node k).
///
/// # Errors
/// Returns the errors of [`from_schedule`], except for switches.
pub fn with_switches(proven: &Verified, on: (&Switches, &[u32]), charges: Charges) -> Result<TaskGraph, TaskError> {
    draft_with_switches(proven.schedule(), on, charges)
}

/// Returns the task graph of a candidate with switches, as [`draft`] does without switches.
///
/// # Errors
/// Returns the errors of [`draft`], except for switches.
pub fn draft_with_switches(
    schedule: &Schedule,
    on: (&Switches, &[u32]),
    charges: Charges,
) -> Result<TaskGraph, TaskError> {
    whole(schedule, on, charges, None)
}

/// Returns the task graph of a plan that thread blocks execute.
///
/// # Errors
/// Returns the errors of [`with_switches`].
pub fn with_thread_blocks(
    proven: &Verified,
    on: (&Switches, &[u32]),
    charges: Charges,
    passes: Passes<'_>,
) -> Result<TaskGraph, TaskError> {
    whole(proven.schedule(), on, charges, Some(passes))
}

fn whole(
    schedule: &Schedule,
    (switches, places): (&Switches, &[u32]),
    charges: Charges,
    passes: Option<Passes<'_>>,
) -> Result<TaskGraph, TaskError> {
    let each = passes.map_or(1, |_| Passes::MOST_TASKS);
    let size = each * (schedule.instr_count() + schedule.stream_count()) as u128;
    limits::admit("the task graph of the schedule", BYTES_EACH * size, STEPS_EACH * size)?;
    let own: Vec<u32> = schedule.all_nodes().map(|node| node.0).collect();
    let places = if places.is_empty() { &own } else { places };
    let part = Subgraph { passes, ..Subgraph::drafted(schedule, charges)? }.in_switches(switches, places);
    let mut builder = Builder::new();
    let tasks = 2 * schedule.stream_count() + schedule.instr_count() / 2;
    builder.reserve(schedule.node_count(), tasks);
    for node in schedule.all_nodes() {
        builder.rank();
        let engines =
            if node.0 < schedule.collective().ranks { 0 } else { switches.engines(places[node.index()]).max(1) };
        part.lower(&mut builder, node, &Among { engines, ..Among::default() }, None);
    }
    builder.finish()
}

/// A schedule that becomes part of a larger task graph: its nodes are some of the ranks of that graph.
pub struct Subgraph<'a> {
    schedule: &'a Schedule,
    flow: Flow,
    /// Instructions for which other instructions wait by an explicit dependency, sorted.
    awaited: Vec<InstrId>,
    charges: Charges,
    passes: Option<Passes<'a>>,
    /// The result of [`crossings`] for each stream; empty: 1 for all streams.
    crossings: Vec<f64>,
}

/// Costs of ranks besides messages and reductions, in ticks of the simulator's clock.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Charges {
    /// Ticks before a rank begins the schedule.
    pub launch: u64,
    /// Ticks for each byte that an instruction copies ([`Schedule::is_copy`]).
    pub copy_per_byte: f64,
}

/// The ranks, tags, CPUs and interfaces that a [`Subgraph`] has in the larger graph.
#[derive(Clone, Copy, Default)]
pub struct Among<'a> {
    /// The rank of each node; `None`: node k is rank k.
    pub ranks: Option<&'a [u32]>,
    /// The tag of stream 0; stream s has tag `tag + s`, and the subgraph has [`Subgraph::tags`] tags.
    pub tag: u32,
    /// The CPU that runs the tasks; `nic` is their network interface.
    pub cpu: u8,
    pub nic: u8,
    /// The number of additional CPUs, to which the reduces of the lanes are assigned round-robin; 0 for a rank.
    pub engines: u8,
}

impl<'a> Subgraph<'a> {
    /// # Errors
    /// Returns the errors of [`from_schedule`].
    pub fn new(proven: &'a Verified, charges: Charges) -> Result<Self, TaskError> {
        Self::drafted(proven.schedule(), charges)
    }

    fn drafted(schedule: &'a Schedule, charges: Charges) -> Result<Self, TaskError> {
        let mut found = Diagnostics::default();
        let flow = Flow::new(schedule, &mut found);
        if let Some(first) = found.into_vec().into_iter().next() {
            return Err(TaskError::Malformed(first));
        }
        for &(later, earlier) in schedule.dependencies() {
            let (later, earlier) = (flow.node_of(later), flow.node_of(earlier));
            if later != earlier {
                return Err(TaskError::AcrossNodes { later, earlier });
            }
        }
        let mut awaited: Vec<_> = schedule.dependencies().iter().map(|d| d.1).collect();
        awaited.sort_unstable();
        awaited.dedup();
        Ok(Self { schedule, flow, awaited, charges, crossings: Vec::new(), passes: None })
    }

    /// Sets the bytes that messages of switches put on links. Node k runs on node `places[k]` of the plane.
    #[must_use]
    pub fn in_switches(self, switches: &Switches, places: &[u32]) -> Self {
        let leader = |id| self.passes.and_then(|passes| passes.leader(id));
        let crossings = crossings(self.schedule, &self.flow, switches, places, &leader);
        Self { crossings, ..self }
    }

    pub fn tags(&self) -> u32 {
        narrow(self.schedule.stream_count())
    }

    /// Adds the tasks of `node` to the current rank, all of which wait for `after`. Returns a task that is done when
    /// all added tasks are done.
    pub fn append(&self, builder: &mut Builder, node: NodeId, among: &Among<'_>, after: TaskId) -> TaskId {
        let ends = self.lower(builder, node, among, Some(after));
        let joint = builder.task(Task::calc(0).on(among.cpu, among.nic));
        builder.requires(joint, after);
        for end in ends {
            for task in end.ids() {
                builder.requires(joint, task);
            }
        }
        joint
    }

    /// Adds the tasks of `node` to the current rank, and returns the last tasks of each lane.
    fn lower(&self, builder: &mut Builder, node: NodeId, among: &Among<'_>, after: Option<TaskId>) -> Vec<Tasks> {
        let mut first = after.map_or(Tasks::NONE, |task| Tasks::one(Kind::Calc, task));
        if self.charges.launch > 0 && node.0 < self.schedule.collective().ranks {
            let launch = builder.task(Task::calc(self.charges.launch).on(among.cpu, among.nic));
            first.ids().for_each(|before| builder.requires(launch, before));
            first = Tasks::one(Kind::Calc, launch);
        }
        let (receives, sends) = (Vec::new(), Vec::new());
        Lower {
            schedule: self.schedule,
            flow: &self.flow,
            builder,
            awaited: &self.awaited,
            charges: self.charges,
            crossings: &self.crossings,
            among,
            receives,
            sends,
            engine: 0,
            passes: self.passes,
            block: 0,
        }
        .node(node, first)
    }
}

/// Tasks of one kind with consecutive ids.
#[derive(Clone, Copy)]
pub(super) struct Tasks {
    kind: Kind,
    pub(super) first: u32,
    count: u32,
}

impl Tasks {
    const NONE: Self = Self { kind: Kind::Calc, first: 0, count: 0 };

    pub(super) fn one(kind: Kind, task: TaskId) -> Self {
        Self { kind, first: task.0, count: 1 }
    }

    fn ids(self) -> impl Iterator<Item = TaskId> {
        (self.first..self.first + self.count).map(TaskId)
    }
}

/// An instruction at either end of an explicit dependency, with its first and last tasks.
struct Tied {
    id: InstrId,
    first: Tasks,
    last: Tasks,
}

pub(super) struct Lower<'a> {
    pub(super) schedule: &'a Schedule,
    flow: &'a Flow,
    pub(super) builder: &'a mut Builder,
    awaited: &'a [InstrId],
    charges: Charges,
    crossings: &'a [f64],
    among: &'a Among<'a>,
    receives: Vec<Task>,
    sends: Vec<Task>,
    /// The index, counted from 1, of the additional CPU that reduces for the current lane; 0 if the rank has no
    /// additional CPUs.
    pub(super) engine: u8,
    passes: Option<Passes<'a>>,
    /// The CPU of the thread block of the current lane.
    pub(super) block: u8,
}

impl Lower<'_> {
    /// Adds the tasks of a node after `first`, and returns the last tasks of each lane.
    fn node(&mut self, node: NodeId, first: Tasks) -> Vec<Tasks> {
        // The list is sorted by id, because ids ascend over the lanes.
        let mut tied: Vec<Tied> = Vec::new();
        let mut ends = Vec::new();
        let engines = 1..=self.among.engines;
        let mut dealt = engines.cycle();
        for lane in self.schedule.lanes(node).map(LaneId::new) {
            let mut before = first;
            self.engine = dealt.next().unwrap_or(0);
            // If a GPU has more than 255 thread blocks, several of them share a CPU.
            self.block = self.block.checked_add(1).unwrap_or(1);
            for id in self.schedule.lane_instrs(lane).map(InstrId::new) {
                before = self.instr(id, before, &mut tied);
            }
            ends.push(before);
        }
        for later in &tied {
            for &(_, earlier) in self.schedule.after(later.id) {
                if let Ok(at) = tied.binary_search_by_key(&earlier, |t| t.id) {
                    self.wait(later.first, tied[at].last);
                }
            }
        }
        ends
    }

    /// Adds an instruction that follows `before` in its lane, and returns its last tasks.
    fn instr(&mut self, id: InstrId, before: Tasks, tied: &mut Vec<Tied>) -> Tasks {
        let waits = !self.schedule.after(id).is_empty();
        let ties = waits || self.awaited.binary_search(&id).is_ok();
        self.messages(id);
        let (receives, sends) = (std::mem::take(&mut self.receives), std::mem::take(&mut self.sends));
        let is_switch = self.is_switch(id);
        if let Some(passes) = self.passes {
            let (first, last) = self.of_block(&passes, id, before, (&receives, &sends));
            if ties {
                tied.push(Tied { id, first, last });
            }
            (self.receives, self.sends) = (receives, sends);
            return last;
        }
        let operands = self.schedule.sources(id).len() as u64;
        let bytes = u64::from(self.schedule.instr(id).len) * self.schedule.collective().element_bytes();
        let reduced = if is_switch { bytes } else { operands.saturating_sub(1) * bytes };
        let copies = self.charges.copy_per_byte > 0.0 && !is_switch && self.schedule.is_copy(id);
        let copied = if copies { rounded(bytes as f64 * self.charges.copy_per_byte) } else { 0 };
        let work = [if copies { Task::calc(copied) } else { Task::reduce(reduced) }];
        let work = if operands > 1 || copies { &work[..] } else { &[] };
        // If an instruction copies and sends, its sends are placed before the copy, because they do not need the copy.
        let stages = if copies { [&[], &sends[..], work] } else { [&receives[..], work, &sends[..]] };
        let heads = stages.iter().find(|s| !s.is_empty()).map_or(0, |s| s.len());
        // An empty task replaces an instruction that has no task, but has an explicit dependency. An empty task is also
        // added between two sets of tasks, so that the graph does not need an edge for each pair.
        let joint = (heads == 0 && ties) || (heads > 1 && (before.count > 1 || waits));
        let nothing = [Task::calc(0)];
        let joint = if joint { &nothing[..] } else { &[] };
        let (mut first, mut last) = (Tasks::NONE, before);
        for stage in [joint].into_iter().chain(stages).filter(|s| !s.is_empty()) {
            last = self.follow(stage, last);
            if first.count == 0 {
                first = last;
            }
        }
        if ties {
            tied.push(Tied { id, first, last });
        }
        (self.receives, self.sends) = (receives, sends);
        last
    }

    pub(super) fn is_switch(&self, id: InstrId) -> bool {
        self.flow.node_of(id).0 >= self.schedule.collective().ranks
    }

    /// Collects the messages of an instruction in `receives` and `sends`.
    fn messages(&mut self, id: InstrId) {
        let (schedule, flow) = (self.schedule, self.flow);
        let element_bytes = schedule.collective().element_bytes();
        let crossings = self.crossings;
        let bytes = |stream: StreamId, elements: u32| {
            let bytes = u64::from(elements) * element_bytes;
            match crossings.get(stream.index()) {
                Some(&more) if more > 1.0 => rounded_up(bytes as f64 * more),
                _ => bytes,
            }
        };
        let among = self.among;
        let rank = |node: u32| among.ranks.map_or(node, |ranks| ranks[node as usize]);
        self.receives.clear();
        for (stream, span) in flow.pops(schedule, id) {
            let from = rank(schedule.stream(stream).source.0);
            // If a message begins before this span, the instruction that popped its first piece has already received
            // the message.
            let new = Flow::touching(flow.writers(stream), span).iter().filter(|p| p.start >= span.start);
            self.receives.extend(
                new.map(|p| Task::receive(from, bytes(stream, schedule.instr(p.instr).len), among.tag + stream.0)),
            );
        }
        self.sends.clear();
        for (stream, span) in flow.pushes(schedule, id) {
            let to = schedule.stream_sinks(stream).iter();
            self.sends.extend(to.map(|sink| Task::send(rank(sink.0), bytes(stream, span.len), among.tag + stream.0)));
        }
    }

    /// Adds the tasks of `stage`, each of which waits for all of `before`.
    fn follow(&mut self, stage: &[Task], before: Tasks) -> Tasks {
        let mut added = Tasks { kind: stage[0].kind, first: 0, count: narrow(stage.len()) };
        for (n, &task) in stage.iter().enumerate() {
            let cpu = self.among.cpu + if task.kind == Kind::Reduce { self.engine } else { 0 };
            let id = self.builder.task(task.on(cpu, self.among.nic));
            if n == 0 {
                added.first = id.0;
            }
        }
        self.wait(added, before);
        added
    }

    pub(super) fn wait(&mut self, later: Tasks, earlier: Tasks) {
        for l in later.ids() {
            for e in earlier.ids() {
                match earlier.kind {
                    Kind::Send => self.builder.irequires(l, e),
                    _ => self.builder.requires(l, e),
                }
            }
        }
    }
}
