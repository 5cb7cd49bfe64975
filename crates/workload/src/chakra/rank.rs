//! The reader of the trace of one rank.

use prost::Message;
use rustc_hash::FxHashMap;
use unisono_base::{excerpt, interrupt::poll, narrow};
use unisono_collective::Kind;

use super::{
    json,
    messages::{BEGUN, GlobalMetadata, MOST_NODES, Node, REDUCES, SECONDS, frame, kind},
    order::order,
};
use crate::{
    Compute,
    error::{Place, Wrong},
    packed::unpacked,
};

/// The maximum number of bytes of a node. An attribute of two bytes takes fifty times as many in memory.
const MOST_NODE_BYTES: usize = 1 << 22;
/// The maximum number of dependencies in a file. The same limit holds for the dependencies that result when nodes that
/// take no time are removed, and their dependencies are passed on to the nodes that depend on them.
const MOST_DEPENDENCIES: usize = 1 << 24;

/// The operation of a node on the device.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    Compute(Compute),
    /// `bytes` is the size of the input; without `group` all ranks take part.
    Collective {
        kind: Kind,
        bytes: u64,
        group: Option<String>,
        root: u32,
    },
    Send {
        to: u32,
        bytes: u64,
        tag: u32,
    },
    Receive {
        from: u32,
        bytes: u64,
        tag: u32,
    },
}

impl Step {
    pub fn is_message(&self) -> bool {
        matches!(self, Self::Send { .. } | Self::Receive { .. })
    }
}

/// A node that takes time. `after` and `begun` are the indices of earlier nodes of the rank that take time; this node
/// waits for their end or for their start.
#[derive(Clone, PartialEq, Debug)]
pub struct TimedNode {
    pub id: u64,
    pub name: String,
    pub step: Step,
    pub after: Vec<u32>,
    pub begun: Vec<u32>,
}

/// The nodes of a rank that take time, in execution order, and a name for each node whose operation is unknown.
pub struct RankTrace {
    pub nodes: Vec<TimedNode>,
    pub unknown: Vec<String>,
    pub ranks: Option<u32>,
}

/// The dependencies of a node that are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The dependencies on the last compute and the last communication. They suffice if queues work in program order.
    Last,
    All,
}

pub fn read(bytes: &[u8], rank: u32, kept: Kept, strict: bool) -> Result<RankTrace, Wrong> {
    let wrong = |message: String| Wrong { place: Place::Rank(rank), message };
    let unpacked = unpacked(bytes).map_err(wrong)?;
    let (ranks, nodes) = nodes(&unpacked).map_err(wrong)?;
    let of_node = |node: u64, message| Wrong { place: Place::Node { rank, node }, message };
    let (order, before) = order(&nodes).map_err(|e| of_node(e.node, e.reason))?;
    let mut trace = RankTrace { nodes: Vec::new(), unknown: Vec::new(), ranks };
    // For each node of the file, the timed nodes for which its successors must wait.
    let mut needs: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
    let mut numbers: FxHashMap<u64, u32> = FxHashMap::default();
    let mut kept_all = 0;
    for number in order {
        poll();
        let node = &nodes[number];
        let mut waits: Vec<u32> = before[number].iter().flat_map(|&n| &needs[n]).copied().collect();
        waits.sort_unstable();
        waits.dedup();
        if kept == Kept::Last {
            waits = last_of_queues(&waits, &trace.nodes);
        }
        kept_all += waits.len();
        if kept_all > MOST_DEPENDENCIES {
            return Err(of_node(node.id, format!("the trace has more than {MOST_DEPENDENCIES} dependencies")));
        }
        let step = step(node, rank).map_err(|message| of_node(node.id, message))?;
        let step = match step {
            Some(step) => step,
            None => {
                if let Some(name) = unknown(node).map_err(|message| of_node(node.id, message))? {
                    if strict {
                        return Err(of_node(node.id, format!("{name} is not known; without --strict it is counted")));
                    }
                    trace.unknown.push(name);
                }
                needs[number] = waits;
                continue;
            }
        };
        let begun = begun(node, &numbers).map_err(|message| of_node(node.id, message))?;
        let done = narrow(trace.nodes.len());
        numbers.insert(node.id, done);
        trace.nodes.push(TimedNode { id: node.id, name: node.name.clone(), step, after: waits, begun });
        needs[number] = vec![done];
    }
    Ok(trace)
}

/// Returns the last compute and the last communication of the given nodes, which are ascending.
fn last_of_queues(nodes: &[u32], timed: &[TimedNode]) -> Vec<u32> {
    let last = |computes: bool| {
        let of_queue = |&&n: &&u32| matches!(timed[n as usize].step, Step::Compute(_)) == computes;
        nodes.iter().rev().find(of_queue).copied()
    };
    [last(true), last(false)].into_iter().flatten().collect()
}

/// Returns the earlier nodes that must have begun before a node. [`super::write`] writes them for schedules.
fn begun(node: &Node, numbers: &FxHashMap<u64, u32>) -> Result<Vec<u32>, String> {
    let Some(text) = node.text(BEGUN)? else { return Ok(Vec::new()) };
    let number = |id: &str| {
        let found = id.parse().ok().and_then(|id: u64| numbers.get(&id).copied());
        found
            .ok_or_else(|| format!("{BEGUN} names '{}'; accepted are ids of earlier nodes that take time", excerpt(id)))
    };
    text.split_whitespace().map(number).collect()
}

