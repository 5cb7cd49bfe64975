//! A program of tasks on arrays, with the communication that discovery finds in it, as a program for a number of ranks.
//!
//! The commands of a rank become nodes: a kernel becomes compute, pushes and awaited pushes become messages between
//! pairs, and an operation becomes a collective of its participants. A command that waits for another command waits for
//! its nodes. Collectives that neither a plan nor a library performs become messages. Parts of unequal lengths count as
//! the largest.
//!
//! A kernel performs the operations that its task states for each point of its range. It reads or writes the regions of
//! its accesses; the regions of updates count twice. A fence takes no time. It waits for all earlier nodes of its rank,
//! and all later nodes of the rank wait for it, because the program waits for the contents of a buffer.

use std::collections::{BTreeMap, HashMap};

use rustc_hash::FxHashMap;
use serde::{Deserialize, de::IgnoredAny};
use unisono_base::{
    BufferId, CommandId,
    interrupt::check,
    limits::{spend, take},
    narrow,
};
use unisono_collective::Kind;
use unisono_discover::{
    Action, Command, DiscoverError, Discovery, ListedTask, Mode, Operation, Options, Program, Rules, Submitted,
    TaskList, What,
};
use unisono_workload::{Collected, Compute, Groups, Queues, RankClass, Work, WorkNode, WorkloadGraph};

/// The bytes of memory of a node, with its name and the nodes that it waits for.
const BYTES_EACH: u128 = 256;
/// The elementary steps to make a node.
const STEPS_EACH: u64 = 512;
const NODES: &str = "the program of the tasks";

/// Returns true if a file is a program of tasks in JSON.
pub fn is_program_of_tasks(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only the keys are looked at")]
    struct Keys {
        buffers: IgnoredAny,
        tasks: IgnoredAny,
    }
    bytes.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<Keys>(bytes).is_ok()
}

/// A program of tasks, and the number of ranks that run it.
pub struct TaskProgram<'a> {
    pub name: &'a str,
    pub tasks: &'a TaskList,
    pub ranks: u32,
    /// The buffers that only messages reduce, with the extra bytes sent with each element.
    pub reduced: &'a HashMap<u32, u64>,
    /// True if a task without stated operations is an error.
    pub strict: bool,
}

/// Finds the communication among ranks of a program of tasks in JSON ([`TaskProgram::discovered`]).
///
/// # Errors
/// Returns an error for an invalid program or too many nodes, and, with `strict`, for a task without operations.
pub fn discovered(text: &str, name: &str, ranks: u32, strict: bool) -> Result<WorkloadGraph, DiscoverError> {
    let tasks = Program::parse(text)?.list()?;
    TaskProgram { name, tasks: &tasks, ranks, reduced: &HashMap::new(), strict }.discovered()
}

impl TaskProgram<'_> {
    /// Finds the communication of the tasks.
    ///
    /// # Errors
    /// Returns an error if discovery refuses a task, there are too many nodes, or with `strict` a task has no
    /// operations.
    pub fn discovered(&self) -> Result<WorkloadGraph, DiscoverError> {
        let Self { tasks, ranks, .. } = *self;
        let mut groups = GroupSets { ranks, sets: Vec::new(), known: FxHashMap::default() };
        let (mut classes, mut unknown) = (Vec::new(), BTreeMap::new());
        for rank in 0..ranks {
            check();
            let options = Options { rows: tasks.rows, ..Options::commands(ranks, rank, Rules::Full) };
            let mut discovery = Discovery::new(options)?;
            tasks.submit(&mut discovery)?;
            let commands = discovery.take_commands();
            if rank == 0 {
                let size = commands.len() as u128 * u128::from(ranks);
                take(NODES, BYTES_EACH * size);
                spend(NODES, STEPS_EACH * u64::try_from(size).unwrap_or(u64::MAX / STEPS_EACH));
            }
            let mut nodes =
                Nodes { rank, program: self, discovery: &discovery, made: Vec::new(), tags: FxHashMap::default() };
            nodes.all(&commands, &mut groups, &mut unknown)?;
            classes.push(RankClass { ranks: vec![rank], nodes: nodes.made });
        }
        if self.strict
            && let Some((task, _)) = unknown.first_key_value()
        {
            let message = format!(
                "task '{task}' states no operations; with strict every task states those of a point of its range"
            );
            return Err(DiscoverError::Input(message));
        }
        Ok(WorkloadGraph {
            name: self.name.to_owned(),
            format: "tasks",
            ranks,
            groups: groups.sets,
            classes,
            queues: Queues::AsReady,
            unknown,
            ..WorkloadGraph::default()
        })
    }
}

/// The distinct lists of ranks that perform collectives, each stored once.
struct GroupSets {
    ranks: u32,
    sets: Vec<Groups>,
    known: FxHashMap<Vec<u32>, u32>,
}

impl GroupSets {
    fn number(&mut self, list: Vec<u32>) -> u32 {
        let (ranks, sets) = (self.ranks, &mut self.sets);
        *self.known.entry(list).or_insert_with_key(|list| {
            sets.push(Groups::new(ranks, [list.clone()]).expect("ranks that take part are distinct ranks"));
            narrow(sets.len() - 1)
        })
    }
}

/// A builder of the nodes of one rank in a workload graph, from the commands of the rank.
struct Nodes<'a> {
    rank: u32,
    program: &'a TaskProgram<'a>,
    discovery: &'a Discovery,
    made: Vec<WorkNode>,
    /// For each sender and receiver, the number of messages so far.
    tags: FxHashMap<(u32, u32), u32>,
}

