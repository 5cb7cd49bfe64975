//! The communications of a program among several ranks, each identified by its ranks and its number among those of
//! equal ranks.

use rustc_hash::FxHashMap;
use unisono_workload::{Work, WorkloadGraph};

use super::class::classes_of_ranks;

/// One communication: its ranks, as an index of [`WorkloadGraph::groups`] or [`WorkloadGraph::receivers`] or as a
/// sender, a receiver and a tag. Also the number of earlier nodes of the class with the same ranks and tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Occurrence {
    Groups(u32, usize),
    Receivers(u32, usize),
    Pair { from: u32, to: u32, tag: u32, before: usize },
}

/// The communications of all classes of a program.
#[derive(Debug)]
pub struct Occurrences {
    /// The class of each rank.
    pub class_of: Vec<usize>,
    /// For each class and node, the communication; `None` for compute.
    pub of: Vec<Vec<Option<Occurrence>>>,
    /// For each class, the node of each communication. Both ends of a message have the same communication.
    pub nodes: Vec<FxHashMap<Occurrence, usize>>,
}

impl Occurrences {
    pub fn new(graph: &WorkloadGraph) -> Self {
        let of: Vec<Vec<Option<Occurrence>>> = graph
            .classes
            .iter()
            .map(|class| {
                let own = class.ranks.first().copied().unwrap_or(0);
                let mut counts: FxHashMap<Occurrence, usize> = FxHashMap::default();
                let numbered = |work: &Work| {
                    let first = match *work {
                        Work::Compute(_) => return None,
                        Work::Collective(c) => Occurrence::Groups(c.groups, 0),
                        Work::Permute { receivers, .. } => Occurrence::Receivers(receivers, 0),
                        Work::Send { to, tag, .. } => Occurrence::Pair { from: own, to, tag, before: 0 },
                        Work::Receive { from, tag, .. } => Occurrence::Pair { from, to: own, tag, before: 0 },
                    };
                    let count = counts.entry(first).or_default();
                    *count += 1;
                    Some(first.after(*count - 1))
                };
                class.nodes.iter().map(|node| &node.work).map(numbered).collect()
            })
            .collect();
        let numbered =
            |of: &Vec<Option<Occurrence>>| of.iter().enumerate().filter_map(|(n, o)| Some(((*o)?, n))).collect();
        Self { class_of: classes_of_ranks(graph), nodes: of.iter().map(numbered).collect(), of }
    }
}

impl Occurrence {
    /// Returns the communication of the same ranks that comes after `before` earlier communications.
    fn after(self, before: usize) -> Self {
        match self {
            Self::Groups(table, _) => Self::Groups(table, before),
            Self::Receivers(table, _) => Self::Receivers(table, before),
            Self::Pair { from, to, tag, .. } => Self::Pair { from, to, tag, before },
        }
    }
}