/// Returns the number of ranks that a file states, and its nodes.
fn nodes(bytes: &[u8]) -> Result<(Option<u32>, Vec<Node>), String> {
    if json::is_it(bytes) {
        return Ok((None, json::nodes(bytes)?));
    }
    let (head, mut rest) = frame(bytes)?;
    let head =
        GlobalMetadata::decode(head).map_err(|_| "the first message is not the head of a Chakra trace".to_owned())?;
    let mut nodes: Vec<Node> = Vec::new();
    let mut dependencies = 0;
    while !rest.is_empty() {
        poll();
        let (message, after) = frame(rest)?;
        let number = nodes.len() + 1;
        if message.len() > MOST_NODE_BYTES {
            return Err(format!(
                "message {number} has {} bytes; accepted are nodes of at most {MOST_NODE_BYTES}",
                message.len()
            ));
        }
        let node = Node::decode(message);
        let node = node.map_err(|_| format!("message {number} is not a node of a Chakra trace"))?.without_unread();
        dependencies += node.ctrl_deps.len() + node.data_deps.len();
        if dependencies > MOST_DEPENDENCIES {
            return Err(format!("the trace has more than {MOST_DEPENDENCIES} dependencies"));
        }
        nodes.push(node);
        if nodes.len() > MOST_NODES {
            return Err(format!("the trace has more than {MOST_NODES} nodes"));
        }
        rest = after;
    }
    Ok((head.ranks(), nodes))
}

/// Returns the name of the operation of a node that has work on the device for which there is no [`step`]; `None` for
/// other nodes.
fn unknown(node: &Node) -> Result<Option<String>, String> {
    if !(kind::INVALID..=kind::COLLECTIVE).contains(&node.kind) {
        return Ok(Some(format!("node type {}", node.kind)));
    }
    if node.kind != kind::COLLECTIVE || node.is_set("is_cpu_op")? {
        return Ok(None);
    }
    let name = match node.number("comm_type")? {
        None => "collective without comm_type",
        Some(_) => "collective in some dimensions of involved_dim",
    };
    Ok(Some(name.to_owned()))
}

/// Returns the operation of a node on the device; `None` for a node without work on the device.
#[expect(clippy::cast_precision_loss, reason = "counts of operations and bytes are floating point")]
fn step(node: &Node, rank: u32) -> Result<Option<Step>, String> {
    if node.is_set("is_cpu_op")? {
        return Ok(None);
    }
    let number = |name| node.number(name).map(|number| number.unwrap_or(0));
    Ok(match node.kind {
        kind::COMPUTE => {
            let (operations, bytes) = (number("num_ops")? as f64, number("tensor_size")? as f64);
            let exact = node.seconds(SECONDS)?;
            let measured = Compute::Measured { seconds: exact.unwrap_or(node.duration_micros as f64 * 1e-6) };
            let is_counted = exact.is_none() && node.duration_micros == 0 && operations + bytes > 0.0;
            if node.is_set(REDUCES)? {
                let (bytes, operations) = (number("tensor_size")?, number("num_ops")?);
                return Ok(Some(Step::Compute(Compute::Reduced { bytes, operations })));
            }
            Some(Step::Compute(if is_counted { Compute::Counted { operations, bytes } } else { measured }))
        }
        kind::LOAD | kind::STORE => {
            Some(Step::Compute(Compute::Counted { operations: 0.0, bytes: number("tensor_size")? as f64 }))
        }
        kind::SEND => {
            let (to, bytes, tag) = message(node, rank, ["comm_dst", "comm_src"])?;
            Some(Step::Send { to, bytes, tag })
        }
        kind::RECEIVE => {
            let (from, bytes, tag) = message(node, rank, ["comm_src", "comm_dst"])?;
            Some(Step::Receive { from, bytes, tag })
        }
        kind::COLLECTIVE => {
            let Some(number_of) = node.number("comm_type")? else { return Ok(None) };
            let kind = collective(number_of).ok_or_else(|| format!("comm_type is {number_of}; accepted are 0 to 9"))?;
            if node.is_limited()? {
                return Ok(None);
            }
            let bytes = node.number("comm_size")?;
            let bytes = if kind == Kind::Barrier { 0 } else { bytes.ok_or("a collective has no comm_size")? };
            let group = node.text("pg_name")?.filter(|name| !name.is_empty());
            let root = u32::try_from(number("root")?).map_err(|_| "root is not a rank".to_owned())?;
            Some(Step::Collective { kind, bytes, group, root })
        }
        _ => None,
    })
}

/// Returns the other rank of a message, its bytes and its tag. `names` are the attributes with the other rank and with
/// this rank.
fn message(node: &Node, rank: u32, names: [&str; 2]) -> Result<(u32, u64, u32), String> {
    let [other, own] = names;
    let needed = |name| node.number(name)?.ok_or_else(|| format!("a message has no {name}"));
    let narrow = |name: &str, number: u64| u32::try_from(number).map_err(|_| format!("{name} is {number}"));
    if let Some(found) = node.number(own)?.filter(|&found| found != u64::from(rank)) {
        return Err(format!("{own} is {found} in the trace of rank {rank}; the traces are mixed up"));
    }
    let tag = node.number("comm_tag")?.unwrap_or(0);
    Ok((narrow(other, needed(other)?)?, needed("comm_size")?, narrow("comm_tag", tag)?))
}

/// The kinds of collectives, indexed by the numbers that traces use.
pub const COLLECTIVES: [Kind; 10] = [
    Kind::Allreduce,
    Kind::Reduce,
    Kind::Allgather,
    Kind::Gather,
    Kind::Scatter,
    Kind::Broadcast,
    Kind::Alltoall,
    Kind::ReduceScatter,
    Kind::ReduceScatter,
    Kind::Barrier,
];

fn collective(number: u64) -> Option<Kind> {
    COLLECTIVES.get(usize::try_from(number).ok()?).copied()
}
