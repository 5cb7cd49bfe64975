//! The start time of each message of a forest.
//!
//! The links of a forest are busy nearly all the time, so the order in which each link sends decides how long messages
//! wait. A message begins as soon as its links are free and its sender has the data (list scheduling, Graham, 1969).
//! Among several messages that could begin, the message with the largest weight goes first. A weight is large if the
//! message's links have much left to carry, if the message brings data for a busy link that has nothing to send, or if
//! a long chain of messages follows the message. A schedule that sends in the order of these times keeps all links
//! busy. Times are multiples of that of a chunk on a link of rate 1.
//!
//! A rank sends in the order of the timetable, so a message with late data delays all later messages on its link. So
//! the timetable may expect data a few durations of a message later than it arrives ([`Jobs::with_slack`]).
//!
//! If many chunks travel along one tree, they alternate with the chunks of other trees. Otherwise the chunks of one
//! tree would wait for the links farther down the tree, while the links of other trees would be idle.

use std::{cmp::Reverse, collections::BinaryHeap};

use unisono_base::{
    interrupt::poll,
    narrow,
    queue::{Event, Queue},
};

use crate::{
    Runs,
    jobs::{Behind, Class, Jobs},
};

impl Jobs {
    /// Returns the start time of each message. A message occupies each of its links for its units divided by the link's
    /// rate, and its arrival is later by the latencies `hops` of its links.
    pub fn begins(&self, rates: &[f64], hops: &[f64]) -> Vec<f64> {
        let takes = self.takes(rates, hops, self.slack);
        let count = narrow::<u32>(self.list.len());
        // The duration of the longest chain that starts with each message.
        let mut chain: Vec<f64> = (0..count).map(|job| takes[self.class_at(job)]).collect();
        for job in (0..count).rev() {
            poll();
            if let Some(before) = self.list[job as usize].after {
                let longer = takes[self.class_at(before)] + chain[job as usize];
                chain[before as usize] = chain[before as usize].max(longer);
            }
        }
        let (missing, behind) = self.waits(Runs::Down);
        self.run(rates, hops, &Order { missing, behind, chain, is_fixed: false })
    }

    /// Returns the start times of the messages in the reverse direction. Each message waits for all messages for which
    /// it brought data. `begins` are the forward start times: the message that began last goes first, if its sender has
    /// the data.
    ///
    /// Forwards, messages begin as soon as they can. In an exact time reversal, each message would arrive exactly when
    /// it is needed, and any delay would delay all later messages. Therefore messages begin as soon as they can in the
    /// reverse direction too (justification: Wiest, 1964).
    pub(crate) fn begins_backwards(&self, begins: &[f64], rates: &[f64], hops: &[f64]) -> Vec<f64> {
        let (missing, behind) = self.waits(Runs::Up);
        let order = Order { missing, behind, chain: begins.to_vec(), is_fixed: true };
        self.run(rates, hops, &order)
    }

    fn run(&self, rates: &[f64], hops: &[f64], order: &Order) -> Vec<f64> {
        let waits = self.takes(rates, hops, self.slack);
        let count = self.list.len();
        let mut queues = Queues::new(self, rates, order);
        let mut events: Queue<After> = Queue::new();
        for job in (0..narrow(count)).filter(|&job: &u32| order.missing[job as usize] == 0) {
            events.push(event(0.0, After::Ready, job));
        }
        let (mut missing, mut ready) = (order.missing.clone(), vec![0.0_f64; count]);
        let mut begins = vec![0.0; count];
        while let Some(first) = events.peek() {
            poll();
            let now = f64::from_bits(first.time);
            // All events at this time are processed before any message begins.
            while let Some(Event { stamp, what, .. }) =
                events.peek().filter(|event| f64::from_bits(event.time) <= now * (1.0 + CLOSE))
            {
                events.pop();
                match stamp {
                    After::Ready => queues.ready(what),
                    After::Free => queues.free(what),
                    After::Sent => queues.sent(what),
                }
            }
            for job in queues.begin(now) {
                begins[job as usize] = now;
                for link in self.links_of(job) {
                    events.push(event(now + self.units(job) / rates[link], After::Free, narrow(link)));
                }
                let class = &self.classes[self.class_at(job)];
                if let (Some((sender, held)), Some(first)) = (class.sender, self.links_of(job).next()) {
                    let sent = now + held * class.units / rates[first];
                    events.push(event(sent, After::Sent, sender));
                }
                let end = now + waits[self.class_at(job)];
                for &next in order.behind.of(job) {
                    let at = next as usize;
                    ready[at] = ready[at].max(end);
                    missing[at] -= 1;
                    if missing[at] == 0 {
                        events.push(event(ready[at], After::Ready, next));
                    }
                }
            }
        }
        begins
    }
}

