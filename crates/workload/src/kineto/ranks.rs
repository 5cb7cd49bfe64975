//! Combines the traces of ranks into one program. The trace of a single rank represents all ranks if its groups
//! determine the groups of the other ranks.

use std::collections::BTreeMap;

use unisono_base::excerpt;

use super::rank::{self, Met, RankTrace, Step};
use crate::{
    Collected, Groups, Queues, RankClass, ReadError, SourceFile, Work, WorkNode, WorkloadGraph,
    error::{Place, Wrong},
    graph::{Distinct, rounded_up},
    packed::{beginning, unpacked},
};

const MOST_RANKS: u32 = 1 << 22;
/// The largest accepted product of the number of ranks and the number of distinct sets of groups.
const MOST_PLACES: usize = 1 << 24;

/// Returns whether a file, perhaps compressed by gzip, begins with `{` after blanks, as Kineto traces do.
pub fn is_it(bytes: &[u8]) -> bool {
    beginning(bytes).trim_ascii_start().starts_with(b"{")
}

/// Reads the traces of all ranks, or of one rank. With `strict`, an unknown collective is an error.
///
/// # Errors
/// Returns an error for a damaged file, a rank that occurs twice or not at all, ranks that list a group differently,
/// messages or collectives that do not match, or groups that do not determine the groups of ranks without a trace.
pub fn read(files: &[SourceFile], strict: bool) -> Result<WorkloadGraph, ReadError> {
    let mut traces: BTreeMap<u32, (&str, RankTrace)> = BTreeMap::new();
    for (origin, bytes) in files {
        let bytes = unpacked(bytes).map_err(|message| Wrong::file(message).of(origin))?;
        let trace = rank::read(&bytes, strict).map_err(|wrong| wrong.of(origin))?;
        let rank = trace.rank;
        if let Some((other, _)) = traces.insert(rank, (origin, trace)) {
            let message = format!("'{}' is a trace of this rank too; accepted is one a rank", excerpt(other));
            return Err(Wrong { place: Place::Rank(rank), message }.of(origin));
        }
    }
    let program =
        Program { groups: Distinct::new(), named: BTreeMap::new(), numbers: BTreeMap::new(), ranks: world(&traces)? };
    program.graph(&traces)
}

/// Returns the number of ranks: the number that the traces state, but at least one more than the largest rank in them.
fn world(traces: &BTreeMap<u32, (&str, RankTrace)>) -> Result<u32, ReadError> {
    let (&last, &(origin, _)) = traces.last_key_value().expect("a caller gives a file");
    let of_trace = |trace: &RankTrace| {
        let named = trace.nodes.iter().filter_map(|node| match &node.step {
            Step::Collective(met) => met.ranks.iter().flatten().max().map(|last| last.saturating_add(1)),
            Step::Message { peer, .. } => Some(peer.saturating_add(1)),
            Step::Compute(_) => None,
        });
        named.chain(trace.world).max().unwrap_or(1)
    };
    let ranks = traces.values().map(|(_, trace)| of_trace(trace)).fold(last.saturating_add(1), u32::max);
    if ranks > MOST_RANKS {
        return Err(Wrong::file(format!("it has {ranks} ranks; accepted are at most {MOST_RANKS}")).of(origin));
    }
    match (0..ranks).find(|rank| !traces.contains_key(rank)) {
        Some(missing) if traces.len() > 1 => {
            let message = format!(
                "the trace of rank {missing} is missing; accepted are the traces of all {ranks} ranks, or of one, which \
                 stands for all"
            );
            Err(Wrong::file(message).of(origin))
        }
        _ => Ok(ranks),
    }
}

struct Program<'a> {
    groups: Distinct<Groups>,
    /// For each named group, its ranks, and the rank that listed them first.
    named: BTreeMap<&'a str, (&'a [u32], u32)>,
    /// For each group name and rank, the index of its set of groups.
    numbers: BTreeMap<(&'a str, u32), u32>,
    ranks: u32,
}

