//! Combines the traces of all ranks into one program.
//!
//! A process group has the ranks that a file of groups lists, or else the ranks whose traces name it. A collective
//! without a group is among all ranks. If all ranks execute the same nodes, without messages between pairs, they form
//! one class if the groups that they name at one node do not overlap, and these groups communicate concurrently.
//! Otherwise each rank is a class. Traces with messages between pairs are task graphs, whose nodes begin in the order
//! in which they become ready. The nodes of all other traces run in program order.

use std::collections::{BTreeMap, BTreeSet};

use unisono_base::{excerpt, narrow};
use unisono_collective::Kind;

use super::{
    comm_groups::{self, CommGroups},
    messages::{GlobalMetadata, frame},
    rank::{self, Kept, RankTrace, Step, TimedNode},
};
use crate::{
    Collected, Groups, Queues, RankClass, ReadError, SourceFile, Work, WorkNode, WorkloadGraph,
    error::{Place, Wrong},
    graph::{Distinct, rounded_up},
    packed::beginning,
    pairs::Unmatched,
};

/// The maximum number of nodes of all ranks together.
const MOST_NODES: usize = 1 << 22;
/// The largest accepted product of the number of ranks and the number of distinct sets of groups.
const MOST_PLACES: usize = 1 << 26;

/// Returns whether a file begins like a trace, with its head or the key of the JSON form, or is compressed and damaged.
pub fn is_it(bytes: &[u8]) -> bool {
    let is_head = |head: &[u8]| {
        // The head begins with the tag of the version, or of the first attribute.
        head.first().is_none_or(|tag| [0x0a, 0x12].contains(tag))
            && <GlobalMetadata as prost::Message>::decode(head).is_ok()
    };
    let begin = beginning(bytes);
    if super::json::is_it(&begin) {
        return true;
    }
    // A compressed file of which nothing can be unpacked is taken for a damaged trace.
    begin.is_empty() && !bytes.is_empty() || frame(&begin).is_ok_and(|(head, _)| is_head(head))
}

