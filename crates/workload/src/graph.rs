//! A program: classes of equal ranks, each with its nodes in program order.
//!
//! A node computes, takes part in a collective, or exchanges messages. A node begins when all nodes in its list `after`
//! have ended and all nodes in its list `begun` have begun. In addition, a rank has a queue for compute and a queue for
//! communication, which run nodes in the order of [`Queues`].

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use unisono_collective::Kind;

use crate::{Groups, hlo::Finding};

/// A program on a number of ranks.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WorkloadGraph {
    pub name: String,
    pub format: &'static str,
    pub ranks: u32,
    /// The distinct sets of groups.
    pub groups: Vec<Groups>,
    /// For each set of groups, the algorithm of its collectives; empty if the program names none.
    pub choices: Vec<Choice>,
    /// The distinct sets of tables of receivers. A table has the receiver of each rank; a rank that sends nothing is
    /// its own receiver. The messages of all tables of a set are sent concurrently.
    pub receivers: Vec<Vec<Vec<u32>>>,
    pub classes: Vec<RankClass>,
    pub queues: Queues,
    /// Communications that are not needed, or that a cheaper communication could replace.
    pub findings: Vec<Finding>,
    /// Operations of unknown time, with their numbers of occurrences.
    pub unknown: BTreeMap<String, u64>,
    /// The assumptions of the reader, as sentences.
    pub notes: Vec<String>,
}

/// The algorithm of the collectives of a set of groups, as far as the program states one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Choice {
    /// The name of the algorithm; `None` for the fastest.
    pub algorithm: Option<String>,
    pub params: BTreeMap<String, String>,
    /// The numbers of rows and of columns in which the ranks of a group are arranged.
    pub shape: Option<[u32; 2]>,
}

/// The order in which the queues of a rank run nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Queues {
    /// Program order, like the streams of training frameworks. A dependency on a node therefore includes all earlier
    /// nodes of its queue.
    #[default]
    InOrder,
    /// The order in which nodes become ready, as in task graphs. A receive occupies no queue. The collectives and
    /// permutations of a rank begin in program order.
    AsReady,
}

/// Ranks that execute the same nodes. A class whose nodes include messages between pairs has one rank.
#[derive(Clone, PartialEq, Debug)]
pub struct RankClass {
    pub ranks: Vec<u32>,
    pub nodes: Vec<WorkNode>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct WorkNode {
    pub name: String,
    pub work: Work,
    /// The earlier nodes of the same class that must have ended.
    pub after: Vec<u32>,
    /// The earlier nodes of the same class that must have begun.
    pub begun: Vec<u32>,
}

impl WorkNode {
    pub fn new(name: impl Into<String>, work: Work, after: Vec<u32>) -> Self {
        Self { name: name.into(), work, after, begun: Vec::new() }
    }
}

/// Compute of one rank.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Compute {
    Measured {
        seconds: f64,
    },
    /// Arithmetic operations, and bytes read from and written to memory.
    Counted {
        operations: f64,
        bytes: f64,
    },
    /// A reduction in a schedule: the bytes of its operands, and its operations. The machine may state a cost for it.
    Reduced {
        bytes: u64,
        operations: u64,
    },
}

/// A collective that every group of a set performs at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Collected {
    pub kind: Kind,
    /// Bytes, counted as in MPI.
    pub bytes: u64,
    pub element_bytes: u32,
    /// The index of the root in its group.
    pub root: u32,
    /// An index of [`WorkloadGraph::groups`].
    pub groups: u32,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Work {
    Compute(Compute),
    Collective(Collected),
    /// Each rank sends `bytes` bytes to each of its receivers, and waits for the messages sent to it. `receivers` is an
    /// index of [`WorkloadGraph::receivers`].
    Permute {
        bytes: u64,
        receivers: u32,
    },
    /// Sends to a rank. The node ends when the message has left, even if the receiver does not wait for it.
    Send {
        to: u32,
        bytes: u64,
        tag: u32,
    },
    /// Waits for a message from a rank. Messages of one pair with one tag arrive in the order of the sends.
    Receive {
        from: u32,
        bytes: u64,
        tag: u32,
    },
}

impl Work {
    pub fn is_compute(&self) -> bool {
        matches!(self, Self::Compute(_))
    }

    /// Returns whether a node is one end of a message between a pair.
    pub fn is_message(&self) -> bool {
        matches!(self, Self::Send { .. } | Self::Receive { .. })
    }
}

impl WorkloadGraph {
    /// Returns the sender and the receiver of each message of a set of tables of receivers.
    pub fn pairs(&self, receivers: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let tables = self.receivers[receivers as usize].iter();
        tables.flat_map(|table| (0..).zip(table.iter().copied())).filter(|(from, to)| from != to)
    }

    /// Returns whether the time of some compute other than [`Compute::Reduced`] depends on the accelerator's rates.
    pub fn counts_operations(&self) -> bool {
        let counted = |node: &WorkNode| matches!(node.work, Work::Compute(Compute::Counted { .. }));
        self.classes.iter().any(|class| class.nodes.iter().any(counted))
    }
}

/// A table of distinct rows, numbered from 0 in order of addition.
#[derive(Debug)]
pub(crate) struct Distinct<T> {
    rows: Vec<T>,
    known: FxHashMap<T, u32>,
}

impl<T: Clone + Eq + std::hash::Hash> Distinct<T> {
    pub fn new() -> Self {
        Self { rows: Vec::new(), known: FxHashMap::default() }
    }

    pub fn number(&mut self, row: T) -> u32 {
        let next = unisono_base::narrow(self.rows.len());
        *self.known.entry(row).or_insert_with_key(|row| {
            self.rows.push(row.clone());
            next
        })
    }

    pub fn row(&self, number: u32) -> &T {
        &self.rows[number as usize]
    }

    pub fn into_rows(self) -> Vec<T> {
        self.rows
    }
}

/// Returns a note that parts were rounded up; `None` if `cases` is empty. A case is the bytes of an input, and a number
/// of ranks that does not divide it.
pub fn rounded_up(cases: &BTreeSet<(u64, u64)>) -> Option<String> {
    let (bytes, ranks) = cases.first()?;
    let others = if cases.len() == 1 { String::new() } else { format!(", and {} more such inputs", cases.len() - 1) };
    Some(format!(
        "{ranks} ranks do not divide the {bytes} bytes of a collective's input{others}: each rank's part is rounded up"
    ))
}