/// The dependences of messages, and the priority of those that could begin.
struct Order {
    /// For each message, the number of messages that it waits for.
    missing: Vec<u32>,
    /// The messages that wait for each message.
    behind: Behind,
    /// A lower bound of the time from each message's begin to the end, or the priority if `is_fixed`.
    chain: Vec<f64>,
    /// True if `chain` alone is the priority.
    is_fixed: bool,
}

/// Times that differ by less than this fraction are equal.
const CLOSE: f64 = 1e-9;

/// The weight of a `Job::turn` of 1, divided by the busy time of the busiest link. Measured between 0.05 and 10: above
/// 0.2 the difference is small.
const TURNS: f64 = 0.5;

const FREE: f64 = f64::NEG_INFINITY;

/// The messages that wait for their links.
struct Queues<'a> {
    jobs: &'a Jobs,
    rates: &'a [f64],
    order: &'a Order,
    links: Vec<Link>,
    /// The time until which each link is busy; [`FREE`] if it is not.
    until: Vec<f64>,
    senders: Vec<Sender>,
    /// The waiting messages of each class; the message with the longest chain is first.
    waiting: Vec<BinaryHeap<(Ordered, Reverse<u32>)>>,
    /// The time by which a `Job::turn` of 1 reduces a message's priority.
    turns: f64,
    /// The classes that may have a message that can now begin.
    changed: Vec<u32>,
    /// True for each class that is in `changed`, or in the list `blocked` of a link or a sender.
    is_listed: Vec<bool>,
}

#[derive(Clone, Default)]
struct Link {
    /// Classes with waiting messages that need the link while it is busy. Each class is in one list only.
    blocked: Vec<u32>,
    /// The units that the link has still to carry.
    left: f64,
    /// The time in which it carries them.
    left_time: f64,
    /// The waiting messages that need the link.
    waiting: u32,
}

#[derive(Clone, Default)]
struct Sender {
    /// Classes with waiting messages whose links were free when the sender had no free send machine.
    blocked: Vec<u32>,
    /// The number of send machines that are free; each sends one message at a time.
    free: u32,
}

impl<'a> Queues<'a> {
    fn new(jobs: &'a Jobs, rates: &'a [f64], order: &'a Order) -> Self {
        let mut links = vec![Link::default(); rates.len()];
        for job in &jobs.list {
            let units = jobs.classes[job.class as usize].units;
            jobs.links(job.class).for_each(|link| links[link].left += units);
        }
        let sender = |&machines: &u32| Sender { blocked: Vec::new(), free: machines };
        let senders: Vec<Sender> = jobs.senders.iter().map(sender).collect();
        let classes = jobs.classes.len();
        let waiting = vec![BinaryHeap::new(); classes];
        links.iter_mut().zip(rates).for_each(|(link, rate)| link.left_time = link.left / rate);
        let busiest = links.iter().map(|link| link.left_time).fold(0.0, f64::max);
        Self {
            jobs,
            rates,
            order,
            until: vec![FREE; links.len()],
            links,
            senders,
            waiting,
            turns: TURNS * busiest,
            changed: Vec::new(),
            is_listed: vec![false; classes],
        }
    }

    fn ready(&mut self, job: u32) {
        let class = self.jobs.list[job as usize].class;
        self.jobs.links(class).for_each(|link| self.links[link].waiting += 1);
        self.waiting[class as usize].push((Ordered(self.order.chain[job as usize]), Reverse(job)));
        self.change(class);
    }