/// Reads the traces of all ranks. With `strict`, a node of an unknown kind is an error.
///
/// # Errors
/// Returns an error for a name without a rank, a rank that occurs twice or not at all, a damaged file, dependencies
/// without an order, messages that are sent but not received or the converse, ranks that wait for each other in a
/// cycle, or groups that do not fit together.
pub fn read(files: &[SourceFile], strict: bool) -> Result<WorkloadGraph, ReadError> {
    let mut by_rank: BTreeMap<u32, &SourceFile> = BTreeMap::new();
    for file in files.iter().filter(|file| !comm_groups::is_json(file)) {
        let rank = rank_of(&file.0).map_err(|wrong| wrong.of(&file.0))?;
        if let Some(other) = by_rank.insert(rank, file) {
            let message = format!("'{}' is a trace of this rank too; accepted is one a rank", excerpt(&other.0));
            return Err(Wrong { place: Place::Rank(rank), message }.of(&file.0));
        }
    }
    let ranks: u32 = narrow(by_rank.len());
    let missing = (0..ranks).find(|rank| !by_rank.contains_key(rank));
    let Some((_, first)) = by_rank.first_key_value() else {
        return Err(Wrong::file("there is no trace beside it").of(&files[0].0));
    };
    if let Some(missing) = missing {
        let message = format!("the trace of rank {missing} is missing; accepted are the traces of all ranks from 0 on");
        return Err(Wrong::file(message).of(&first.0));
    }
    let mut traces = traces(&by_rank, Kept::Last, strict)?;
    let is_message = |node: &TimedNode| node.step.is_message();
    let mut queues = Queues::InOrder;
    if traces.iter().any(|trace| trace.nodes.iter().any(is_message)) {
        queues = Queues::AsReady;
        traces = self::traces(&by_rank, Kept::All, strict)?;
    }
    let mut unknown = BTreeMap::new();
    for name in traces.iter().flat_map(|trace| &trace.unknown) {
        *unknown.entry(name.clone()).or_default() += 1;
    }
    known_roots(&traces).map_err(|(rank, wrong)| wrong.of(&by_rank[&rank].0))?;
    let group = |node: &TimedNode| match &node.step {
        Step::Collective { group, .. } => group.clone(),
        _ => None,
    };
    let named: BTreeSet<String> = traces.iter().flat_map(|trace| trace.nodes.iter().filter_map(group)).collect();
    let listed = comm_groups::read(files.iter().filter(|file| comm_groups::is_json(file)), ranks, &named)?;
    let members = match &listed {
        None => members(&traces),
        Some(listed) => {
            known_groups(&traces, listed).map_err(|(rank, wrong)| wrong.of(&by_rank[&rank].0))?;
            listed.ranks.clone()
        }
    };
    let mut program =
        Program { members, groups: Distinct::new(), numbers: BTreeMap::new(), rounded: BTreeSet::new(), traces };
    let classes = program.classes().map_err(|(rank, wrong)| wrong.of(&by_rank[&rank].0))?;
    let Program { traces, groups, rounded, .. } = program;
    let name = first.0.rsplit('/').next().unwrap_or_default().split('.').next().unwrap_or_default().to_owned();
    let graph = WorkloadGraph {
        name,
        format: "chakra",
        ranks,
        groups: groups.into_rows(),
        classes,
        queues,
        unknown,
        notes: rounded_up(&rounded).into_iter().collect(),
        ..WorkloadGraph::default()
    };
    let node_of = |rank: u32, node: usize| &traces[rank as usize].nodes[node];
    let file_and_node = |rank, node| (by_rank[&rank].0.as_str(), node_of(rank, node).id);
    graph
        .check_messages()
        .and_then(|()| graph.check_collectives(|rank, node| group_of(node_of(rank, node))))
        .and_then(|()| graph.check_circles(file_and_node))
        .map_err(|Unmatched { rank, node, message }| {
            let (file, node) = file_and_node(rank, node);
            Wrong { place: Place::Node { rank, node }, message }.of(file)
        })?;
    Ok(graph)
}

fn traces(by_rank: &BTreeMap<u32, &SourceFile>, kept: Kept, strict: bool) -> Result<Vec<RankTrace>, ReadError> {
    let mut traces: Vec<RankTrace> = Vec::with_capacity(by_rank.len());
    let mut total = 0;
    for (&rank, (origin, bytes)) in by_rank {
        let trace = rank::read(bytes, rank, kept, strict).map_err(|wrong| wrong.of(origin))?;
        total += trace.nodes.len();
        if let Some(stated) = trace.ranks.filter(|&stated| stated as usize != by_rank.len()) {
            let message = format!("it is one of the traces of {stated} ranks, and {} are given", by_rank.len());
            return Err(Wrong { place: Place::Rank(rank), message }.of(origin));
        }
        if total > MOST_NODES {
            let message = format!("the traces have more than {MOST_NODES} nodes together");
            return Err(Wrong { place: Place::Rank(rank), message }.of(origin));
        }
        traces.push(trace);
    }
    Ok(traces)
}

/// Returns the rank in the name of a trace, such as `NAME.RANK.et`.
fn rank_of(origin: &str) -> Result<u32, Wrong> {
    let name = origin.rsplit('/').next().unwrap_or(origin);
    let parts = name.rsplit('.').filter(|part| !matches!(*part, "et" | "json" | "gz" | "chakra"));
    let rank = parts.take(1).find_map(|part| part.parse::<u32>().ok()).filter(|&rank| rank < 1 << 22);
    rank.ok_or_else(|| Wrong::file("the name of a trace is NAME.RANK.et, and this one has no rank"))
}

fn members(traces: &[RankTrace]) -> BTreeMap<String, Vec<u32>> {
    let mut members: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for (rank, trace) in (0..).zip(traces) {
        for node in &trace.nodes {
            if let Step::Collective { group: Some(group), .. } = &node.step {
                members.entry(group.clone()).or_default().insert(rank);
            }
        }
    }
    members.into_iter().map(|(name, ranks)| (name, ranks.into_iter().collect())).collect()
}

