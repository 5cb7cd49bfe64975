//! The last arrival if messages begin in a given order.
//!
//! A message begins when its data has arrived, its links and a send machine of its sender are free, and all earlier
//! messages on its links have begun. A send machine sends one message at a time. Without hosts, data arrives with the
//! message that brings it, and a message occupies all of its links at once, as in the timetable.
//!
//! If hosts work on messages, each rank has one host, which works on one message at a time, in the order in which
//! messages become ready: a received message on arrival, a message to send when its data has arrived and the rank's
//! previous message was sent. A sum occupies the host together with the sending of the message that it precedes. One
//! host represents all equivalent ranks, which do the same work at the same time. Work delays messages, so the links of
//! a message are no longer free at the planned times: a message occupies its links one after another, each when its
//! head arrives and the link is free. In this model a long message waits for a whole other message, although packets
//! would alternate. The result is therefore the planned time plus the delay by hosts, which is the difference of two
//! such replays, with and without work.

use std::{cmp::Reverse, collections::BinaryHeap};

use unisono_base::{interrupt::poll, narrow};

use crate::{
    Runs,
    jobs::{Behind, Jobs, Work},
    timetable::Ordered,
};

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HostWork {
    /// The time for which a host works on each message that it sends or receives, in the unit of the timetable.
    pub takes: f64,
    /// True if a message waits only for earlier messages on its first link, not for all earlier messages of its rank.
    pub sends_by_link: bool,
}

impl Jobs {
    /// Returns the last arrival if messages begin in the order of `begins`, including the delay by the work of `hosts`.
    /// `rates` and `hops` are the rates and latencies of links.
    pub fn end(&self, begins: &[f64], (rates, hops): (&[f64], &[f64]), runs: Runs, hosts: Option<HostWork>) -> f64 {
        let mut order: Vec<u32> = (0..narrow(self.list.len())).collect();
        order.sort_by(|&a, &b| begins[a as usize].total_cmp(&begins[b as usize]));
        let replay = || Replay::new(self, (rates, hops), runs);
        let planned = replay().in_order(&order);
        let Some(work) = hosts else { return planned };
        let [with, without] = [work, HostWork { takes: 0.0, ..work }].map(|work| replay().with_hosts(&order, work));
        planned + (with - without).max(0.0)
    }
}

struct Replay<'a> {
    jobs: &'a Jobs,
    rates: &'a [f64],
    runs: Runs,
    hops: &'a [f64],
    /// For each class, the time from the start of a message to its arrival.
    takes: Vec<f64>,
    /// For each message, the number of messages that it waits for.
    missing: Vec<u32>,
    /// The messages that wait for each message.
    behind: Behind,
    /// The time at which the data of each message is ready.
    ready: Vec<f64>,
    /// The time from which each link is free.
    free: Vec<f64>,
    /// For each sender, the time at which each of its send machines becomes free.
    machines: Vec<Vec<f64>>,
    last: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    There(u32),
    Ready(u32),
}

impl<'a> Replay<'a> {
    fn new(jobs: &'a Jobs, (rates, hops): (&'a [f64], &'a [f64]), runs: Runs) -> Self {
        let (missing, behind) = jobs.waits(runs);
        Self {
            jobs,
            rates,
            runs,
            hops,
            takes: jobs.takes(rates, hops, 0.0),
            missing,
            behind,
            ready: vec![0.0; jobs.count()],
            free: vec![0.0; rates.len()],
            machines: jobs.senders.iter().map(|&count| vec![0.0; count as usize]).collect(),
            last: 0.0,
        }
    }

    fn in_order(&mut self, order: &[u32]) -> f64 {
        for &job in order {
            poll();
            let end = self.send(job, self.ready[job as usize]);
            self.last = self.last.max(end);
            for &next in self.behind.of(job) {
                let ready = &mut self.ready[next as usize];
                *ready = ready.max(end);
            }
        }
        self.last
    }

    /// Sends a message on all its links and a send machine at once; returns its arrival time.
    fn send(&mut self, job: u32, ready: f64) -> f64 {
        let at = self.jobs.class_at(job);
        let class = &self.jobs.classes[at];
        let mut now = self.jobs.links(narrow(at)).map(|link| self.free[link]).fold(ready, f64::max);
        if let (Some((sender, held)), Some(first)) = (class.sender, self.jobs.links_of(job).next()) {
            let machine = self.machines[sender as usize].iter_mut().min_by(|a, b| a.total_cmp(b));
            let machine = machine.expect("a sender has a machine");
            now = now.max(*machine);
            *machine = now + held * class.units / self.rates[first];
        }
        for link in self.jobs.links_of(job) {
            self.free[link] = now + class.units / self.rates[link];
        }
        now + self.takes[at]
    }