impl Nodes<'_> {
    fn all(
        &mut self,
        commands: &[Command],
        groups: &mut GroupSets,
        unknown: &mut BTreeMap<String, u64>,
    ) -> Result<(), DiscoverError> {
        // For each command, its first node and the node after its last.
        let mut of: FxHashMap<CommandId, [u32; 2]> = FxHashMap::default();
        // For each node, the first node that waits for it.
        let mut awaited: Vec<u32> = Vec::new();
        // The node of the latest fence.
        let mut fence: Option<u32> = None;
        for command in commands {
            let first = narrow::<u32>(self.made.len());
            let named = command.waits.on.iter().filter_map(|id| of.get(id)).flat_map(|&[begin, end]| begin..end);
            let mut after: Vec<u32> = named.collect();
            if let Some(until) = command.waits.all_until.and_then(|id| of.get(&id)).map(|range| range[1]) {
                // A node that another node of the list waits for ends earlier, so it need not be listed.
                after.extend((0..until).filter(|&node| awaited[node as usize] >= until));
            }
            let ends_fence = matches!(command.action, Action::Execute { .. })
                && matches!(self.program.tasks.task(command.task).submitted, Submitted::Fence { .. });
            if ends_fence {
                after.extend((0..first).filter(|&node| awaited[node as usize] >= first));
            }
            after.extend(fence);
            after.sort_unstable();
            after.dedup();
            for &before in &after {
                awaited[before as usize] = awaited[before as usize].min(first);
            }
            let name = self.discovery.task_name(command.task).to_owned();
            for work in self.works(command, groups, unknown)? {
                self.made.push(WorkNode::new(&*name, work, after.clone()));
                awaited.push(u32::MAX);
            }
            of.insert(command.id, [first, narrow(self.made.len())]);
            if ends_fence {
                fence = Some(first);
            }
        }
        Ok(())
    }

    fn element_bytes(&self, buffer: BufferId) -> u64 {
        self.discovery.buffers().nth(buffer.index()).map_or(1, |buffer| buffer.element_bytes)
    }

    fn works(
        &mut self,
        command: &Command,
        groups: &mut GroupSets,
        unknown: &mut BTreeMap<String, u64>,
    ) -> Result<Vec<Work>, DiscoverError> {
        Ok(match &command.action {
            Action::Push { buffer, to, region, .. } => {
                vec![self.send(*to, region.volume().saturating_mul(self.element_bytes(*buffer)))]
            }
            Action::AwaitPush { buffer, from, .. } => {
                let each = self.element_bytes(*buffer);
                from.iter().map(|(from, region)| self.receive(*from, region.volume().saturating_mul(each))).collect()
            }
            Action::Collective { buffer, operation, .. } => self.operation(operation, *buffer, groups)?,
            Action::Execute { chunk } => vec![self.kernel(command, chunk.volume(), unknown)],
        })
    }

    fn tag(&mut self, from: u32, to: u32) -> u32 {
        let tag = self.tags.entry((from, to)).or_default();
        *tag += 1;
        *tag - 1
    }

    fn send(&mut self, to: u32, bytes: u64) -> Work {
        Work::Send { to, bytes, tag: self.tag(self.rank, to) }
    }

    fn receive(&mut self, from: u32, bytes: u64) -> Work {
        Work::Receive { from, bytes, tag: self.tag(from, self.rank) }
    }

    fn operation(
        &mut self,
        operation: &Operation,
        buffer: BufferId,
        groups: &mut GroupSets,
    ) -> Result<Vec<Work>, DiscoverError> {
        let mut each = self.element_bytes(buffer);
        let what = What::of_operation(operation, self.discovery.sides(), each);
        let reduced = self.program.reduced.get(&buffer.0).filter(|_| operation.pattern.reduces());
        if what.by_messages || reduced.is_some() {
            each = each.saturating_add(reduced.copied().unwrap_or(0));
            let messages = what.direct().map_or_else(Vec::new, |direct| direct.messages());
            let mut works = Vec::new();
            for message in messages {
                let bytes = message.elements.saturating_mul(each);
                if message.from == self.rank {
                    works.push(self.send(message.to, bytes));
                } else if message.to == self.rank {
                    works.push(self.receive(message.from, bytes));
                }
            }
            return Ok(works);
        }
        let kind: Kind = operation.pattern.name().parse().map_err(|e| DiscoverError::Input(format!("{e}")))?;
        let list: Vec<u32> = what.participants.iter().collect();
        let root = what.root.map_or(0, |root| narrow(list.iter().take_while(|&&rank| rank < root).count()));
        let bytes = what.part.most.saturating_mul(each);
        let element_bytes = u32::try_from(each).unwrap_or(1);
        Ok(vec![Work::Collective(Collected { kind, bytes, element_bytes, root, groups: groups.number(list) })])
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of operations and bytes are floating point")]
    fn kernel(&self, command: &Command, points: u64, unknown: &mut BTreeMap<String, u64>) -> Work {
        let ListedTask { name, operations, submitted, .. } = self.program.tasks.task(command.task);
        let Submitted::Task { accesses, .. } = submitted else {
            return Work::Compute(Compute::Measured { seconds: 0.0 });
        };
        if operations.is_none() {
            *unknown.entry(name.clone()).or_default() += 1;
        }
        let views = self.discovery.views(command.task);
        let bytes = accesses.iter().zip(&views).map(|(access, view)| {
            let times = if access.mode == Mode::ReadWrite { 2.0 } else { 1.0 };
            view.volume() as f64 * self.element_bytes(access.buffer) as f64 * times
        });
        Work::Compute(Compute::Counted { operations: operations.unwrap_or(0.0) * points as f64, bytes: bytes.sum() })
    }
}
