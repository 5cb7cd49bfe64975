//! The writer of programs as Chakra traces, one file for each rank.

use std::collections::BTreeSet;

use unisono_collective::Kind;

use super::{
    messages::{BEGUN, GlobalMetadata, Node, REDUCES, SECONDS, Value, append, kind},
    rank::COLLECTIVES,
};
use crate::{Compute, Work, WorkNode, WorkloadGraph};

/// Returns the name and the bytes of each file. Groups are named by indices, `SET-GROUP`. A rank without a group has
/// the name `SET-of-RANK`.
///
/// # Errors
/// Returns an error for a permutation, because traces have only messages between pairs, or a collective or a number
/// that traces cannot state.
pub fn write(graph: &WorkloadGraph) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut files = Vec::with_capacity(graph.ranks as usize);
    for class in &graph.classes {
        let before = done_before(&class.nodes);
        for &rank in &class.ranks {
            let mut bytes = Vec::new();
            append(&mut bytes, &GlobalMetadata::of_ranks(graph.ranks));
            for (id, node) in (0..).zip(&class.nodes) {
                let data_deps = node.after.iter().map(|&before| u64::from(before)).collect();
                let made = Node { id, name: node.name.clone(), data_deps, ..Node::default() };
                let made = with_begun(made, &node.begun, &before);
                append(&mut bytes, &filled(graph, rank, &node.work, made)?);
            }
            files.push((format!("{}.{rank}.et", graph.name), bytes));
        }
    }
    files.sort_by_key(|(name, _)| (name.len(), name.clone()));
    Ok(files)
}

/// Adds the nodes that must have begun, for which the format has no field. For other readers, adds the dependencies of
/// those nodes as control dependencies.
fn with_begun(node: Node, begun: &[u32], before: &[BTreeSet<u32>]) -> Node {
    if begun.is_empty() {
        return node;
    }
    let ids: Vec<String> = begun.iter().map(u32::to_string).collect();
    let waits: BTreeSet<u32> = begun.iter().flat_map(|&other| &before[other as usize]).copied().collect();
    let ctrl_deps = waits.into_iter().map(u64::from).filter(|id| !node.data_deps.contains(id)).collect();
    Node { ctrl_deps, ..node }.with(BEGUN, Value::String(ids.join(" ")))
}

/// Returns, for each node, the nodes that must have ended when the node begins. Nodes that other listed nodes imply are
/// omitted.
fn done_before(nodes: &[WorkNode]) -> Vec<BTreeSet<u32>> {
    let mut before: Vec<BTreeSet<u32>> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let begun = node.begun.iter().flat_map(|&other| &before[other as usize]);
        let all = node.after.iter().chain(begun).copied().collect();
        before.push(all);
    }
    before
}

fn filled(graph: &WorkloadGraph, rank: u32, work: &Work, node: Node) -> Result<Node, String> {
    let node = node.with("is_cpu_op", Value::Bool(false));
    Ok(match work {
        Work::Compute(Compute::Measured { seconds }) => {
            // The format counts whole microseconds.
            Node { kind: kind::COMPUTE, duration_micros: unisono_base::rounded(seconds * 1e6), ..node }
                .with(SECONDS, Value::Double(*seconds))
        }
        Work::Compute(Compute::Counted { operations, bytes }) => {
            let count = |number: f64| i64::try_from(unisono_base::rounded(number)).unwrap_or(i64::MAX);
            Node { kind: kind::COMPUTE, ..node }
                .with("num_ops", Value::Int64(count(*operations)))
                .with("tensor_size", Value::Uint64(unisono_base::rounded(*bytes)))
        }
        &Work::Compute(Compute::Reduced { bytes, operations }) => Node { kind: kind::COMPUTE, ..node }
            .with("num_ops", Value::Int64(i64::try_from(operations).unwrap_or(i64::MAX)))
            .with("tensor_size", Value::Uint64(bytes))
            .with(REDUCES, Value::Bool(true)),
        Work::Collective(c) => {
            let number = COLLECTIVES.iter().position(|&kind| kind == c.kind);
            let number = number.ok_or_else(|| format!("Chakra traces have no {}", c.kind))?;
            let groups = &graph.groups[c.groups as usize];
            let place = groups.number_of(rank);
            let size = place.map_or(1, |place| groups.group(place).len() as u64);
            let input = match c.kind {
                Kind::ReduceScatter | Kind::Alltoall | Kind::Scatter => c.bytes.saturating_mul(size),
                _ => c.bytes,
            };
            let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            let group =
                place.map_or_else(|| format!("{}-of-{rank}", c.groups), |place| format!("{}-{place}", c.groups));
            Node { kind: kind::COLLECTIVE, ..node }
                .with("comm_type", Value::Int64(signed(number as u64)))
                .with("comm_size", Value::Int64(signed(input)))
                .with("root", Value::Int32(i32::try_from(c.root).unwrap_or(i32::MAX)))
                .with("pg_name", Value::String(group))
        }
        &Work::Send { to, bytes, tag } => message(Node { kind: kind::SEND, ..node }, (rank, to), bytes, tag)?,
        &Work::Receive { from, bytes, tag } => message(Node { kind: kind::RECEIVE, ..node }, (from, rank), bytes, tag)?,
        Work::Permute { .. } => {
            return Err("a permutation is messages between pairs; Chakra traces of it are not written".to_owned());
        }
    })
}

fn message(node: Node, (from, to): (u32, u32), bytes: u64, tag: u32) -> Result<Node, String> {
    let signed = |name: &str, number: u32| {
        let held =
            i32::try_from(number).map_err(|_| format!("{name} is {number}; Chakra traces hold at most {}", i32::MAX));
        held.map(Value::Int32)
    };
    let size = i64::try_from(bytes).map_err(|_| format!("a message has {bytes} bytes; Chakra traces hold 2^63 - 1"))?;
    let node = node.with("comm_src", signed("comm_src", from)?).with("comm_dst", signed("comm_dst", to)?);
    Ok(node.with("comm_tag", signed("comm_tag", tag)?).with("comm_size", Value::Int64(size)))
}