    /// Sends a message on one link after another and on a send machine. Returns its arrival time.
    fn send_on(&mut self, job: u32, ready: f64) -> f64 {
        let class = &self.jobs.classes[self.jobs.class_at(job)];
        let links = self.jobs.links_of(job);
        let links: Vec<usize> = if self.runs == Runs::Up { links.rev().collect() } else { links.collect() };
        let mut head = ready;
        if let (Some((sender, held)), Some(&first)) = (class.sender, links.first()) {
            let machine = self.machines[sender as usize].iter_mut().min_by(|a, b| a.total_cmp(b));
            let machine = machine.expect("a sender has a machine");
            head = head.max(*machine).max(self.free[first]);
            *machine = head + held * class.units / self.rates[first];
        }
        let mut tail = head;
        for link in links {
            let start = head.max(self.free[link]);
            self.free[link] = start + class.units / self.rates[link];
            tail = tail.max(self.free[link]) + self.hops[link];
            head = start + self.hops[link];
        }
        tail
    }

    fn work(&self, job: u32) -> Work {
        self.jobs.classes[self.jobs.class_at(job)].work
    }

    /// Returns the hosts of a message's sender and receiver; `None` for a sum.
    fn ends(&self, job: u32) -> Option<[u32; 2]> {
        match (self.work(job), self.runs) {
            (Work::Message([from, to]), Runs::Down) => Some([from, to]),
            (Work::Message([from, to]), Runs::Up) => Some([to, from]),
            _ => None,
        }
    }

    /// Returns for each message the next message of its sender, if any: with `sends_by_link`, the next on the same
    /// first link.
    fn followers(&mut self, order: &[u32], sends_by_link: bool) -> Vec<Option<u32>> {
        let mut followers = vec![None; order.len()];
        let mut latest = rustc_hash::FxHashMap::default();
        for &job in order {
            let Some([sender, _]) = self.ends(job) else { continue };
            let mut links = self.jobs.links_of(job);
            let first = if self.runs == Runs::Up { links.next_back() } else { links.next() };
            if let Some(before) = latest.insert((sender, first.filter(|_| sends_by_link)), job) {
                followers[before as usize] = Some(job);
                self.missing[job as usize] += 1;
            }
        }
        followers
    }

    fn with_hosts(&mut self, order: &[u32], hosts: HostWork) -> f64 {
        let followers = self.followers(order, hosts.sends_by_link);
        let most = order.iter().flat_map(|&job| match self.work(job) {
            Work::Message([from, to]) => [from, to],
            Work::Sum { host, .. } => [host; 2],
            Work::Unknown => [0; 2],
        });
        let mut busy = vec![0.0_f64; most.max().map_or(0, |most| most as usize + 1)];
        let mut works = |host: u32, from: f64, takes: f64| {
            let host = &mut busy[host as usize];
            *host = host.max(from) + takes;
            *host
        };
        // The time of the sum that precedes each message.
        let mut sums = vec![0.0; order.len()];
        let mut events = BinaryHeap::new();
        for &job in order.iter().filter(|&&job| self.missing[job as usize] == 0) {
            events.push(Reverse((Ordered(0.0), Event::Ready(job))));
        }
        while let Some(Reverse((Ordered(now), event))) = events.pop() {
            poll();
            let (job, end) = match event {
                Event::There(job) => {
                    let host = self.ends(job).map(|[_, receiver]| receiver);
                    (job, host.map_or(now, |host| works(host, now, hosts.takes)))
                }
                Event::Ready(job) => match (self.work(job), self.ends(job)) {
                    (Work::Sum { host, at_root: true }, _) => {
                        (job, works(host, now, self.takes[self.jobs.class_at(job)]))
                    }
                    (Work::Sum { .. }, _) => {
                        let takes = self.takes[self.jobs.class_at(job)];
                        self.behind.of(job).iter().for_each(|&next| sums[next as usize] += takes);
                        (job, now)
                    }
                    (_, ends) => {
                        let takes = sums[job as usize] + hosts.takes;
                        let sent = ends.map_or(now, |[sender, _]| works(sender, now, takes));
                        let there = self.send_on(job, sent);
                        events.push(Reverse((Ordered(there), Event::There(job))));
                        if let Some(next) = followers[job as usize] {
                            self.needs_less(next, sent, &mut events);
                        }
                        continue;
                    }
                },
            };
            self.last = self.last.max(end);
            for at in self.behind.range(job) {
                self.needs_less(self.behind.at(at), end, &mut events);
            }
        }
        self.last
    }

    /// Records that one message for which `job` waits has finished at `time`.
    fn needs_less(&mut self, job: u32, time: f64, events: &mut BinaryHeap<Reverse<(Ordered, Event)>>) {
        let at = job as usize;
        self.ready[at] = self.ready[at].max(time);
        self.missing[at] -= 1;
        if self.missing[at] == 0 {
            events.push(Reverse((Ordered(self.ready[at]), Event::Ready(job))));
        }
    }
}
