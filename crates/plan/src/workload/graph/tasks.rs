//! A program as one task graph with all messages of all collectives, for the simulators of messages.
//!
//! A rank communicates on its first CPU and computes on its second CPU, because switches that reduce use the first. If
//! the queues work in program order, so do the CPUs. Without overlap, a node also waits for the node before it.

use std::{cmp::Reverse, collections::BTreeSet};

use rustc_hash::FxHashMap;
use unisono_base::{NodeId, TaskId, limits, narrow, rounded};
use unisono_lower::tasks::{Among, Builder, Charges, Subgraph, Task, TaskError, TaskGraph};
use unisono_machine::network::Switches;
use unisono_schedule::verify::Verified;
use unisono_workload::{Queues, Work, WorkNode, WorkloadGraph};

use super::{
    super::WorkloadError,
    Chosen,
    occurrences::{Occurrence, Occurrences},
};
use crate::PlanError;

const COMMUNICATES: u8 = 0;
const COMPUTES: u8 = 1;
const TICKS_PER_SECOND: f64 = 1e12;
/// The estimated bytes of memory for each instruction or stream in the task graph.
const BYTES_EACH: u128 = 96;
/// The estimated elementary steps for each instruction or stream.
const STEPS_EACH: u128 = 128;
/// The most tags of messages. Tags must be below the value that stands for any tag.
const MOST_TAGS: u64 = 1 << 31;

/// The task graph, and the tasks whose ends are the times of nodes.
pub struct ProgramTasks {
    pub graph: TaskGraph,
    /// The place on the network of each rank of the graph. The ranks of the program come first, then switches.
    pub places: Vec<u32>,
    /// The watched tasks of each rank and node: the end of compute, or the start and the end of communication.
    pub watch: Vec<TaskId>,
    /// The sends of messages between pairs, for each rank in the order of its nodes. They end when the message has
    /// left.
    pub leaving: Vec<TaskId>,
    /// For each rank, the index of its first watched task in `watch`, and of its first send in `leaving`.
    first: Vec<[usize; 2]>,
    /// For each class, the index of each node's first watched task among those of its rank.
    offsets: Vec<Vec<usize>>,
}

/// The proved schedule by which groups of one size perform a collective.
struct Made<'a> {
    chosen: &'a Chosen,
    proven: Verified<'static>,
    /// The ranks of the switches in the task graph. In the schedule, switches are the last nodes.
    switches: Vec<u32>,
}

/// A program on a machine, with an algorithm for each communication.
pub struct Scheduled<'a> {
    pub graph: &'a WorkloadGraph,
    /// For each row, the algorithms that its groups use: one entry for each size of groups. Empty for messages.
    pub chosen: &'a [Vec<Chosen>],
    /// For each class and node, the row of its communication.
    pub rows: &'a [Vec<Option<usize>>],
    /// The place of each rank on a network.
    pub places: &'a [u32],
    /// The sums and copies that the switches of a network make.
    pub computing: &'a Switches,
    pub charges: Charges,
    pub overlap: bool,
}

/// The data common to all ranks of a program while their tasks are made.
struct Shared<'a> {
    graph: &'a WorkloadGraph,
    made: &'a [Vec<Made<'a>>],
    parts: &'a [Vec<Subgraph<'a>>],
    /// For each set of tables of receivers, the senders to each rank.
    senders: Vec<Vec<Vec<u32>>>,
    /// For each collective and permutation, its row and its first tag.
    tags: FxHashMap<Occurrence, (usize, u32)>,
    /// The tag of messages between pairs in the graph, for each tag of the program.
    of_pairs: FxHashMap<u32, u32>,
    /// The time that a rank takes to start a communication, in ticks.
    launch: u64,
    overlap: bool,
}

/// The tags of all messages.
#[derive(Default)]
struct Tags {
    tags: FxHashMap<Occurrence, (usize, u32)>,
    /// The row and the first tag of each collective, in program order.
    order: Vec<(usize, u32)>,
    of_pairs: FxHashMap<u32, u32>,
}