impl<'a> Program<'a> {
    fn graph(mut self, traces: &'a BTreeMap<u32, (&str, RankTrace)>) -> Result<WorkloadGraph, ReadError> {
        let stands_for_all = traces.len() == 1 && self.ranks > 1;
        let mut classes = Vec::with_capacity(traces.len());
        let mut unknown: BTreeMap<String, u64> = BTreeMap::new();
        let is_message = |node: &rank::Node| matches!(node.step, Step::Message { .. });
        let has_messages = traces.values().any(|(_, trace)| trace.nodes.iter().any(is_message));
        for (&rank, (origin, trace)) in traces {
            let mut nodes: Vec<WorkNode> = Vec::with_capacity(trace.nodes.len());
            let mut computed: Option<u32> = None;
            for node in &trace.nodes {
                let wrong = |message| Wrong { place: Place::Node { rank, node: node.event }, message }.of(origin);
                let work = match &node.step {
                    Step::Compute(compute) => Work::Compute(*compute),
                    Step::Collective(met) => self.collective(met, rank, stands_for_all).map_err(wrong)?,
                    Step::Message { .. } if stands_for_all => {
                        let message = "it is a message between two ranks; give the traces of all ranks";
                        return Err(wrong(message.to_owned()));
                    }
                    &Step::Message { sends: true, peer, bytes } => Work::Send { to: peer, bytes, tag: 0 },
                    &Step::Message { peer, bytes, .. } => Work::Receive { from: peer, bytes, tag: 0 },
                };
                let mut after = node.after.clone();
                if has_messages && work.is_compute() {
                    let number = unisono_base::narrow(nodes.len());
                    after.extend(computed.replace(number).filter(|before| !node.after.contains(before)));
                }
                nodes.push(WorkNode::new(&*node.name, work, after));
            }
            for name in &trace.unknown {
                *unknown.entry(name.clone()).or_default() += 1;
            }
            let ranks = if stands_for_all { (0..self.ranks).collect() } else { vec![rank] };
            classes.push(RankClass { ranks, nodes });
        }
        let (&first, (origin, _)) = traces.first_key_value().expect("a caller gives a file");
        let file = origin.rsplit('/').next().unwrap_or_default();
        let note = || format!("the trace of rank {first} stands for all {} ranks", self.ranks);
        let rounded = traces.values().flat_map(|(_, trace)| &trace.nodes).filter_map(|node| match &node.step {
            Step::Collective(met) => met.rounded,
            _ => None,
        });
        let rounded = rounded_up(&rounded.collect());
        let graph = WorkloadGraph {
            name: file.split('.').next().unwrap_or_default().to_owned(),
            format: "kineto",
            ranks: self.ranks,
            notes: stands_for_all.then(note).into_iter().chain(rounded).collect(),
            groups: self.groups.into_rows(),
            classes,
            // NCCL sends messages of different pairs on separate streams, so nodes with messages run as they become
            // ready. Compute nodes are kept in sequence by dependencies.
            queues: if has_messages { Queues::AsReady } else { Queues::InOrder },
            unknown,
            ..WorkloadGraph::default()
        };
        let node_of = |rank: u32, node: usize| traces.get(&rank).and_then(|(_, trace)| trace.nodes.get(node));
        let file_and_node = |rank, node| (traces[&rank].0, node_of(rank, node).map_or(0, |node| node.event));
        // The names of process groups are not compared, because kernels of several groups run on separate streams.
        graph
            .check_messages()
            .and_then(|()| graph.check_collectives(|_, _| None))
            .and_then(|()| graph.check_circles(file_and_node))
            .map_err(|unmatched| {
                let (origin, node) = file_and_node(unmatched.rank, unmatched.node);
                Wrong { place: Place::Node { rank: unmatched.rank, node }, message: unmatched.message }.of(origin)
            })?;
        Ok(graph)
    }

    fn collective(&mut self, met: &'a Met, rank: u32, stands_for_all: bool) -> Result<Work, String> {
        let name = excerpt(&met.group);
        let known = self.named.get(&*met.group).copied();
        let Met { kind, bytes, element_bytes, .. } = *met;
        let of = |groups| Work::Collective(Collected { kind, bytes, element_bytes, root: 0, groups });
        // A rank has the same list at every node; a list that differs is an error.
        let is_same = known.is_some_and(|(others, _)| met.ranks.as_ref().is_none_or(|ranks| ranks[..] == *others));
        if let Some(&groups) = self.numbers.get(&(&*met.group, rank)).filter(|_| is_same) {
            return Ok(of(groups));
        }
        let list = match (&met.ranks, known) {
            (Some(ranks), Some((others, first))) if ranks[..] != *others => {
                return Err(format!(
                    "process group '{name}' has {}, and by rank {first} it has {}; the traces are mixed up",
                    listed(ranks),
                    listed(others)
                ));
            }
            (Some(ranks), _) => {
                self.named.entry(&met.group).or_insert((ranks, rank));
                ranks.clone()
            }
            (None, Some((ranks, _))) => ranks.to_vec(),
            (None, None) => (0..self.ranks).collect(),
        };
        if !list.contains(&rank) {
            return Err(format!("process group '{name}' has {}, and rank {rank} is not among them", listed(&list)));
        }
        let lists = if stands_for_all {
            alike(&list, self.ranks).ok_or_else(|| {
                format!(
                    "process group '{name}' has {} of {}, which does not list the groups of the others; give the \
                     traces of all ranks",
                    listed(&list),
                    self.ranks
                )
            })?
        } else {
            vec![list]
        };
        let groups = Groups::new(self.ranks, lists).map_err(|e| e.to_string())?;
        let groups = self.groups.number(groups);
        if (groups as usize + 1).saturating_mul(self.ranks as usize) > MOST_PLACES {
            return Err(format!("the traces have more than {groups} different groups among {} ranks", self.ranks));
        }
        self.numbers.insert((&met.group, rank), groups);
        Ok(of(groups))
    }
}

fn listed(ranks: &[u32]) -> String {
    excerpt(&format!("ranks {ranks:?}"))
}

/// Returns all groups of a grid of ranks in the dimension of the given group. The ranks of a group have equal
/// distances, and groups are aligned to the product of size and distance. Returns `None` if the given group does not
/// have this structure.
fn alike(group: &[u32], ranks: u32) -> Option<Vec<Vec<u32>>> {
    let size = u32::try_from(group.len()).ok()?;
    let (&first, distance) = (group.first()?, group.get(1).map_or(Some(1), |second| second.checked_sub(group[0]))?);
    let block = size.checked_mul(distance).filter(|&block| block > 0 && ranks.is_multiple_of(block))?;
    let of = |first: u32| (0..size).map(|k| first + k * distance).collect::<Vec<u32>>();
    let begins = |first: u32| first % block < distance;
    let is_form = begins(first) && first < ranks && of(first) == group;
    is_form.then(|| (0..ranks).filter(|&first| begins(first)).map(of).collect())
}
