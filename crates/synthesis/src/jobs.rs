//! The messages of a forest or of an all-to-all, with the links and hosts that each message uses.

use std::ops::Range;

use unisono_base::narrow;

use crate::Runs;

pub(crate) struct Job {
    /// The index of the message that brings the data, which is lower than the index of this message. `None` at a root.
    pub after: Option<u32>,
    pub class: u32,
    /// The position of the message's chunk among all chunks of its tree, from 0 to 1. A larger value lowers the
    /// priority on links.
    pub turn: f64,
}

/// Messages with their links; a link carries one message at a time.
#[derive(Default)]
pub struct Jobs {
    pub(crate) list: Vec<Job>,
    pub(crate) classes: Vec<Class>,
    /// The links of all classes, in the order of classes.
    links: Vec<u32>,
    /// The number of send machines of each sender; each handles one message at a time.
    pub(crate) senders: Vec<u32>,
    /// The time from the arrival of data to its next message, divided by the duration of the message that brings the
    /// data.
    pub(crate) slack: f64,
}

/// The send machines of ranks that have fewer of them than links.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Sending {
    pub machines: u32,
    /// The fraction of a message's time on its first link for which it occupies a send machine: until its last packet
    /// starts.
    pub held: f64,
}

/// The properties of messages over the same links.
pub(crate) struct Class {
    /// The range of its links in [`Jobs::links`].
    links: Range<u32>,
    /// The length of each message, in chunks of one block.
    pub units: f64,
    /// The index of the sender, and [`Sending::held`]; `None` if no send machine limits the messages.
    pub sender: Option<(u32, f64)>,
    pub work: Work,
}

/// The hosts that work on the messages of a class. If hosts are equivalent by symmetry, one rank represents them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// No host is known.
    Unknown,
    /// The hosts of the sender and of the receiver work on each message. Sender and receiver are those before a
    /// reversal.
    Message([u32; 2]),
    /// The job is a sum, computed by a host.
    Sum { host: u32, at_root: bool },
}

/// For each message, the messages that wait for it.
pub(crate) struct Behind {
    /// The index in `list` of the first message behind each message, and of the end of the list.
    first: Vec<u32>,
    list: Vec<u32>,
}

impl Behind {
    #[inline]
    pub(crate) fn of(&self, job: u32) -> &[u32] {
        &self.list[self.range(job)]
    }

    /// Returns the indices of the messages behind a message, for [`Self::at`].
    #[inline]
    pub(crate) fn range(&self, job: u32) -> Range<usize> {
        self.first[job as usize] as usize..self.first[job as usize + 1] as usize
    }

    #[inline]
    pub(crate) fn at(&self, index: usize) -> u32 {
        self.list[index]
    }
}

impl Jobs {
    /// Creates an empty list. Arrived data is sent on only after `slack` times the duration of its message. A link
    /// sends in a fixed order. Without slack, the small delays that packets cause on shared links would therefore delay
    /// all later messages.
    pub fn with_slack(slack: f64) -> Self {
        Self { slack, ..Self::default() }
    }

    /// Adds a sender with `machines` send machines; returns its index.
    pub fn sender(&mut self, machines: u32) -> u32 {
        self.senders.push(machines);
        narrow::<u32>(self.senders.len()) - 1
    }

    /// Makes messages of a class hold a send machine of a sender for the fraction `held` of their time.
    pub fn sent_by(&mut self, class: u32, sender: u32, held: f64) {
        self.classes[class as usize].sender = Some((sender, held));
    }

    /// Adds a class of messages of one unit over the same links, and returns its index. Among the waiting messages of a
    /// class, the message that starts the longest chain is sent first. Messages that start different chains should
    /// therefore have different classes.
    pub fn class(&mut self, links: &[u32]) -> u32 {
        self.class_of(links, 1.0)
    }

    pub(crate) fn class_of(&mut self, links: &[u32], units: f64) -> u32 {
        let first = narrow(self.links.len());
        self.links.extend_from_slice(links);
        let links = first..narrow(self.links.len());
        self.classes.push(Class { links, units, sender: None, work: Work::Unknown });
        narrow::<u32>(self.classes.len()) - 1
    }

    /// Sets the hosts that work on the messages of a class.
    pub fn worked_on(&mut self, class: u32, work: Work) {
        self.classes[class as usize].work = work;
    }

    pub fn add(&mut self, after: Option<u32>, class: u32) -> u32 {
        self.add_in_turn(after, class, 0.0)
    }

    /// Adds a message and returns its index. A larger `turn`, from 0 to 1, lowers its priority on links.
    pub fn add_in_turn(&mut self, after: Option<u32>, class: u32, turn: f64) -> u32 {
        self.list.push(Job { after, class, turn });
        narrow::<u32>(self.list.len()) - 1
    }

    #[inline]
    pub(crate) fn links(&self, class: u32) -> impl DoubleEndedIterator<Item = usize> {
        let Range { start, end } = self.classes[class as usize].links;
        self.links[start as usize..end as usize].iter().map(|&link| link as usize)
    }

    pub(crate) fn links_of(&self, job: u32) -> impl DoubleEndedIterator<Item = usize> {
        self.links(self.list[job as usize].class)
    }

    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn units(&self, job: u32) -> f64 {
        self.classes[self.list[job as usize].class as usize].units
    }

    /// Returns the number of messages for which each message waits, and the messages that wait for each message, in the
    /// direction `runs`.
    pub(crate) fn waits(&self, runs: Runs) -> (Vec<u32>, Behind) {
        let pairs = (0..).zip(&self.list).filter_map(|(at, job)| Some((job.after?, at)));
        let pairs = pairs.map(|(before, job)| if runs == Runs::Up { (job, before) } else { (before, job) });
        let (mut missing, mut first) = (vec![0; self.list.len()], vec![0; self.list.len() + 1]);
        for (before, then) in pairs.clone() {
            missing[then as usize] += 1;
            first[before as usize + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let (mut next, mut list) = (first.clone(), vec![0; first[self.list.len()] as usize]);
        for (before, then) in pairs {
            let at = &mut next[before as usize];
            list[*at as usize] = then;
            *at += 1;
        }
        (missing, Behind { first, list })
    }

    pub(crate) fn class_at(&self, job: u32) -> usize {
        self.list[job as usize].class as usize
    }

    /// Returns for each class the time from begin to arrival, plus `slack` times the duration.
    pub(crate) fn takes(&self, rates: &[f64], hops: &[f64], slack: f64) -> Vec<f64> {
        let takes = |class: u32| {
            let slowest = self.links(class).map(|link| rates[link]).fold(f64::INFINITY, f64::min);
            let latency: f64 = self.links(class).map(|link| hops[link]).sum();
            self.classes[class as usize].units / slowest * (1.0 + slack) + latency
        };
        (0..narrow(self.classes.len())).map(takes).collect()
    }
}