/// Makes the task graph of a program. `seconds` returns the time of a node that computes.
///
/// # Errors
///
/// Returns an error if a schedule is too large or fails its proof, there are more messages than a limit admits, or
/// classes perform different collectives in the same groups.
pub fn program_tasks(
    on: &Scheduled,
    occurrences: &Occurrences,
    seconds: impl Fn(usize, usize) -> f64,
) -> Result<ProgramTasks, PlanError> {
    let graph = on.graph;
    check_size(on, occurrences)?;
    let (made, switches) = make(on)?;
    let malformed = |e: TaskError| WorkloadError::Tasks { name: graph.name.clone(), message: e.to_string() };
    let parts: Vec<Vec<Subgraph<'_>>> = made
        .iter()
        .map(|of_row| of_row.iter().map(|m| of_made(m, on, &switches)).collect::<Result<_, _>>())
        .collect::<Result<_, _>>()
        .map_err(malformed)?;
    let Tags { tags, order, of_pairs } = tags(graph, on.rows, occurrences, &made, &parts)?;
    let senders = (0..narrow(graph.receivers.len())).map(|receivers| senders(graph, receivers)).collect();
    let shared = Shared {
        graph,
        made: &made,
        parts: &parts,
        senders,
        tags,
        of_pairs,
        launch: on.charges.launch,
        overlap: on.overlap,
    };
    let mut tasks = ProgramTasks {
        graph: TaskGraph::default(),
        places: on.places.to_vec(),
        watch: Vec::new(),
        leaving: Vec::new(),
        first: Vec::with_capacity(graph.ranks as usize),
        offsets: graph.classes.iter().map(|class| offsets(class.nodes.iter().map(|node| &node.work))).collect(),
    };
    let mut builder = Builder::new();
    for (rank, &class) in (0..).zip(&occurrences.class_of) {
        builder.rank();
        tasks.first.push([tasks.watch.len(), tasks.leaving.len()]);
        shared.rank(&mut builder, &mut tasks, (rank, class), &occurrences.of[class], &seconds);
    }
    for &place in &switches {
        builder.rank();
        shared.switch(&mut builder, (place, on.computing.engines(place).max(1)), &switches, &order);
        tasks.places.push(place);
    }
    tasks.graph = builder.finish().map_err(malformed)?;
    Ok(tasks)
}

/// Compares the most tasks that the program's collectives may have with the limits, before schedules are built and
/// proved.
fn check_size(on: &Scheduled, occurrences: &Occurrences) -> Result<(), PlanError> {
    let graph = on.graph;
    let all = occurrences.of.iter().zip(on.rows).zip(&graph.classes);
    let each = all.flat_map(|((of, rows), class)| of.iter().zip(rows).zip(&class.nodes));
    // The row of each collective, and a node that performs it.
    let mut known: FxHashMap<Occurrence, (usize, &WorkNode)> = FxHashMap::default();
    for ((occurrence, row), node) in each {
        if let (Some(occurrence), Some(row), Work::Collective(_)) = (occurrence, row, node.work) {
            known.entry(*occurrence).or_insert((*row, node));
        }
    }
    let of_row = |&(row, _): &(usize, &WorkNode)| -> u128 {
        let of_group = |chosen: &Chosen| u128::from(chosen.size().1.unwrap_or(0)) * chosen.groups.len() as u128;
        on.chosen[row].iter().map(of_group).sum()
    };
    let size: u128 = known.values().map(of_row).sum();
    let Err(over) = limits::check("the task graph of the program", BYTES_EACH * size, STEPS_EACH * size) else {
        return Ok(());
    };
    let largest = known.values().max_by_key(|one| (of_row(one), Reverse(one.0)));
    let Some(&(row, WorkNode { work: Work::Collective(collected), .. })) = largest else { return Err(over.into()) };
    let largest = on.chosen[row].iter().max_by_key(|chosen| chosen.size().1);
    let (kind, algorithm) = (collected.kind.name(), largest.map_or("", |chosen| chosen.size().0).to_owned());
    let tasks = largest.and_then(|chosen| chosen.size().1).unwrap_or(0);
    let ranks = largest.map_or(0, |chosen| chosen.groups.group(0).len());
    let (program, over) = (graph.name.clone(), Box::new(over));
    Err(WorkloadError::Large { program, over, kind, ranks, algorithm, tasks }.into())
}

