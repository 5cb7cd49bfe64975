//! The times of a program's nodes, by a simulation of events.
//!
//! Every class of ranks has one queue for compute and one queue for communication. Without overlap, one queue serves
//! both. A node begins when its queue is free and takes the node ([`Queues`]), and all nodes for whose end it waits
//! have ended. A communication begins at the same time on all classes that take part. A message between a pair ends for
//! its sender when it has left; nodes that wait for its start continue when it is posted. A message occupies one of its
//! sender's send machines, each of which sends one message at a time, and the ports by which it leaves. After its
//! latency, the message occupies the ports by which it arrives, even if its receiver is not waiting yet. A queue in
//! program order, and a queue that serves both, send one message at a time.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use rustc_hash::FxHashMap;
use unisono_base::{excerpt, interrupt::poll, narrow};
use unisono_workload::{Queues, Work, WorkloadGraph};

use super::{
    ClockError, Interval, Messages,
    class::{Class, Meeting, State, classes_of_ranks, queue_of},
    ports::Links,
};

/// An event. The queue of events stores its time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The head of a message reaches the port of its receiver.
    Arrives(usize),
    /// A node of a class begins. Nodes that wait for its start are released.
    Begun(usize, u32),
    Done(usize, u32),
    /// The queues of a class may take nodes. This event is last in the order, so that a queue sees all nodes that are
    /// ready at a time.
    Take(usize),
}

/// The messages of a pair with one tag: the messages that arrive or have arrived, and the waiting receives, each with
/// the time at which it was posted.
#[derive(Default)]
struct Channel {
    arrivals: VecDeque<Interval>,
    receives: VecDeque<(u32, f64)>,
}

/// A message that is under way.
struct UnderWay {
    channel: (u32, u32, u32),
    /// The class and the node of the send.
    send: (usize, u32),
    begin: f64,
    /// The seconds for which the message occupies its busiest port.
    held: f64,
}

pub(super) struct Simulation<'a, F, M> {
    graph: &'a WorkloadGraph,
    overlap: bool,
    /// True if a rank sends one message at a time although it may have several send machines.
    sends_one: bool,
    seconds: F,
    messages: &'a M,
    links: Links,
    class_of: Vec<usize>,
    classes: Vec<Class>,
    /// The classes, with their nodes, that have reached each meeting.
    arrived: FxHashMap<Meeting, Vec<(usize, u32)>>,
    /// For each list of groups (true and its index) or of pairs (false and its index), the number of classes in it.
    together: FxHashMap<(bool, u32), usize>,
    channels: FxHashMap<(u32, u32, u32), Channel>,
    under_way: Vec<UnderWay>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
}

/// Returns the bits of a time. Times are not negative, so bits have the order of the times.
fn key(time: f64) -> u64 {
    time.to_bits()
}

impl<'a, F: Fn(usize, usize) -> f64, M: Messages> Simulation<'a, F, M> {
    /// Prepares the simulation of a program. `seconds(class, node)` returns the time of a node.
    pub fn new(graph: &'a WorkloadGraph, overlap: bool, seconds: F, messages: &'a M) -> Self {
        Self {
            graph,
            overlap,
            sends_one: !overlap || graph.queues == Queues::InOrder,
            seconds,
            messages,
            links: Links::default(),
            class_of: classes_of_ranks(graph),
            classes: graph.classes.iter().map(|class| Class::new(class, graph.queues, overlap)).collect(),
            arrived: FxHashMap::default(),
            together: FxHashMap::default(),
            channels: FxHashMap::default(),
            under_way: Vec::new(),
            events: BinaryHeap::new(),
        }
    }

    /// Returns the times of all nodes, by class and node.
    ///
    /// # Errors
    /// Returns an error if classes wait for each other in a cycle.
    pub fn run(mut self) -> Result<Vec<Vec<Interval>>, ClockError> {
        for class in 0..self.classes.len() {
            for node in 0..narrow(self.classes[class].open.len()) {
                if self.classes[class].open[node as usize] == 0 {
                    self.ready(class, node, 0.0);
                }
            }
            self.events.push(Reverse((key(0.0), Event::Take(class))));
        }
        while let Some(Reverse((time, event))) = self.events.pop() {
            poll();
            let now = f64::from_bits(time);
            match event {
                Event::Arrives(message) => self.arrive(message, now),
                Event::Begun(class, node) => self.release(class, node, 1, now),
                Event::Done(class, node) => {
                    self.classes[class].states[node as usize] = State::Done;
                    self.release(class, node, 0, now);
                }
                Event::Take(class) => self.take(class, now),
            }
        }
        match self.stopped() {
            None => Ok(self.classes.into_iter().map(|class| class.times).collect()),
            Some(error) => Err(error),
        }
    }

