//! The sums of hosts in the timetable of a forest whose trees run backwards.
//!
//! A rank adds the data from below when all of it has arrived, and the root adds each message separately; a host adds
//! one operand after the other. The timetable runs forwards, so the sum that follows a message backwards precedes it
//! here.

use rustc_hash::FxHashMap;
use unisono_base::narrow;

use crate::jobs::{Jobs, Work};

/// The hosts of ranks as additional links, each of which carries one sum at a time.
pub(crate) struct Hosts {
    /// The number of links of messages.
    links: u32,
    of: FxHashMap<u32, u32>,
    /// The classes of sums by host, class of the message, operands, and whether they are computed at the root.
    classes: FxHashMap<(u32, u32, u32, bool), u32>,
    /// For the present tree: the operands of each rank, and its sum if it exists.
    operands: FxHashMap<u32, u32>,
    sums: FxHashMap<u32, u32>,
    /// The messages among all jobs.
    pub messages: Vec<u32>,
}

/// The sum before a message.
pub(crate) struct Sum {
    pub rank: u32,
    /// The representative of equivalent hosts.
    pub host: u32,
    pub at_root: bool,
    pub class: u32,
    pub after: Option<u32>,
    pub turn: f64,
}

impl Hosts {
    pub(crate) fn new(links: usize) -> Self {
        Self {
            links: narrow(links),
            of: FxHashMap::default(),
            classes: FxHashMap::default(),
            operands: FxHashMap::default(),
            sums: FxHashMap::default(),
            messages: Vec::new(),
        }
    }

    /// Begins a tree whose messages leave `senders`, each rank once per message.
    pub(crate) fn tree(&mut self, senders: impl Iterator<Item = u32>) {
        self.operands.clear();
        self.sums.clear();
        senders.for_each(|rank| *self.operands.entry(rank).or_default() += 1);
    }

    /// Returns the sum before a message: a new one at the root, and one for all messages of any other rank.
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