/// Builds the schedules of all rows. Also returns the places of all switches in them, ascending.
fn make<'a>(on: &Scheduled<'a>) -> Result<(Vec<Vec<Made<'a>>>, Vec<u32>), PlanError> {
    let mut made = Vec::with_capacity(on.chosen.len());
    for of_row in on.chosen {
        let one = |chosen: &'a Chosen| {
            let (proven, switches) = chosen.schedule()?;
            Ok(Made { chosen, proven, switches })
        };
        made.push(of_row.iter().map(one).collect::<Result<Vec<_>, PlanError>>()?);
    }
    let all: BTreeSet<u32> = made.iter().flatten().flat_map(|m| &m.switches).copied().collect();
    let all: Vec<u32> = all.into_iter().collect();
    let number = |place: &u32| on.graph.ranks + narrow::<u32>(all.binary_search(place).expect("one of all"));
    for m in made.iter_mut().flatten() {
        m.switches = m.switches.iter().map(number).collect();
    }
    Ok((made, all))
}

fn offsets<'a>(nodes: impl Iterator<Item = &'a Work>) -> Vec<usize> {
    let each = |next: &mut usize, work: &Work| {
        let at = *next;
        *next += if work.is_compute() { 1 } else { 2 };
        Some(at)
    };
    nodes.scan(0, each).collect()
}

