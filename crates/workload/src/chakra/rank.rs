//! The trace of one rank.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use prost::Message;
use unisono_base::{excerpt, interrupt::poll, narrow};
use unisono_collective::Kind;

use super::{
    messages::{GlobalMetadata, Node, frame, kind},
    order::order,
};
use crate::{
    Compute,
    error::{Place, Wrong},
};

/// Traces of more nodes, and larger traces, are refused.
const MOST_NODES: usize = 1 << 20;
const MOST_BYTES: u64 = 1 << 28;

/// What a node does; a collective names its process group.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    Compute(Compute),
    /// The bytes of the input.
    Collective {
        kind: Kind,
        bytes: u64,
        group: Option<String>,
        root: u32,
    },
}

/// A node that takes time, and the earlier ones that it waits for.
#[derive(Clone, PartialEq, Debug)]
pub struct Timed {
    pub id: u64,
    pub name: String,
    pub step: Step,
    pub after: Vec<u32>,
}

/// The nodes of a rank that take time, and the number of those of unknown kinds.
pub struct RankTrace {
    pub nodes: Vec<Timed>,
    pub unknown: Vec<String>,
}

/// Reads a trace.
pub fn read(bytes: &[u8], rank: u32, strict: bool) -> Result<RankTrace, Wrong> {
    let wrong = |message: String| Wrong { place: Place::Rank(rank), message };
    let unpacked = unpacked(bytes).map_err(wrong)?;
    let nodes = nodes(unpacked.as_deref().unwrap_or(bytes)).map_err(wrong)?;
    let of_node = |node: u64, message| Wrong { place: Place::Node { rank, node }, message };
    let (order, before) = order(&nodes).map_err(|e| of_node(e.node, e.reason))?;
    let mut trace = RankTrace { nodes: Vec::new(), unknown: Vec::new() };
    // Of each node of the file: the last compute and the last communication that it stands for, as numbers plus 1.
    let mut needs = vec![[0_u32; 2]; nodes.len()];
    for number in order {
        poll();
        let node = &nodes[number];
        let all = before[number].iter().map(|&n| needs[n]);
        let waits = all.fold([0; 2], |all, one| [all[0].max(one[0]), all[1].max(one[1])]);
        let step = step(node).map_err(|message| of_node(node.id, message))?;
        let step = match step {
            Some(step) => step,
            None => {
                if !is_known(node.kind) {
                    let name = format!("node type {}", node.kind);
                    if strict {
                        return Err(of_node(node.id, format!("{name} is not known; without --strict it is counted")));
                    }
                    trace.unknown.push(name);
                }
                needs[number] = waits;
                continue;
            }
        };
        let after = waits.into_iter().filter_map(|n| n.checked_sub(1)).collect();
        let is_compute = matches!(step, Step::Compute(_));
        trace.nodes.push(Timed { id: node.id, name: node.name.clone(), step, after });
        let done = narrow(trace.nodes.len());
        needs[number] = if is_compute { [done, 0] } else { [0, done] };
    }
    Ok(trace)
}

/// The contents of a compressed file; `None` of another one.
fn unpacked(bytes: &[u8]) -> Result<Option<Vec<u8>>, String> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(None);
    }
    let mut unpacked = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(MOST_BYTES + 1).read_to_end(&mut unpacked);
    read.map_err(|_| "the compressed file is damaged or cut off".to_owned())?;
    if unpacked.len() as u64 > MOST_BYTES {
        return Err(format!("the trace has more than {MOST_BYTES} bytes"));
    }
    Ok(Some(unpacked))
}

fn nodes(bytes: &[u8]) -> Result<Vec<Node>, String> {
    let (head, mut rest) = frame(bytes)?;
    GlobalMetadata::decode(head).map_err(|_| "the first message is not the head of a Chakra trace".to_owned())?;
    let mut nodes = Vec::new();
    while !rest.is_empty() {
        poll();
        let (message, after) = frame(rest)?;
        let node = Node::decode(message);
        nodes.push(node.map_err(|_| format!("message {} is not a node of a Chakra trace", nodes.len() + 1))?);
        if nodes.len() > MOST_NODES {
            return Err(format!("the trace has more than {MOST_NODES} nodes"));
        }
        rest = after;
    }
    Ok(nodes)
}

fn is_known(of: i32) -> bool {
    (kind::INVALID..=kind::COLLECTIVE).contains(&of)
}

/// What a node does on the device; `None` if it takes no time.
#[expect(clippy::cast_precision_loss, reason = "counts of operations and bytes are floating point")]
fn step(node: &Node) -> Result<Option<Step>, String> {
    if node.is_set("is_cpu_op") {
        return Ok(None);
    }
    let number = |name| node.number(name).map(|number| number.unwrap_or(0));
    Ok(match node.kind {
        kind::COMPUTE => {
            let (operations, bytes) = (number("num_ops")? as f64, number("tensor_size")? as f64);
            let measured = Compute::Measured { seconds: node.duration_micros as f64 * 1e-6 };
            let is_counted = node.duration_micros == 0 && operations + bytes > 0.0;
            Some(Step::Compute(if is_counted { Compute::Counted { operations, bytes } } else { measured }))
        }
        kind::LOAD | kind::STORE => {
            Some(Step::Compute(Compute::Counted { operations: 0.0, bytes: number("tensor_size")? as f64 }))
        }
        kind::SEND | kind::RECEIVE => {
            return Err(format!(
                "'{}' is a message between two ranks; accepted are traces of compute and collectives",
                excerpt(&node.name)
            ));
        }
        kind::COLLECTIVE => {
            let number_of = node.number("comm_type")?.ok_or("a collective has no comm_type")?;
            let kind = collective(number_of).ok_or_else(|| format!("comm_type is {number_of}; accepted are 0 to 9"))?;
            let bytes = node.number("comm_size")?;
            let bytes = if kind == Kind::Barrier { 0 } else { bytes.ok_or("a collective has no comm_size")? };
            let group = node.text("pg_name").filter(|name| !name.is_empty());
            let root = u32::try_from(number("root")?).map_err(|_| "root is not a rank".to_owned())?;
            Some(Step::Collective { kind, bytes, group, root })
        }
        _ => None,
    })
}

/// The kinds of collectives by their numbers in traces.
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
