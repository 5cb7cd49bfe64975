//! Sums on hosts in the timetable of a reduction, whose trees run from ranks to the root.
//!
//! A rank adds the data of its children when all of it has arrived; the root adds each message separately. A host adds
//! one operand after another. The timetable is built in the reverse direction, from the root, so a sum that follows a
//! message in the reduction precedes the message here.

use rustc_hash::FxHashMap;
use unisono_base::narrow;

use crate::jobs::{Jobs, Work};

/// The hosts of ranks as additional links, each of which computes one sum at a time.
#[derive(Default)]
pub(crate) struct Hosts {
    /// The number of links for messages; hosts are numbered after them.
    links: u32,
    /// For each rank that represents equivalent hosts, the link of its host.
    of: FxHashMap<u32, u32>,
    /// The classes of sums. Sums of one class have the same host, class of the message, and number of operands, and are
    /// all at the root or all at other ranks.
    classes: FxHashMap<(u32, u32, u32, bool), u32>,
    /// For the present tree, the number of messages that each rank sends: the operands of its sum in the reduction.
    operands: FxHashMap<u32, u32>,
    /// The job of the sum of each rank in the present tree.
    sums: FxHashMap<u32, u32>,
    /// The jobs that are messages, in the order of the forest's messages.
    pub messages: Vec<u32>,
}

/// The sum that precedes a message.
pub(crate) struct Sum {
    pub rank: u32,
    /// The rank that represents all equivalent hosts.
    pub host: u32,
    pub at_root: bool,
    pub class: u32,
    pub after: Option<u32>,
    pub turn: f64,
}

impl Hosts {
    pub(crate) fn new(links: usize) -> Self {
        Self { links: narrow(links), ..Self::default() }
    }

    /// Begins a tree. `senders` yields the sender of each message of the tree.
    pub(crate) fn tree(&mut self, senders: impl Iterator<Item = u32>) {
        self.operands.clear();
        self.sums.clear();
        senders.for_each(|rank| *self.operands.entry(rank).or_default() += 1);
    }

    /// Returns the job of the sum before a message: a new job at the root; at any other rank, one job for all messages
    /// that the rank sends.
    pub(crate) fn sum(&mut self, jobs: &mut Jobs, sum: &Sum) -> u32 {
        let Sum { rank, host, at_root, class, after, turn } = *sum;
        if let Some(&known) = self.sums.get(&rank) {
            return known;
        }
        let operands = if at_root { 1 } else { self.operands[&rank] };
        let next = self.links + narrow::<u32>(self.of.len());
        let link = *self.of.entry(host).or_insert(next);
        let class = self.classes.entry((host, class, operands, at_root));
        let class = *class.or_insert_with(|| {
            let class = jobs.class_of(&[link], f64::from(operands));
            jobs.worked_on(class, Work::Sum { host, at_root });
            class
        });
        let job = jobs.add_in_turn(after, class, turn);
        if !at_root {
            self.sums.insert(rank, job);
        }
        job
    }

    pub(crate) fn count(&self) -> usize {
        self.of.len()
    }
}
