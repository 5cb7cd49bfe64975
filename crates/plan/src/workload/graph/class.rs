//! A class of equal ranks in the simulation: its nodes, their states, and its queues.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use rustc_hash::FxHashMap;
use unisono_workload::{Queues, RankClass, Work, WorkloadGraph};

use super::Interval;

/// Identifies a communication among classes: by the index of its groups or receivers in the program, and by its number,
/// from 1, among the communications of a class with this index.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Meeting {
    Groups(u32, usize),
    Receivers(u32, usize),
}

/// The state of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Waits,
    /// The node has reached its communication, and waits for other classes.
    Came,
    Done,
}

/// Nodes, each with the time, as bits, at which it became ready. The earliest node is first.
pub(super) type ReadyNodes = BinaryHeap<Reverse<(u64, u32)>>;

#[derive(Default)]
pub(super) struct Queue {
    pub free: f64,
    /// Nodes that have not begun, if the queue works in program order.
    pub in_order: VecDeque<u32>,
    /// Ready nodes, if the queue takes nodes as they become ready.
    pub ready: ReadyNodes,
}

pub(super) struct Class {
    /// For each node, the number of nodes for which it still waits.
    pub open: Vec<u32>,
    /// For each node, the nodes that wait for its end (index 0), and for its start (index 1).
    pub waiting: [Waiting; 2],
    /// The meeting of each node, if it has one.
    pub meetings: Vec<Option<Meeting>>,
    pub states: Vec<State>,
    /// The queues of compute and of communication. Without overlap, the first queue serves both.
    pub queues: [Queue; 2],
    pub times: Vec<Interval>,
    /// The time from which the receiving port is free, if the rank has one port.
    pub port: f64,
    /// The times from which the host is free to begin a message (index 0), and to end a message (index 1).
    pub hosts: [f64; 2],
    /// The times at which busy send machines become free, as bits of floating-point numbers.
    pub sending: BinaryHeap<Reverse<u64>>,
}

/// The nodes that wait for each node, in one list.
pub(super) struct Waiting {
    /// For each node, the end of its part of `nodes`.
    ends: Vec<u32>,
    pub nodes: Vec<u32>,
}

impl Class {
    pub fn new(class: &RankClass, queues: Queues, overlap: bool) -> Self {
        let nodes = &class.nodes;
        let mut made = Self {
            open: vec![0; nodes.len()],
            waiting: [Vec::new(), Vec::new()].map(|pairs| Waiting::new(nodes.len(), pairs)),
            meetings: Vec::with_capacity(nodes.len()),
            states: vec![State::Waits; nodes.len()],
            queues: [Queue::default(), Queue::default()],
            times: vec![Interval::default(); nodes.len()],
            port: 0.0,
            hosts: [0.0; 2],
            sending: BinaryHeap::new(),
        };
        // Pairs of a node and a node that waits for its end; then pairs for its start.
        let mut pairs: [Vec<(u32, u32)>; 2] = [Vec::new(), Vec::new()];
        // The number of communications of each table so far, and the latest communication.
        let (mut counts, mut last): (FxHashMap<(bool, u32), usize>, Option<u32>) = (FxHashMap::default(), None);
        for (number, node) in (0_u32..).zip(nodes) {
            for (pairs, before) in pairs.iter_mut().zip([&node.after, &node.begun]) {
                pairs.extend(before.iter().map(|&before| (before, number)));
            }
            let key = match node.work {
                Work::Collective(collected) => Some((true, collected.groups)),
                Work::Permute { receivers, .. } => Some((false, receivers)),
                _ => None,
            };
            made.meetings.push(key.map(|key| {
                let count = counts.entry(key).or_default();
                *count += 1;
                if key.0 { Meeting::Groups(key.1, *count) } else { Meeting::Receivers(key.1, *count) }
            }));
            match queues {
                Queues::InOrder => made.queues[queue_of(&node.work, overlap)].in_order.push_back(number),
                Queues::AsReady if key.is_some() => {
                    if let Some(last) = last.replace(number) {
                        pairs[1].push((last, number));
                    }
                }
                Queues::AsReady => {}
            }
        }
        for &(_, number) in pairs.iter().flatten() {
            made.open[number as usize] += 1;
        }
        made.waiting = pairs.map(|pairs| Waiting::new(nodes.len(), pairs));
        made
    }
}

impl Waiting {
    /// Makes the lists from pairs of a node and a node that waits for it.
    fn new(nodes: usize, mut pairs: Vec<(u32, u32)>) -> Self {
        pairs.sort_unstable();
        let mut ends = vec![0; nodes];
        for &(before, _) in &pairs {
            ends[before as usize] += 1;
        }
        let mut end = 0;
        for count in &mut ends {
            end += *count;
            *count = end;
        }
        Self { ends, nodes: pairs.into_iter().map(|(_, waits)| waits).collect() }
    }

    pub fn of(&self, node: u32) -> std::ops::Range<usize> {
        let begin = node.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        begin as usize..self.ends[node as usize] as usize
    }
}

/// Returns the index of a node's queue in [`Class::queues`].
pub(super) fn queue_of(work: &Work, overlap: bool) -> usize {
    usize::from(overlap && !work.is_compute())
}

/// Returns the index of each rank's class.
pub(super) fn classes_of_ranks(graph: &WorkloadGraph) -> Vec<usize> {
    let mut of = vec![0; graph.ranks as usize];
    for (number, class) in graph.classes.iter().enumerate() {
        for &rank in &class.ranks {
            of[rank as usize] = number;
        }
    }
    of
}
