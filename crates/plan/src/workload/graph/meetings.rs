//! The communications that ranks of several classes make together.

use rustc_hash::FxHashMap;
use unisono_workload::{Work, WorkloadGraph};

/// A communication that several classes make together: its groups or its table of receivers, and the number of communications
/// of these before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Meeting {
    Groups(u32, usize),
    Receivers(u32, usize),
}

/// The meetings of a program.
#[derive(Debug)]
pub struct Meetings {
    /// The class of each rank.
    pub class_of: Vec<usize>,
    /// Of each class and node; `None` of compute.
    pub of: Vec<Vec<Option<Meeting>>>,
    /// Of each class, the node at which it comes to a meeting.
    pub nodes: Vec<FxHashMap<Meeting, usize>>,
}

impl Meetings {
    pub fn new(graph: &WorkloadGraph) -> Self {
        let of: Vec<Vec<Option<Meeting>>> = graph
            .classes
            .iter()
            .map(|class| {
                let mut counts: FxHashMap<(bool, u32), usize> = FxHashMap::default();
                let mut count = |key: (bool, u32)| {
                    let next = counts.entry(key).or_default();
                    *next += 1;
                    *next - 1
                };
                let meeting = |work: &Work| match *work {
                    Work::Compute(_) => None,
                    Work::Collective(c) => Some(Meeting::Groups(c.groups, count((true, c.groups)))),
                    Work::Permute { receivers, .. } => Some(Meeting::Receivers(receivers, count((false, receivers)))),
                };
                class.nodes.iter().map(|node| &node.work).map(meeting).collect()
            })
            .collect();
        let numbered =
            |of: &Vec<Option<Meeting>>| of.iter().enumerate().filter_map(|(n, m)| Some(((*m)?, n))).collect();
        Self { class_of: classes_of_ranks(graph), nodes: of.iter().map(numbered).collect(), of }
    }
}

/// The class of each rank.
pub(super) fn classes_of_ranks(graph: &WorkloadGraph) -> Vec<usize> {
    let mut of = vec![0; graph.ranks as usize];
    for (number, class) in graph.classes.iter().enumerate() {
        for &rank in &class.ranks {
            of[rank as usize] = number;
        }
    }
    of
}