/// Checks that a file lists every group that a trace names, with the rank of that trace.
fn known_groups(traces: &[RankTrace], listed: &CommGroups) -> Found<()> {
    for (rank, node) in (0..).zip(traces).flat_map(|(rank, trace)| trace.nodes.iter().map(move |node| (rank, node))) {
        let Some(group) = group_of(node) else { continue };
        let of = excerpt(group);
        let reason = match listed.ranks.get(group) {
            None => format!("process group '{of}' is not listed in '{}'", excerpt(listed.origin)),
            Some(ranks) if !ranks.contains(&rank) => {
                format!("rank {rank} is not in process group '{of}', as '{}' lists it", excerpt(listed.origin))
            }
            Some(_) => continue,
        };
        return Err((rank, Wrong { place: Place::Node { rank, node: node.id }, message: reason }));
    }
    Ok(())
}

/// Checks that the root of each collective is less than the number of all ranks.
fn known_roots(traces: &[RankTrace]) -> Found<()> {
    let ranks: u32 = narrow(traces.len());
    for (rank, node) in (0..).zip(traces).flat_map(|(rank, trace)| trace.nodes.iter().map(move |node| (rank, node))) {
        if let Step::Collective { root, .. } = node.step
            && root >= ranks
        {
            let message = format!("the root is rank {root}; accepted is one below {ranks}");
            return Err((rank, Wrong { place: Place::Node { rank, node: node.id }, message }));
        }
    }
    Ok(())
}

struct Program {
    traces: Vec<RankTrace>,
    members: BTreeMap<String, Vec<u32>>,
    groups: Distinct<Groups>,
    /// For each group, the index of its set of groups, if each rank is a class; `None` is all ranks.
    numbers: BTreeMap<Option<String>, u32>,
    /// The bytes of inputs that the number of ranks of their group does not divide, each with that number.
    rounded: BTreeSet<(u64, u64)>,
}

type Found<T> = Result<T, (u32, Wrong)>;

impl Program {
    fn classes(&mut self) -> Found<Vec<RankClass>> {
        let ranks: u32 = narrow(self.traces.len());
        let first = &self.traces[0].nodes;
        let is_one = self.traces.iter().all(|trace| {
            trace.nodes.len() == first.len() && trace.nodes.iter().zip(first).all(|(a, b)| is_alike(a, b))
        });
        let together = if is_one { self.one_class(ranks) } else { None };
        match together {
            Some(nodes) => Ok(vec![RankClass { ranks: (0..ranks).collect(), nodes }]),
            None => (0..ranks).map(|rank| self.class(rank)).collect(),
        }
    }

    /// Returns the nodes of all ranks as one class. Returns `None` if the groups of a node overlap, if they divide an
    /// input into different numbers of parts, or if a node is a message.
    fn one_class(&mut self, ranks: u32) -> Option<Vec<WorkNode>> {
        let mut nodes = Vec::with_capacity(self.traces[0].nodes.len());
        let mut known: BTreeMap<Vec<Option<&str>>, u32> = BTreeMap::new();
        for (n, node) in self.traces[0].nodes.iter().enumerate() {
            let work = match &node.step {
                Step::Compute(compute) => Work::Compute(*compute),
                Step::Collective { kind, bytes, root, .. } => {
                    let mut names: Vec<Option<&str>> = self.traces.iter().map(|t| group_of(&t.nodes[n])).collect();
                    names.sort_unstable();
                    names.dedup();
                    let groups = match known.get(&names) {
                        Some(&groups) => groups,
                        None => {
                            let list = |name: &Option<&str>| match name {
                                Some(name) => self.members[*name].clone(),
                                None => (0..ranks).collect(),
                            };
                            let mut lists: Vec<Vec<u32>> = names.iter().map(list).collect();
                            lists.sort_unstable();
                            let groups = self.groups.number(Groups::new(ranks, lists).ok()?);
                            known.insert(names, groups);
                            groups
                        }
                    };
                    if is_split(*kind) && self.groups.row(groups).sizes().len() > 1 {
                        return None;
                    }
                    collected(*kind, *bytes, *root, (groups, self.groups.row(groups)), &mut self.rounded)
                }
                // A rank with messages needs a class of its own.
                Step::Send { .. } | Step::Receive { .. } => return None,
            };
            nodes.push(made(node, work));
        }
        Some(nodes)
    }