/// Gives each collective different tags, in program order, and checks the number of messages against the limits.
fn tags(
    graph: &WorkloadGraph,
    rows: &[Vec<Option<usize>>],
    occurrences: &Occurrences,
    made: &[Vec<Made<'_>>],
    parts: &[Vec<Subgraph<'_>>],
) -> Result<Tags, PlanError> {
    let Tags { mut tags, mut order, mut of_pairs } = Tags::default();
    let mut pairs = BTreeSet::new();
    let (mut next, mut size) = (0_u64, 0_u128);
    for (class, of_class) in occurrences.of.iter().enumerate() {
        for (node, occurrence) in of_class.iter().enumerate() {
            let (Some(occurrence), Some(row)) = (occurrence, rows[class][node]) else { continue };
            if let Occurrence::Pair { tag, .. } = occurrence {
                pairs.insert(*tag);
                size += 1;
                continue;
            }
            if let Some(&(known, _)) = tags.get(occurrence) {
                if known != row {
                    let rank = graph.classes[class].ranks.first().copied().unwrap_or(0);
                    let name = unisono_base::excerpt(&graph.classes[class].nodes[node].name);
                    return Err(WorkloadError::Unlike { program: graph.name.clone(), rank, node, name }.into());
                }
                continue;
            }
            tags.insert(*occurrence, (row, narrow::<u32>(next)));
            order.push((row, narrow::<u32>(next)));
            next += u64::from(parts[row].iter().map(Subgraph::tags).max().unwrap_or(1));
            let of_part = |m: &Made<'_>| {
                let schedule = m.proven.schedule();
                (schedule.instr_count() + schedule.stream_count()) as u128 * m.chosen.groups.len() as u128
            };
            let messages =
                if let Occurrence::Receivers(table, _) = occurrence { graph.pairs(*table).count() } else { 0 };
            size += made[row].iter().map(of_part).sum::<u128>() + messages as u128 + u128::from(graph.ranks);
            if next > MOST_TAGS {
                let message = format!("its collectives have more than {MOST_TAGS} streams; use the model or flows");
                return Err(WorkloadError::Tasks { name: graph.name.clone(), message }.into());
            }
        }
    }
    let nodes: u128 = graph.classes.iter().map(|class| (class.nodes.len() * class.ranks.len()) as u128).sum();
    limits::admit("the task graph of the program", BYTES_EACH * (size + nodes), STEPS_EACH * (size + nodes))?;
    if next + pairs.len() as u64 > MOST_TAGS {
        let message = format!("it has more than {MOST_TAGS} tags; use the model");
        return Err(WorkloadError::Tasks { name: graph.name.clone(), message }.into());
    }
    of_pairs.extend(pairs.into_iter().zip(narrow::<u32>(next)..));
    Ok(Tags { tags, order, of_pairs })
}

/// Returns for each rank the ranks that send to it by a set of tables of receivers.
fn senders(graph: &WorkloadGraph, receivers: u32) -> Vec<Vec<u32>> {
    let mut senders = vec![Vec::new(); graph.ranks as usize];
    for (from, to) in graph.pairs(receivers) {
        senders[to as usize].push(from);
    }
    senders
}

impl Shared<'_> {
    fn rank(
        &self,
        b: &mut Builder,
        tasks: &mut ProgramTasks,
        (rank, class): (u32, usize),
        occurrences: &[Option<Occurrence>],
        seconds: impl Fn(usize, usize) -> f64,
    ) {
        let nodes = &self.graph.classes[class].nodes;
        let mut made: Vec<[TaskId; 2]> = Vec::with_capacity(nodes.len());
        // If queues take ready nodes, the CPUs themselves are the queues.
        let one_queue = !self.overlap && self.graph.queues == Queues::AsReady;
        // The latest node of each queue, and the latest collective.
        let (mut last, mut collective): ([Option<usize>; 2], Option<usize>) = ([None, None], None);
        for (number, node) in nodes.iter().enumerate() {
            let computes = usize::from(node.work.is_compute());
            let computed = || Task::calc(rounded(seconds(class, number) * TICKS_PER_SECOND));
            // If one CPU serves both, compute has a separate task for its begin, as sends have, so that the CPU takes
            // both in the order of their begins.
            let has_begin = computes == 0 || one_queue;
            let begin = b.task(if has_begin { Task::calc(0).on(COMMUNICATES, 0) } else { computed().on(COMPUTES, 0) });
            if computes == 0 || !one_queue {
                tasks.watch.push(begin);
            }
            for before in self.waits(node, last, nodes) {
                b.requires(begin, made[before][1]);
            }
            for &before in &node.begun {
                b.irequires(begin, made[before as usize][0]);
            }
            let is_collective = computes == 0 && !node.work.is_message();
            if is_collective
                && self.graph.queues == Queues::AsReady
                && let Some(before) = collective.replace(number)
            {
                b.requires(begin, made[before][1]);
            }
            // A node that waits for the start of a send waits for the task that posts the send.
            let mut started = begin;
            let end = match (node.work, occurrences[number]) {
                (Work::Permute { bytes, receivers }, Some(occurrence)) => {
                    self.permute(b, rank, bytes, receivers, self.tags[&occurrence].1, begin)
                }
                (Work::Collective(_), Some(occurrence)) => self.collective(b, rank, self.tags[&occurrence], begin),
                (Work::Send { to, bytes, tag }, _) => {
                    let [sent, end] = message(b, Task::send(to, bytes, self.of_pairs[&tag]), begin);
                    tasks.leaving.push(sent);
                    started = sent;
                    end
                }
                (Work::Receive { from, bytes, tag }, _) => {
                    message(b, Task::receive(from, bytes, self.of_pairs[&tag]), begin)[1]
                }
                (Work::Compute(_), _) if one_queue => after(b, computed(), begin),
                _ => begin,
            };
            if computes == 0 || one_queue {
                tasks.watch.push(end);
            }
            made.push([started, end]);
            last[computes] = Some(number);
        }
    }

    /// Returns the nodes whose ends a node must wait for: the nodes in [`WorkNode::after`] and, if the queue works in
    /// program order, the node before it in the queue. Nodes that end before other returned nodes are left out.
    fn waits(&self, node: &WorkNode, last: [Option<usize>; 2], nodes: &[WorkNode]) -> Vec<usize> {
        let named = node.after.iter().map(|&before| before as usize);
        if self.graph.queues == Queues::AsReady {
            return named.collect();
        }
        if !self.overlap {
            return last.into_iter().flatten().collect();
        }
        // With one queue, the last of the nodes ends last.
        let computes = node.work.is_compute();
        let other = named.filter(|&before| nodes[before].work.is_compute() != computes).max();
        last[usize::from(computes)].into_iter().chain(other).collect()
    }

    /// Adds a rank's part of a collective after `begin`. Returns the task that ends last.
    fn collective(&self, b: &mut Builder, rank: u32, (row, tag): (usize, u32), begin: TaskId) -> TaskId {
        let of_row = self.made[row].iter().zip(&self.parts[row]);
        for (m, part) in of_row {
            if let Some((group, place)) = m.chosen.groups.of(rank) {
                let all = among(group, m);
                let among = Among { ranks: Some(&all), tag, cpu: COMMUNICATES, ..Among::default() };
                return part.append(b, NodeId(place), &among, begin);
            }
        }
        nothing(b, begin)
    }

    fn permute(&self, b: &mut Builder, rank: u32, bytes: u64, table: u32, tag: u32, begin: TaskId) -> TaskId {
        let receives = self.senders[table as usize][rank as usize].iter().map(|&from| Task::receive(from, bytes, tag));
        let tables = self.graph.receivers[table as usize].iter().map(|to| to[rank as usize]);
        let sends = tables.filter(|&to| to != rank).map(|to| Task::send(to, bytes, tag));
        let all: Vec<TaskId> = receives.chain(sends).map(|task| b.task(task.on(COMMUNICATES, 0))).collect();
        let launched = if self.launch == 0 { begin } else { after(b, Task::calc(self.launch), begin) };
        let end = nothing(b, launched);
        for task in all {
            b.requires(task, launched);
            b.requires(end, task);
        }
        end
    }

    /// Adds a switch with its parts of all collectives.
    fn switch(&self, b: &mut Builder, (place, engines): (u32, u8), switches: &[u32], order: &[(usize, u32)]) {
        let own = self.graph.ranks + narrow::<u32>(switches.partition_point(|&other| other < place));
        for &(row, tag) in order {
            for (m, part) in self.made[row].iter().zip(&self.parts[row]) {
                let Some(at) = m.switches.iter().position(|&switch| switch == own) else { continue };
                let group = m.chosen.groups.group(0);
                let all = among(group, m);
                let among = Among { ranks: Some(&all), tag, engines, ..Among::default() };
                let begin = b.task(Task::calc(0));
                part.append(b, NodeId(narrow(group.len() + at)), &among, begin);
            }
        }
    }
}

