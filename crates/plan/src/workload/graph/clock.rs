//! The nodes of a program in time.
//!
//! Every class of ranks has one queue of compute and one of communication, and each works in program order. A node begins
//! when its queue is free and the nodes that it names are done. A communication begins on all classes that take part at the
//! same time. Without overlap a class has one queue for both.

use rustc_hash::FxHashMap;
use unisono_base::interrupt::poll;
use unisono_workload::{Work, WorkloadGraph};

use super::meetings::{Meeting, classes_of_ranks};

/// The time of one node, in seconds from the begin of the program.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Interval {
    pub begin: f64,
    pub end: f64,
}

/// The times of all nodes: of each class, of each of its nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct Clock(pub Vec<Vec<Interval>>);

/// Classes wait for each other in a circle, or for a class that does not take part.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "rank {rank} waits in node {node} ('{name}') for ranks that do not come to it; accepted are programs in which the ranks \
     of a group make the same collectives in the same order"
)]
pub struct ClockError {
    pub rank: u32,
    pub node: usize,
    pub name: String,
}

#[derive(Default)]
struct Class {
    next: usize,
    computed: f64,
    communicated: f64,
    times: Vec<Interval>,
    /// The communications of each set of groups so far.
    counts: FxHashMap<(bool, u32), usize>,
    /// The meeting for which the class waits, and when it came.
    waits: Option<Meeting>,
}

impl Clock {
    /// Puts a program on the clock. `seconds` is the time of a node, of a class and its number there.
    ///
    /// # Errors
    /// Classes wait for each other in a circle.
    pub fn new(
        graph: &WorkloadGraph,
        overlap: bool,
        seconds: impl Fn(usize, usize) -> f64,
    ) -> Result<Self, ClockError> {
        let class_of = classes_of_ranks(graph);
        let mut classes: Vec<Class> = graph.classes.iter().map(|_| Class::default()).collect();
        let mut arrived: FxHashMap<Meeting, Vec<(usize, f64)>> = FxHashMap::default();
        let mut together: FxHashMap<(bool, u32), usize> = FxHashMap::default();
        let mut ready: Vec<usize> = (0..classes.len()).rev().collect();
        while let Some(at) = ready.pop() {
            let nodes = &graph.classes[at].nodes;
            while classes[at].waits.is_none() && classes[at].next < nodes.len() {
                poll();
                let class = &mut classes[at];
                let number = class.next;
                let node = &nodes[number];
                let needed = node.after.iter().map(|&before| class.times[before as usize].end).fold(0.0, f64::max);
                let free = |own: f64, other: f64| if overlap { own } else { f64::max(own, other) };
                let key = match node.work {
                    Work::Compute(_) => {
                        let begin = needed.max(free(class.computed, class.communicated));
                        class.computed = begin + seconds(at, number);
                        class.times.push(Interval { begin, end: class.computed });
                        class.next += 1;
                        continue;
                    }
                    Work::Collective(collected) => (true, collected.groups),
                    Work::Permute { receivers, .. } => (false, receivers),
                };
                let begin = needed.max(free(class.communicated, class.computed));
                let count = class.counts.entry(key).or_default();
                let meeting = if key.0 { Meeting::Groups(key.1, *count) } else { Meeting::Receivers(key.1, *count) };
                *count += 1;
                let expected = *together.entry(key).or_insert_with(|| taking_part(graph, &class_of, key));
                let here = arrived.entry(meeting).or_default();
                here.push((at, begin));
                class.waits = Some(meeting);
                if here.len() < expected.max(1) {
                    break;
                }
                let all = arrived.remove(&meeting).unwrap_or_default();
                let begin = all.iter().map(|&(_, begin)| begin).fold(0.0, f64::max);
                let longest = all.iter().map(|&(class, _)| seconds(class, classes[class].next)).fold(0.0, f64::max);
                for (class, _) in all {
                    let one = &mut classes[class];
                    one.communicated = begin + longest;
                    one.times.push(Interval { begin, end: begin + longest });
                    (one.next, one.waits) = (one.next + 1, None);
                    if class != at {
                        ready.push(class);
                    }
                }
            }
        }
        match classes.iter().position(|class| class.waits.is_some()) {
            None => Ok(Self(classes.into_iter().map(|class| class.times).collect())),
            Some(at) => {
                let (class, node) = (&graph.classes[at], classes[at].next);
                let rank = class.ranks.first().copied().unwrap_or(0);
                Err(ClockError { rank, node, name: unisono_base::excerpt(&class.nodes[node].name) })
            }
        }
    }

    /// The end of the last node of a class.
    pub fn end(&self, class: usize) -> f64 {
        self.0[class].iter().map(|node| node.end).fold(0.0, f64::max)
    }
}

/// The number of classes with a rank in the groups, or in a pair of a sender and a receiver.
fn taking_part(graph: &WorkloadGraph, class_of: &[usize], (groups, table): (bool, u32)) -> usize {
    let mut takes = vec![false; graph.classes.len()];
    if groups {
        for &rank in graph.groups[table as usize].iter().flatten() {
            takes[class_of[rank as usize]] = true;
        }
    } else {
        let pairs = (0_u32..).zip(&graph.receivers[table as usize]).filter(|(from, to)| from != *to);
        for rank in pairs.flat_map(|(from, &to)| [from, to]) {
            takes[class_of[rank as usize]] = true;
        }
    }
    takes.into_iter().filter(|&takes| takes).count()
}