    fn class(&mut self, rank: u32) -> Found<RankClass> {
        let ranks: u32 = narrow(self.traces.len());
        let mut nodes = Vec::new();
        for node in &self.traces[rank as usize].nodes {
            let work = match &node.step {
                Step::Compute(compute) => Work::Compute(*compute),
                Step::Collective { kind, bytes, group, root } => {
                    let wrong = |message: String| (rank, Wrong { place: Place::Node { rank, node: node.id }, message });
                    let groups = match self.numbers.get(group) {
                        Some(&groups) => groups,
                        None => {
                            let named = |name: &String| self.members[name].clone();
                            let list = group.as_ref().map_or_else(|| (0..ranks).collect(), named);
                            let made = Groups::new(ranks, [list]).map_err(|e| wrong(e.to_string()))?;
                            let number = self.groups.number(made);
                            if (number as usize + 1).saturating_mul(ranks as usize) > MOST_PLACES {
                                let message = format!("the traces have more than {number} groups among {ranks} ranks");
                                return Err(wrong(message));
                            }
                            self.numbers.insert(group.clone(), number);
                            number
                        }
                    };
                    collected(*kind, *bytes, *root, (groups, self.groups.row(groups)), &mut self.rounded)
                }
                &Step::Send { to, bytes, tag } => Work::Send { to, bytes, tag },
                &Step::Receive { from, bytes, tag } => Work::Receive { from, bytes, tag },
            };
            nodes.push(made(node, work));
        }
        Ok(RankClass { ranks: vec![rank], nodes })
    }
}

fn made(node: &TimedNode, work: Work) -> WorkNode {
    WorkNode { begun: node.begun.clone(), ..WorkNode::new(&*node.name, work, node.after.clone()) }
}

fn group_of(node: &TimedNode) -> Option<&str> {
    match &node.step {
        Step::Collective { group, .. } => group.as_deref(),
        _ => None,
    }
}

/// Returns whether two nodes have the same compute or communication and the same dependencies; their groups may differ.
/// Returns false for messages.
fn is_alike(a: &TimedNode, b: &TimedNode) -> bool {
    let same = match (&a.step, &b.step) {
        (Step::Compute(a), Step::Compute(b)) => a == b,
        (
            Step::Collective { kind: a, bytes: of_a, root: root_a, .. },
            Step::Collective { kind: b, bytes: of_b, root: root_b, .. },
        ) => (a, of_a, root_a) == (b, of_b, root_b),
        _ => false,
    };
    same && a.after == b.after && a.begun == b.begun
}

/// Returns whether the input of a collective consists of a part for each rank.
fn is_split(kind: Kind) -> bool {
    matches!(kind, Kind::ReduceScatter | Kind::Alltoall | Kind::Scatter)
}

/// Makes a collective. If each rank gets a part of the input, all groups must have the same size, and parts are rounded
/// up. `input` is the bytes of the input, as a trace counts them; the result counts bytes as in MPI.
fn collected(kind: Kind, input: u64, root: u32, of: (u32, &Groups), rounded: &mut BTreeSet<(u64, u64)>) -> Work {
    let (groups, list) = of;
    let size = u64::from(list.sizes().last().copied().unwrap_or(1));
    if is_split(kind) && !input.is_multiple_of(size) {
        rounded.insert((input, size));
    }
    let bytes = if is_split(kind) { input.div_ceil(size) } else { input };
    Work::Collective(Collected { kind, bytes, element_bytes: 4, root, groups })
}