    fn work(&self, class: usize, node: u32) -> Work {
        self.graph.classes[class].nodes[node as usize].work
    }

    fn rank(&self, class: usize) -> u32 {
        self.graph.classes[class].ranks.first().copied().unwrap_or(0)
    }

    /// Releases the nodes that wait for the end (`kind` 0) or the start (`kind` 1) of a node.
    fn release(&mut self, class: usize, node: u32, kind: usize, now: f64) {
        for at in self.classes[class].waiting[kind].of(node) {
            let next = self.classes[class].waiting[kind].nodes[at];
            self.classes[class].open[next as usize] -= 1;
            if self.classes[class].open[next as usize] == 0 {
                self.ready(class, next, now);
            }
        }
        self.events.push(Reverse((key(now), Event::Take(class))));
    }

    /// Handles a node whose predecessors have ended: adds it to its queue if the queue takes ready nodes.
    fn ready(&mut self, class: usize, node: u32, now: f64) {
        if self.graph.queues == Queues::InOrder {
            return;
        }
        let work = self.work(class, node);
        match work {
            Work::Receive { .. } => self.receive(class, node, now),
            Work::Collective(_) | Work::Permute { .. } => self.meet(class, node, now),
            Work::Compute(_) | Work::Send { .. } => {
                if !work.is_compute() && self.are_posted() {
                    self.events.push(Reverse((key(now), Event::Begun(class, node))));
                }
                let queue = queue_of(&work, self.overlap);
                self.classes[class].queues[queue].ready.push(Reverse((key(now), node)));
            }
        }
    }

    /// Begins the nodes that the free queues of a class take.
    fn take(&mut self, class: usize, now: f64) {
        for queue in 0..2 {
            loop {
                let of = &mut self.classes[class];
                let own = &mut of.queues[queue];
                if own.free > now {
                    break;
                }
                let node = if let Some(Reverse((_, node))) = own.ready.pop() {
                    node
                } else if let Some(&node) = own.in_order.front()
                    && of.open[node as usize] == 0
                    && of.states[node as usize] == State::Waits
                {
                    node
                } else {
                    break;
                };
                match self.work(class, node) {
                    Work::Compute(_) => {
                        let end = now + (self.seconds)(class, node as usize);
                        self.begin(class, node, Interval { begin: now, end });
                    }
                    Work::Send { to, tag, .. } => self.send(class, node, (to, tag), now),
                    Work::Receive { .. } => self.receive(class, node, now),
                    Work::Collective(_) | Work::Permute { .. } => self.meet(class, node, now),
                }
            }
        }
    }

    /// Sets the times of a node, and the time at which its queue becomes free.
    fn begin(&mut self, class: usize, node: u32, time: Interval) {
        let work = self.work(class, node);
        let of = &mut self.classes[class];
        let own = &mut of.queues[queue_of(&work, self.overlap)];
        if own.in_order.front() == Some(&node) {
            own.in_order.pop_front();
        }
        if self.graph.queues == Queues::InOrder || !matches!(work, Work::Receive { .. }) {
            own.free = time.end;
        }
        if let (Work::Send { .. }, false) = (work, self.sends_one) {
            own.free = time.begin;
            while of.sending.peek().is_some_and(|&Reverse(end)| end <= key(time.begin)) {
                of.sending.pop();
            }
            of.sending.push(Reverse(key(time.end)));
            let are_busy = self.messages.machines().is_some_and(|machines| of.sending.len() >= machines as usize);
            if let (true, Some(&Reverse(end))) = (are_busy, of.sending.peek()) {
                own.free = f64::from_bits(end);
            }
        }
        of.times[node as usize] = time;
        let has_begun = match work {
            Work::Receive { .. } => true,
            Work::Send { .. } => self.are_posted(),
            _ => false,
        };
        if !has_begun && !self.classes[class].waiting[1].of(node).is_empty() {
            self.events.push(Reverse((key(time.begin), Event::Begun(class, node))));
        }
        self.events.push(Reverse((key(time.end), Event::Done(class, node))));
    }

    /// Returns true if messages are posted as soon as they are ready, and only then wait for send machines.
    fn are_posted(&self) -> bool {
        !self.sends_one && self.messages.are_posted()
    }

    /// Handles a class that reaches a communication, which begins when all classes that take part have reached it and
    /// their queues are free.
    fn meet(&mut self, class: usize, node: u32, now: f64) {
        let meeting =
            self.classes[class].meetings[node as usize].expect("a communication of several ranks is a meeting");
        let table = match meeting {
            Meeting::Groups(table, _) => (true, table),
            Meeting::Receivers(table, _) => (false, table),
        };
        let (graph, class_of) = (self.graph, &self.class_of);
        let expected = *self.together.entry(table).or_insert_with(|| taking_part(graph, class_of, table));
        self.classes[class].states[node as usize] = State::Came;
        let here = self.arrived.entry(meeting).or_default();
        here.push((class, node));
        if here.len() < expected.max(1) {
            return;
        }
        let all = self.arrived.remove(&meeting).unwrap_or_default();
        let queue = usize::from(self.overlap);
        let begin = all.iter().map(|&(class, _)| self.classes[class].queues[queue].free).fold(now, f64::max);
        let longest = all.iter().map(|&(class, node)| (self.seconds)(class, node as usize)).fold(0.0, f64::max);
        for (other, node) in all {
            self.begin(other, node, Interval { begin, end: begin + longest });
        }
    }