/// Returns a group's collective as a part of the task graph. `switches` holds the places of all switches.
fn of_made<'a>(made: &'a Made<'_>, on: &Scheduled, switches: &[u32]) -> Result<Subgraph<'a>, TaskError> {
    let part = Subgraph::new(&made.proven, on.charges)?;
    if made.switches.is_empty() {
        return Ok(part);
    }
    let place = |rank: &u32| match rank.checked_sub(on.graph.ranks) {
        Some(switch) => switches[switch as usize],
        None => on.places[*rank as usize],
    };
    let places: Vec<u32> = among(made.chosen.groups.group(0), made).iter().map(place).collect();
    Ok(part.in_switches(on.computing, &places))
}

/// Returns, for each node of a group's schedule, its rank in the task graph.
fn among<'a>(group: &'a [u32], made: &Made<'_>) -> std::borrow::Cow<'a, [u32]> {
    if made.switches.is_empty() { group.into() } else { [group, &made.switches].concat().into() }
}

/// Adds a send or a receive of a message between a pair. Returns its task, and a task that follows it at once.
fn message(b: &mut Builder, task: Task, begin: TaskId) -> [TaskId; 2] {
    let task = after(b, task, begin);
    [task, nothing(b, task)]
}

/// Adds a task without work after another task.
fn nothing(b: &mut Builder, before: TaskId) -> TaskId {
    after(b, Task::calc(0), before)
}

/// Adds a task on the communicating CPU after another task.
fn after(b: &mut Builder, task: Task, before: TaskId) -> TaskId {
    let task = b.task(task.on(COMMUNICATES, 0));
    b.requires(task, before);
    task
}

impl ProgramTasks {
    /// Returns the indices of a node's watched tasks: its start and its end; for compute, both are its end.
    pub fn watched(&self, rank: u32, class: usize, node: usize, is_compute: bool) -> [usize; 2] {
        let at = self.first[rank as usize][0] + self.offsets[class][node];
        [at, if is_compute { at } else { at + 1 }]
    }

    /// Returns the index in [`Self::leaving`] of the first send of a rank.
    pub fn first_leaving(&self, rank: u32) -> usize {
        self.first[rank as usize][1]
    }

    /// Returns the ticks for which a node computes.
    pub fn ticks(&self, rank: u32, class: usize, node: usize) -> u64 {
        self.graph.task(self.watch[self.watched(rank, class, node, true)[0]]).amount
    }
}
