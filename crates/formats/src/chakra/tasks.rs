//! Converts task graphs to programs, and programs to task graphs.

use std::{cmp::Reverse, collections::BinaryHeap};

use unisono_base::{TaskId, interrupt::poll, limits, narrow, rounded};
use unisono_lower::tasks::{ANY, Builder, Kind, Task, TaskError, TaskGraph};
use unisono_workload::{Compute, Queues, RankClass, Work, WorkNode, WorkloadGraph};

/// Estimated bytes of memory for a task or an edge: a node with its name, and a part of a trace. [`STEPS_EACH`] is the
/// corresponding estimate of computation steps.
const BYTES_EACH: u128 = 320;
const STEPS_EACH: u128 = 64;

/// Reason why a task graph is not a program, or a program not a task graph.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotTasks {
    #[error("rank {rank} has {found}; accepted are {accepted}")]
    Task { rank: u32, found: String, accepted: &'static str },
    #[error("rank {rank} has tasks that wait for each other in a circle")]
    Circle { rank: u32 },
    #[error(transparent)]
    Tasks(#[from] TaskError),
}

/// Seconds that one tick of a calc takes, and bytes of an element of a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Units {
    pub seconds_per_tick: f64,
    pub element_bytes: u64,
}

/// Returns a task graph as a program whose ranks start each task as soon as it is ready ([`Queues::AsReady`]).
///
/// # Errors
/// Returns an error for messages with any rank or any tag, for tasks on a CPU or a network interface other than 0, or
/// for tasks that wait for each other in a cycle.
pub fn from_tasks(
    graph: &TaskGraph,
    (name, format): (&str, &'static str),
    units: Units,
) -> Result<WorkloadGraph, NotTasks> {
    let size = (graph.task_count() + graph.edge_count()) as u128;
    limits::admit("the program of the tasks", BYTES_EACH * size, STEPS_EACH * size).map_err(TaskError::OverLimit)?;
    let ranks = graph.rank_count();
    let class = |rank| Ok(RankClass { ranks: vec![rank], nodes: nodes(graph, rank, units)? });
    Ok(WorkloadGraph {
        name: name.to_owned(),
        format,
        ranks,
        classes: (0..ranks).map(class).collect::<Result<_, NotTasks>>()?,
        queues: Queues::AsReady,
        ..WorkloadGraph::default()
    })
}

/// Returns the tasks of a rank as nodes. Each node comes after the nodes for which it waits; otherwise the order of the
/// graph is kept.
fn nodes(graph: &TaskGraph, rank: u32, units: Units) -> Result<Vec<WorkNode>, NotTasks> {
    let tasks = graph.tasks(rank);
    let place = |task: TaskId| (task.0 - tasks.start) as usize;
    let mut waits: Vec<[Vec<u32>; 2]> = vec![Default::default(); tasks.len()];
    let mut open = vec![0_u32; tasks.len()];
    for id in tasks.clone() {
        for (later, started) in graph.waiting(TaskId(id)) {
            // A send of a task graph is complete as soon as it starts.
            let begun = started || graph.task(TaskId(id)).kind == Kind::Send;
            waits[place(later)][usize::from(begun)].push(id - tasks.start);
            open[place(later)] += 1;
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> = (0..tasks.len()).filter(|&n| open[n] == 0).map(Reverse).collect();
    let mut numbers = vec![0; tasks.len()];
    let mut nodes = Vec::with_capacity(tasks.len());
    while let Some(Reverse(n)) = ready.pop() {
        poll();
        let task = graph.task(TaskId(tasks.start + narrow::<u32>(n)));
        let work = work(rank, task, units)?;
        numbers[n] = narrow(nodes.len());
        let [after, begun] = waits[n].each_ref().map(|of| {
            let mut of: Vec<u32> = of.iter().map(|&before| numbers[before as usize]).collect();
            of.sort_unstable();
            of.dedup();
            of
        });
        nodes.push(WorkNode { begun, ..WorkNode::new(task.kind.name(), work, after) });
        for (later, _) in graph.waiting(TaskId(tasks.start + narrow::<u32>(n))) {
            open[place(later)] -= 1;
            if open[place(later)] == 0 {
                ready.push(Reverse(place(later)));
            }
        }
    }
    if nodes.len() < tasks.len() { Err(NotTasks::Circle { rank }) } else { Ok(nodes) }
}

#[expect(clippy::cast_precision_loss, reason = "counts of operations and bytes are floating point")]
fn work(rank: u32, task: Task, units: Units) -> Result<Work, NotTasks> {
    let Task { kind, peer, tag, amount, cpu, nic } = task;
    let wrong = |found: String, accepted| NotTasks::Task { rank, found, accepted };
    if cpu > 0 || nic > 0 {
        let found = format!("a {} on CPU {cpu} and network interface {nic}", kind.name());
        return Err(wrong(found, "tasks on CPU 0 and network interface 0"));
    }
    if matches!(kind, Kind::Send | Kind::Receive) && (peer == ANY || tag == ANY) {
        let found = format!("a {} of any rank or any tag", kind.name());
        return Err(wrong(found, "messages between two ranks that are named, with a tag"));
    }
    Ok(match kind {
        Kind::Send => Work::Send { to: peer, bytes: amount, tag },
        Kind::Receive => Work::Receive { from: peer, bytes: amount, tag },
        Kind::Calc => Work::Compute(Compute::Measured { seconds: amount as f64 * units.seconds_per_tick }),
        Kind::Reduce => {
            Work::Compute(Compute::Reduced { bytes: amount, operations: amount / units.element_bytes.max(1) })
        }
    })
}

/// Returns a program without collectives as a task graph. A computation with a time becomes a calc, rounded to ticks;
/// one with a number of bytes becomes a reduction.
///
/// # Errors
/// Returns an error for a collective or a permutation, which do not name their messages, or if the graph is too large.
pub fn to_tasks(graph: &WorkloadGraph, seconds_per_tick: f64) -> Result<TaskGraph, NotTasks> {
    let mut of: Vec<&[WorkNode]> = vec![&[]; graph.ranks as usize];
    for class in &graph.classes {
        for &rank in &class.ranks {
            of[rank as usize] = &class.nodes;
        }
    }
    let mut builder = Builder::new();
    for (rank, nodes) in (0..).zip(of) {
        builder.rank();
        let mut ids: Vec<TaskId> = Vec::with_capacity(nodes.len());
        // The last task of the communication queue, and the last task of the compute queue. Both are used only if
        // queues run in program order.
        let mut last: [Option<TaskId>; 2] = [None, None];
        for node in nodes {
            let task = match node.work {
                Work::Compute(Compute::Measured { seconds }) => Task::calc(rounded(seconds / seconds_per_tick)),
                Work::Compute(Compute::Counted { bytes, .. }) => Task::reduce(rounded(bytes)),
                Work::Compute(Compute::Reduced { bytes, .. }) => Task::reduce(bytes),
                Work::Send { to, bytes, tag } => Task::send(to, bytes, tag),
                Work::Receive { from, bytes, tag } => Task::receive(from, bytes, tag),
                Work::Collective(_) | Work::Permute { .. } => {
                    let found = format!("the collective '{}'", unisono_base::excerpt(&node.name));
                    return Err(NotTasks::Task { rank, found, accepted: "compute, sends and receives" });
                }
            };
            let id = builder.task(task);
            for &before in &node.after {
                builder.requires(id, ids[before as usize]);
            }
            for &before in &node.begun {
                builder.irequires(id, ids[before as usize]);
            }
            if graph.queues == Queues::InOrder
                && let Some(before) = last[usize::from(node.work.is_compute())].replace(id)
            {
                builder.requires(id, before);
            }
            ids.push(id);
        }
    }
    Ok(builder.finish()?)
}