    fn send(&mut self, class: usize, node: u32, (to, tag): (u32, u32), now: f64) {
        let (from, taken) = (self.rank(class), (self.seconds)(class, node as usize));
        let latency = self.messages.latency_seconds(class, node as usize).min(taken);
        let held = taken - latency;
        let overhead = self.messages.overhead_seconds(class, node as usize)[0].min(latency);
        let host = &mut self.classes[class].hosts[0];
        *host = host.max(now) + overhead;
        let posted = *host;
        let ports = self.messages.ports(class, node as usize);
        let begin = ports.map_or(posted, |ports| self.links.leave(ports, posted, held));
        // A message is under way from the time at which its host begins it.
        let begun = begin - overhead;
        self.events.push(Reverse((key(begun + latency), Event::Arrives(self.under_way.len()))));
        self.under_way.push(UnderWay { channel: (from, to, tag), send: (class, node), begin: begun, held });
        self.begin(class, node, Interval { begin: now, end: begin + held });
    }

    /// Handles a message that reaches its receiver's port; messages pass the port in the order of these times.
    fn arrive(&mut self, message: usize, now: f64) {
        let UnderWay { channel, send: (class, node), begin, held } = self.under_way[message];
        let receiver = self.class_of[channel.1 as usize];
        let end = if let Some(ports) = self.messages.ports(class, node as usize) {
            self.links.arrive(ports, now, held)
        } else {
            let port = &mut self.classes[receiver].port;
            *port = port.max(now) + held;
            *port
        };
        // A host ends one message after the other.
        let host = &mut self.classes[receiver].hosts[1];
        let end = end.max(*host + self.messages.overhead_seconds(class, node as usize)[1]);
        *host = end;
        // The interval has the length of a message without other traffic, even if the message waited for the port.
        let begin = begin + (end - now - held).max(0.0);
        self.channels.entry(channel).or_default().arrivals.push_back(Interval { begin, end });
        self.matched(receiver, channel, now);
    }

    fn receive(&mut self, class: usize, node: u32, now: f64) {
        let (Work::Receive { from, tag, .. }, to) = (self.work(class, node), self.rank(class)) else { return };
        self.classes[class].states[node as usize] = State::Came;
        self.release(class, node, 1, now);
        self.channels.entry((from, to, tag)).or_default().receives.push_back((node, now));
        self.matched(class, (from, to, tag), now);
    }

    /// Ends the receives of a channel for which messages have reached the receiver's port.
    fn matched(&mut self, class: usize, channel: (u32, u32, u32), now: f64) {
        loop {
            let pair = self.channels.entry(channel).or_default();
            let (Some(message), Some(&(node, posted))) = (pair.arrivals.front().copied(), pair.receives.front()) else {
                return;
            };
            pair.arrivals.pop_front();
            pair.receives.pop_front();
            let end = now.max(message.end);
            self.begin(class, node, Interval { begin: posted.max(message.begin).min(end), end });
        }
    }

    /// Returns an error for the first node that has not ended although all earlier nodes of its rank have ended.
    fn stopped(&self) -> Option<ClockError> {
        let first =
            |(class, of): (usize, &Class)| Some((class, of.states.iter().position(|&state| state != State::Done)?));
        let (class, node) = self.classes.iter().enumerate().find_map(first)?;
        let (rank, name) = (self.rank(class), excerpt(&self.graph.classes[class].nodes[node].name));
        Some(match self.work(class, narrow(node)) {
            Work::Receive { from, .. } => ClockError::Message { rank, node, name, from },
            _ => ClockError::Meeting { rank, node, name },
        })
    }
}

/// Returns the number of classes that have a rank in the groups, or in a pair of a sender and a receiver.
fn taking_part(graph: &WorkloadGraph, class_of: &[usize], (groups, table): (bool, u32)) -> usize {
    let mut takes = vec![false; graph.classes.len()];
    if groups {
        for &rank in graph.groups[table as usize].iter().flatten() {
            takes[class_of[rank as usize]] = true;
        }
    } else {
        for rank in graph.pairs(table).flat_map(|(from, to)| [from, to]) {
            takes[class_of[rank as usize]] = true;
        }
    }
    takes.into_iter().filter(|&takes| takes).count()
}
