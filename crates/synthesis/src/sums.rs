//! The sums of hosts in the timetable of a forest whose trees run backwards.
//!
//! A rank adds what comes from below when all of it is there, and the root each by itself; a host adds one operand
//! after the other. The timetable runs forwards, so a message has the sum that follows it before itself.

use rustc_hash::FxHashMap;
use unisono_base::narrow;

use crate::jobs::{Jobs, Work};

/// The hosts of ranks as further links, each of which carries one sum at a time.
pub(crate) struct Hosts {
    /// The number of links of messages.
    links: u32,
    /// The link of each host.
    of: FxHashMap<u32, u32>,
    /// Classes of sums by host, by the class of a message, by operands, and by whether they are made at the root.
    classes: FxHashMap<(u32, u32, u32, bool), u32>,
    /// Of the present tree: operands of each rank, and its sum where it is known.
    operands: FxHashMap<u32, u32>,
    sums: FxHashMap<u32, u32>,
    /// The messages among all jobs.
    pub messages: Vec<u32>,
}

/// The sum before a message.
pub(crate) struct Sum {
    pub rank: u32,
    /// One of all ranks that are alike.
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

    /// Begins a tree, where messages leave these ranks.
    pub(crate) fn tree(&mut self, senders: impl Iterator<Item = u32>) {
        self.operands.clear();
        self.sums.clear();
        senders.for_each(|rank| *self.operands.entry(rank).or_default() += 1);
    }

    /// The sum before a message: a new one at the root, and of any other rank one for all of its messages.
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