    fn free(&mut self, link: u32) {
        self.until[link as usize] = FREE;
        self.changed.append(&mut self.links[link as usize].blocked);
    }

    fn sent(&mut self, sender: u32) {
        self.senders[sender as usize].free += 1;
        self.changed.append(&mut self.senders[sender as usize].blocked);
    }

    /// Lists a class whose messages may be able to begin, unless it is blocked.
    fn change(&mut self, class: u32) {
        if !std::mem::replace(&mut self.is_listed[class as usize], true) {
            self.changed.push(class);
        }
    }

    /// Returns whether a class has a waiting message that can begin. If all its messages must wait, lists the class at
    /// the busy link that becomes free last, or else at its sender.
    fn can_begin(&mut self, class: u32) -> bool {
        self.is_listed[class as usize] = false;
        if self.waiting[class as usize].is_empty() {
            return false;
        }
        let later = |a: (f64, usize), b: (f64, usize)| if b.0 > a.0 { b } else { a };
        let (until, last) = self.jobs.links(class).map(|link| (self.until[link], link)).fold((FREE, 0), later);
        let list = match self.jobs.classes[class as usize].sender {
            _ if until > FREE => &mut self.links[last].blocked,
            Some((sender, _)) if self.senders[sender as usize].free == 0 => &mut self.senders[sender as usize].blocked,
            _ => return true,
        };
        list.push(class);
        self.is_listed[class as usize] = true;
        false
    }

    /// Returns the priority of the next message of a class, as a time. It is the sum of three times, minus the time of
    /// the message's turn: the remaining work of the message's links; the remaining work of the busiest link for which
    /// the message brings data and which has nothing else to send; and the message's chain. With a fixed order, the
    /// priority is that of the order.
    fn weight(&self, class: u32) -> f64 {
        let Some(&(Ordered(chain), Reverse(job))) = self.waiting[class as usize].peek() else { return 0.0 };
        if self.order.is_fixed {
            return chain;
        }
        let time = |link: usize| self.links[link].left_time;
        let own: f64 = self.jobs.links(class).map(time).sum();
        let fed = self.order.behind.of(job).iter().flat_map(|&next| self.jobs.links_of(next));
        let starving = fed.filter(|&link| self.links[link].waiting <= 1).map(time).fold(0.0, f64::max);
        own + starving + chain - self.turns * self.jobs.list[job as usize].turn
    }

    /// Begins messages at the time `now`, and returns them.
    fn begin(&mut self, now: f64) -> Vec<u32> {
        let changed = std::mem::take(&mut self.changed);
        let mut able = Vec::new();
        for class in changed {
            if self.can_begin(class) {
                able.push((Reverse(Ordered(self.weight(class)).bits()), class));
            }
        }
        able.sort_unstable();
        let mut begun = Vec::new();
        for (_, class) in able {
            if !self.can_begin(class) {
                continue;
            }
            begun.extend(self.waiting[class as usize].pop().map(|(_, Reverse(job))| job));
            let &Class { units, sender, .. } = &self.jobs.classes[class as usize];
            if let Some((sender, _)) = sender {
                self.senders[sender as usize].free -= 1;
            }
            for link in self.jobs.links(class) {
                self.until[link] = now + units / self.rates[link];
                let of = &mut self.links[link];
                of.left -= units;
                of.left_time = of.left / self.rates[link];
                of.waiting -= 1;
            }
            // Lists the class at one of its links, which are busy now.
            self.can_begin(class);
        }
        begun
    }
}

/// The events after which further messages can begin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum After {
    /// The sender of a message has its data.
    Ready,
    /// A link has become free.
    Free,
    /// A send machine of a sender has become free.
    Sent,
}

/// Returns an event at a time of at least 0: the bits of such times have the order of the times.
fn event(time: f64, stamp: After, what: u32) -> Event<After> {
    Event { time: time.to_bits(), stamp, what }
}

/// A finite time with a total order.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Ordered(pub f64);

impl Ordered {
    /// Returns bits with the order of the times, which sort faster.
    fn bits(self) -> u64 {
        let bits = self.0.to_bits();
        if self.0.is_sign_negative() { !bits } else { bits | 1 << 63 }
    }
}

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
