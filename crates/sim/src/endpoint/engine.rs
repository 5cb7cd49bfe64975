//! The event engine: the rules of the module, one function each.

use std::{cmp::Reverse, collections::BinaryHeap};

use unisono_base::{TaskId, interrupt::poll, limits, narrow};
use unisono_cost::endpoint::Prices;
use unisono_lower::tasks::{Kind, Task, TaskGraph};

use super::{
    Options, Run, STUCK_KEPT, SimError, Stuck, TraceEvent,
    blocked::{Blocked, ClassKey, DONE, Link, Use},
    matching::{Envelope, Matching, Side},
};
use crate::queue::{Event, Queue};

/// The event is the message of its task, not the task itself.
const MESSAGE: u32 = 1 << 31;
/// The event is the head of its class of those that wait.
const WAITED: u32 = 1 << 30;
/// Clocks of all ranks together: half a gigabyte.
const MOST_CLOCKS: u64 = 1 << 26;
/// Steps of a task and its message.
const STEPS_A_TASK: u128 = 100;

/// What a carrier reports of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carried {
    /// Its sender begins to work on it. Of sends that are done when they have left.
    Begun,
    /// It has left, or will have left at a time that is not before what was reported. Of the same.
    Left,
    Arrived,
}

/// What brings messages from rank to rank, where that is more than a price.
pub(crate) trait Carrier {
    /// Nothing does: a message is there when its price says.
    const PRICED: bool;

    /// Message `id` leaves its sender at `time`, which is not before any time that `arrival` was asked about.
    fn carry(&mut self, time: u64, id: u32, from: u32, to: u32, bytes: u64);

    /// The next that is known of a message, with its time and id. Arrivals are reported if they are by `until`, in their order.
    fn report(&mut self, until: u64) -> Option<(u64, u32, Carried)>;

    /// What is under way for ever, once nothing more happens.
    fn jam(&self) -> Option<SimError>;
}

/// Messages take what their prices say.
struct AsPriced;

impl Carrier for AsPriced {
    const PRICED: bool = true;

    fn carry(&mut self, _time: u64, _id: u32, _from: u32, _to: u32, _bytes: u64) {}

    fn report(&mut self, _until: u64) -> Option<(u64, u32, Carried)> {
        None
    }

    fn jam(&self) -> Option<SimError> {
        None
    }
}

pub(super) fn run<P: Prices>(graph: &TaskGraph, prices: &P, options: &Options) -> Result<Run, SimError> {
    run_with(graph, prices, options, || AsPriced).map(|done| done.0)
}

/// Runs the tasks of the ranks, with what brings their messages; gives that back too.
pub(crate) fn run_with<P: Prices, C: Carrier>(
    graph: &TaskGraph,
    prices: &P,
    options: &Options,
    carrier: impl Fn() -> C,
) -> Result<(Run, C), SimError> {
    check(graph, options)?;
    match Engine::new(graph, prices, options, true, carrier()).run() {
        Err(Halt::Fell) => match Engine::new(graph, prices, options, false, carrier()).run() {
            Err(Halt::Fell) => unreachable!("only looked for with classes"),
            Err(Halt::Failed(error)) => Err(error),
            Ok(done) => Ok(done),
        },
        Err(Halt::Failed(error)) => Err(error),
        Ok(done) => Ok(done),
    }
}

fn check(graph: &TaskGraph, options: &Options) -> Result<(), SimError> {
    let no = |what, found: String, accepted: String| Err(SimError::Unsupported { what, found, accepted });
    let ranks = graph.rank_count();
    if !options.start.is_empty() && options.start.len() != ranks as usize {
        return no(
            "the number of starting times",
            options.start.len().to_string(),
            format!("one for each of {ranks} ranks"),
        );
    }
    if let Some(wrong) = options.noise.and_then(super::Noise::wrong) {
        return no("a parameter of the noise", wrong.to_string(), "ticks from 0 to a day".to_owned());
    }
    let clocks = u64::from(ranks) * u64::from(graph.cpus() + 2 * graph.nics());
    if clocks > MOST_CLOCKS {
        let found = format!("{ranks} x ({} CPUs + 2 x {})", graph.cpus(), graph.nics());
        return no(
            "ranks x (CPUs + 2 x interfaces)",
            found,
            format!("at most {MOST_CLOCKS}; number CPUs and interfaces from 0"),
        );
    }
    // Beside the graph: owner, link and at times the due time of each task, the events of the queue and of its buckets.
    let tasks = graph.task_count() as u128;
    let each = size_of::<u32>() + size_of::<Link>() + size_of::<u64>() + 2 * size_of::<Event>();
    limits::admit("the simulation of the tasks", each as u128 * tasks + 8 * u128::from(clocks), STEPS_A_TASK * tasks)?;
    Ok(())
}

/// Why a run ends before its events do.
enum Halt {
    /// A clock fell (prices below 0, which only 0 bytes in LogGOPSim's arithmetic bring about): classes do not hold.
    Fell,
    Failed(SimError),
}

/// Places of a task's clocks.
#[derive(Clone, Copy)]
struct At {
    cpu: usize,
    /// The interface, in the direction of the event.
    nic: usize,
}

struct Engine<'a, P, C> {
    graph: &'a TaskGraph,
    carrier: C,
    prices: &'a P,
    options: &'a Options,
    /// Events that wait form classes; else each comes again by itself.
    classes: bool,
    /// Some message's prices may be less than 0: then clocks count modulo 2^64.
    wraps: bool,
    slack: u64,
    eager: u64,
    /// Of each rank: CPUs, interfaces receiving, interfaces sending.
    clocks: Vec<u64>,
    clocks_each: usize,
    owner: Vec<u32>,
    links: Vec<Link>,
    queue: Queue,
    blocked: Blocked,
    matching: Matching,
    stamp: u32,
    /// Tasks that this event has made free, at its rank and at the rank of the other end.
    freed: [Vec<u32>; 2],
    /// When each task may start for what it waited for on another CPU; empty where there is one, or all clocks are apart.
    due: Vec<u64>,
    /// When what the event is about is over.
    until: u64,
    done: u64,
    counts: [u64; 4],
    left_over: u64,
    traced: Vec<bool>,
    trace: Vec<TraceEvent>,
    watched: Vec<u64>,
    sent: Vec<[u64; 2]>,
    /// Messages that will have left.
    leaves: BinaryHeap<Reverse<(u64, u32)>>,
}

impl<'a, P: Prices, C: Carrier> Engine<'a, P, C> {
    fn new(graph: &'a TaskGraph, prices: &'a P, options: &'a Options, classes: bool, carrier: C) -> Self {
        let ranks = graph.rank_count();
        let clocks_each = (graph.cpus() + 2 * graph.nics()) as usize;
        let mut clocks = vec![0; clocks_each * ranks as usize];
        for (clocks, &start) in clocks.chunks_mut(clocks_each.max(1)).zip(&options.start) {
            clocks.fill(start);
        }
        let mut traced = Vec::new();
        if !options.trace.ranks.is_empty() {
            traced = vec![false; ranks as usize];
            options.trace.ranks.iter().filter(|&&r| r < ranks).for_each(|&r| traced[r as usize] = true);
        }
        let mut owner = Vec::with_capacity(graph.task_count());
        let mut links = vec![Link::default(); graph.task_count()];
        let mut wraps = false;
        for rank in 0..ranks {
            for task in graph.tasks(rank) {
                poll();
                owner.push(rank);
                let Task { kind, amount, .. } = graph.task(TaskId(task));
                wraps |= kind == Kind::Send && prices.may_wrap(amount);
                graph.waiting(TaskId(task)).for_each(|(later, _)| links[later.index()].pending += 1);
            }
        }
        Self {
            graph,
            carrier,
            prices,
            options,
            classes,
            wraps,
            slack: prices.gap_slack(),
            eager: prices.eager_bytes(),
            clocks,
            clocks_each,
            owner,
            links,
            queue: Queue::new(),
            blocked: Blocked::new(ranks, graph.cpus() <= 1 && graph.nics() <= 1),
            matching: Matching::new(ranks),
            stamp: 0,
            freed: [Vec::new(), Vec::new()],
            due: if graph.cpus() > 1 && prices.ties_cpus() { vec![0; graph.task_count()] } else { Vec::new() },
            until: 0,
            done: 0,
            counts: [0; 4],
            left_over: 0,
            traced,
            trace: Vec::new(),
            watched: vec![0; options.watch.len()],
            sent: vec![[0; 2]; options.leaving.len()],
            leaves: BinaryHeap::new(),
        }
    }

    fn run(mut self) -> Result<(Run, C), Halt> {
        for rank in 0..self.graph.rank_count() {
            let tasks = self.graph.tasks(rank);
            poll();
            let mut free = std::mem::take(&mut self.freed[0]);
            free.extend(tasks.filter(|&task| self.links[task as usize].pending == 0));
            self.freed[0] = free;
            self.admit(rank, 0);
        }
        if C::PRICED && self.options.leaving.is_empty() {
            while let Some(event) = self.queue.pop() {
                self.step(event)?;
            }
        } else {
            self.run_carried()?;
        }
        self.finish().map_err(Halt::Failed)
    }

    /// What arrives or leaves by the time of the ranks' next event comes before it.
    fn run_carried(&mut self) -> Result<(), Halt> {
        loop {
            let next = self.queue.peek().map_or(u64::MAX, |event| event.time);
            let leave = self.leaves.peek().map(|&Reverse(leave)| leave).filter(|leave| leave.0 <= next);
            if let Some((time, id, carried)) = self.carrier.report(leave.map_or(next, |leave| leave.0)) {
                match carried {
                    Carried::Begun => self.begun(time, id),
                    Carried::Left => self.leaves.push(Reverse((time, id))),
                    Carried::Arrived => {
                        self.queue.push(Event { time, stamp: self.stamp, what: id | MESSAGE });
                        self.stamp += 1;
                    }
                }
            } else if let Some((time, id)) = leave {
                self.leaves.pop();
                self.left(time, id);
            } else if let Some(event) = self.queue.pop() {
                self.step(event)?;
            } else {
                return Ok(());
            }
        }
    }

    /// The sender of a message begins to work on it.
    fn begun(&mut self, time: u64, id: u32) {
        if let Ok(at) = self.options.leaving.binary_search(&TaskId(id)) {
            self.sent[at][0] = time;
        }
    }

    /// A message has left.
    fn left(&mut self, time: u64, id: u32) {
        if let Ok(at) = self.options.leaving.binary_search(&TaskId(id)) {
            self.sent[at][1] = time;
        }
        if self.graph.task(TaskId(id)).amount <= self.eager {
            self.until = time;
            self.end(id, 0);
            self.admit(self.owner[id as usize], 0);
        }
    }

    fn step(&mut self, event: Event) -> Result<(), Halt> {
        poll();
        let id = event.what & !(MESSAGE | WAITED);
        let task = self.graph.task(TaskId(id));
        let owner = self.owner[id as usize];
        self.until = event.time;
        if event.what & MESSAGE != 0 {
            return self.message(event, id, task, owner);
        }
        match task.kind {
            Kind::Send => self.send(event, id, task, owner),
            Kind::Receive => {
                self.receive(event.time, id, task, owner);
                Ok(())
            }
            Kind::Calc => self.compute(event, id, task, owner, self.prices.calc(task.amount)),
            Kind::Reduce => self.compute(event, id, task, owner, self.prices.reduce(owner, task.amount)),
        }
    }

    fn compute(&mut self, event: Event, id: u32, task: Task, rank: u32, ticks: u64) -> Result<(), Halt> {
        let key = ClassKey { rank, usage: Use::Compute, cpu: task.cpu, nic: 0 };
        let at = self.at(key);
        if self.waits(event, id, key, at) {
            return Ok(());
        }
        let end = self.after(rank, event.time, &[ticks, self.noise(rank, id, 0)])?;
        self.hold(at.cpu, event.time, end)?;
        self.record(rank, task, None, event.time, end);
        self.counts[task.kind as usize] += 1;
        self.start(id);
        self.until = end;
        self.end(id, 0);
        if let Ok(at) = self.options.watch.binary_search(&TaskId(id)) {
            self.watched[at] = end;
        }
        self.next_of_class(event, key, at);
        self.admit(rank, 0);
        Ok(())
    }

    fn send(&mut self, event: Event, id: u32, task: Task, rank: u32) -> Result<(), Halt> {
        let key = ClassKey { rank, usage: Use::Send, cpu: task.cpu, nic: task.nic };
        let at = self.at(key);
        if self.waits(event, id, key, at) {
            return Ok(());
        }
        let (time, price) = (event.time, self.prices.send(rank, task.peer, task.amount));
        let noise = self.noise(rank, id, 0);
        let end = self.after(rank, time, &[price.cpu, noise])?;
        self.hold(at.cpu, time, end)?;
        self.hold_nic(rank, at.nic, time, price.nic)?;
        self.record(rank, task, Some(task.peer), time, end);
        if C::PRICED {
            let arrival = self.after(rank, time, &[price.flight, noise])?;
            self.queue.push(Event { time: arrival, stamp: self.stamp, what: id | MESSAGE });
            self.stamp += 1;
        } else {
            self.carrier.carry(end, id, rank, task.peer, task.amount);
        }
        let leaves = self.options.leaving.binary_search(&TaskId(id)).is_ok();
        if C::PRICED && leaves {
            self.begun(time, id);
            self.leaves.push(Reverse((end.max(self.after(rank, time, &[price.nic])?), id)));
        }
        self.counts[Kind::Send as usize] += 1;
        self.start(id);
        if task.amount <= self.eager && !leaves {
            self.end(id, 0);
        }
        self.next_of_class(event, key, at);
        self.admit(rank, 0);
        Ok(())
    }

    fn message(&mut self, event: Event, id: u32, task: Task, from: u32) -> Result<(), Halt> {
        let key = ClassKey { rank: task.peer, usage: Use::Arrive, cpu: task.cpu, nic: task.nic };
        let at = self.at(key);
        if self.waits(event, id, key, at) {
            return Ok(());
        }
        let (time, price) = (event.time, self.prices.receive(from, task.peer, task.amount));
        let end = self.after(task.peer, time, &[price.cpu, self.noise(task.peer, id, 1)])?;
        self.hold(at.cpu, time, end)?;
        self.hold_nic(task.peer, at.nic, time, price.nic)?;
        self.record(task.peer, Task { kind: Kind::Receive, ..task }, Some(from), time, end);
        let (graph, envelope) = (self.graph, Envelope { source: from, tag: task.tag });
        let posted = |id: u32| {
            let receive = graph.task(TaskId(id));
            Envelope { source: receive.peer, tag: receive.tag }
        };
        match self.matching.take(&mut self.links, task.peer, Side::Receives, envelope, posted) {
            Some(receive) => {
                self.until = end;
                self.end(receive, 0);
                if task.amount > self.eager {
                    self.release_sender(time, id, from, task.peer, task);
                }
            }
            None => {
                self.left_over += 1;
                self.matching.append(&mut self.links, task.peer, Side::Messages, id, envelope);
            }
        }
        self.next_of_class(event, key, at);
        self.admit_both(task.peer, from);
        Ok(())
    }

    fn receive(&mut self, time: u64, id: u32, task: Task, rank: u32) {
        self.counts[Kind::Receive as usize] += 1;
        self.start(id);
        let (graph, owner) = (self.graph, &self.owner);
        let wanted = Envelope { source: task.peer, tag: task.tag };
        let arrived = |id: u32| Envelope { source: owner[id as usize], tag: graph.task(TaskId(id)).tag };
        let mut from = rank;
        match self.matching.take(&mut self.links, rank, Side::Messages, wanted, arrived) {
            Some(message) => {
                self.left_over -= 1;
                self.end(id, 0);
                from = self.owner[message as usize];
                if task.amount > self.eager {
                    self.release_sender(time, message, from, rank, task);
                }
            }
            None => self.matching.append(&mut self.links, rank, Side::Receives, id, wanted),
        }
        self.admit_both(rank, from);
    }

    /// The send of a matched long message is done; CPU and interface, of the numbers that `named` has, were busy so long.
    fn release_sender(&mut self, time: u64, send: u32, from: u32, to: u32, named: Task) {
        let at = self.at(ClassKey { rank: from, usage: Use::Send, cpu: named.cpu, nic: named.nic });
        for clock in [at.cpu, at.nic] {
            self.clocks[clock] = self.clocks[clock].max(time);
        }
        self.end(send, usize::from(from != to));
    }

    fn at(&self, key: ClassKey) -> At {
        let first = self.clocks_each * key.rank as usize;
        let sending = if key.usage == Use::Send { self.graph.nics() as usize } else { 0 };
        let nic = first + self.graph.cpus() as usize + sending + usize::from(key.nic);
        At { cpu: first + usize::from(key.cpu), nic }
    }

    /// When what needs these clocks may start.
    fn free(&self, usage: Use, at: At) -> u64 {
        match usage {
            Use::Compute => self.clocks[at.cpu],
            Use::Send | Use::Arrive => self.clocks[at.cpu].max(self.clocks[at.nic].saturating_sub(self.slack)),
        }
    }

    /// Whether the event has to wait; if so, it will come again.
    fn waits(&mut self, event: Event, id: u32, key: ClassKey, at: At) -> bool {
        let waited = event.what & WAITED != 0;
        if waited && !self.blocked.is_head(key, event.time, event.stamp) {
            return true;
        }
        let free = self.free(key.usage, at);
        if free <= event.time {
            return false;
        }
        if !self.classes {
            self.queue.push(Event { time: free, ..event });
        } else if waited {
            self.blocked.wait_on(key, free);
            self.queue.push(Event { time: free, ..event });
        } else if self.blocked.wait(&mut self.links, key, free, event.stamp, id) {
            self.queue.push(Event { time: free, what: event.what | WAITED, ..event });
        }
        true
    }

    /// After an event that had waited: queues the next one of its class.
    fn next_of_class(&mut self, event: Event, key: ClassKey, at: At) {
        if event.what & WAITED == 0 {
            return;
        }
        let time = self.free(key.usage, at).max(event.time);
        if let Some((stamp, id)) = self.blocked.next(&mut self.links, key, time) {
            self.queue.push(Event { time, stamp, what: id | event.what & (MESSAGE | WAITED) });
        }
    }

    fn hold(&mut self, cpu: usize, from: u64, to: u64) -> Result<(), Halt> {
        self.clocks[cpu] = to;
        if self.classes && to < from { Err(Halt::Fell) } else { Ok(()) }
    }

    fn hold_nic(&mut self, rank: u32, nic: usize, from: u64, ticks: u64) -> Result<(), Halt> {
        // Without slack the interface is free by now, and this is `from`.
        let free = self.clocks[nic].max(from);
        let until = self.after(rank, free, &[ticks])?;
        self.hold(nic, free, until)
    }

    /// `time` and `ticks` later.
    #[inline]
    fn after(&self, rank: u32, time: u64, ticks: &[u64]) -> Result<u64, Halt> {
        if let Some(sum) = ticks.iter().try_fold(time, |sum, &ticks| sum.checked_add(ticks)) {
            return Ok(sum);
        }
        if self.wraps {
            return Ok(ticks.iter().fold(time, |sum, &ticks| sum.wrapping_add(ticks)));
        }
        Err(Halt::Failed(SimError::Overflow { rank }))
    }

    fn noise(&self, rank: u32, id: u32, direction: u64) -> u64 {
        self.options
            .noise
            .filter(|_| self.prices.is_noisy(rank))
            .map_or(0, |noise| noise.ticks(self.options.seed, 2 * u64::from(id) + direction))
    }

    fn start(&mut self, id: u32) {
        self.release(id, true, 0);
    }

    /// `id` is done; what it makes free is noted for its rank's end of the event.
    fn end(&mut self, id: u32, place: usize) {
        let link = &mut self.links[id as usize];
        if link.pending != DONE {
            link.pending = DONE;
            self.done += 1;
            self.release(id, false, place);
        }
    }

    #[inline]
    fn release(&mut self, id: u32, started: bool, place: usize) {
        let graph = self.graph;
        for (later, _) in graph.waiting(TaskId(id)).filter(|w| w.1 == started) {
            if let Some(due) = self.due.get_mut(later.index()) {
                *due = (*due).max(self.until);
            }
            let link = &mut self.links[later.index()];
            link.pending -= 1;
            if link.pending == 0 {
                self.freed[place].push(later.0);
            }
        }
    }

    /// Two ranks have gone on: in the order of their numbers.
    fn admit_both(&mut self, rank: u32, other: u32) {
        if other < rank {
            self.admit(other, 1);
            self.admit(rank, 0);
        } else {
            self.admit(rank, 0);
            self.admit(other, 1);
        }
    }

    /// Stamps and queues what became free at a rank.
    fn admit(&mut self, rank: u32, place: usize) {
        match self.freed[place].len() {
            0 => {}
            1 => {
                let id = self.freed[place][0];
                self.freed[place].clear();
                self.queue_task(rank, id);
            }
            _ => {
                let freed = std::mem::take(&mut self.freed[place]);
                for order in [&[Kind::Send][..], &[Kind::Receive], &[Kind::Calc, Kind::Reduce]] {
                    for &id in &freed {
                        if order.contains(&self.graph.task(TaskId(id)).kind) {
                            self.queue_task(rank, id);
                        }
                    }
                }
                self.freed[place] = freed;
                self.freed[place].clear();
            }
        }
    }

    fn queue_task(&mut self, rank: u32, id: u32) {
        let task = self.graph.task(TaskId(id));
        let usage = if task.kind == Kind::Send { Use::Send } else { Use::Compute };
        let free = self.free(usage, self.at(ClassKey { rank, usage, cpu: task.cpu, nic: task.nic }));
        let time = free.max(self.due.get(id as usize).copied().unwrap_or(0));
        self.queue.push(Event { time, stamp: self.stamp, what: id });
        self.stamp += 1;
    }

    fn record(&mut self, rank: u32, task: Task, peer: Option<u32>, start: u64, end: u64) {
        if !self.traced.is_empty() && self.traced[rank as usize] {
            let bytes = if task.kind == Kind::Calc { 0 } else { task.amount };
            self.trace.push(TraceEvent { rank, kind: task.kind.name(), cpu: task.cpu, peer, bytes, start, end });
        }
    }

    fn finish(self) -> Result<(Run, C), SimError> {
        if let Some(error) = self.carrier.jam() {
            return Err(error);
        }
        let count = self.graph.task_count() as u64 - self.done;
        if count > 0 {
            return Err(SimError::Deadlock { count, stuck: self.stuck() });
        }
        let cpus = self.graph.cpus() as usize;
        let finish: Vec<u64> = match self.clocks_each {
            0 => vec![0; self.graph.rank_count() as usize],
            each => self.clocks.chunks(each).map(|c| c[..cpus].iter().copied().max().unwrap_or(0)).collect(),
        };
        let [sends, receives, calcs, reduces] = self.counts;
        let run = Run {
            makespan: finish.iter().copied().max().unwrap_or(0),
            finish,
            events: self.graph.task_count() as u64 + sends,
            sends,
            receives,
            calcs,
            reduces,
            left_over: self.left_over,
            trace: self.trace,
            watched: self.watched,
            sent: self.sent,
        };
        Ok((run, self.carrier))
    }

    /// Those that wait for another rank come first: the others wait for them.
    fn stuck(&self) -> Vec<Stuck> {
        let all = || (0..narrow::<u32>(self.links.len())).filter(|&id| self.links[id as usize].pending != DONE);
        let free = |id: &u32| self.links[*id as usize].pending == 0;
        all().filter(free).chain(all().filter(|id| !free(id))).take(STUCK_KEPT).map(|id| self.describe(id)).collect()
    }

    fn describe(&self, id: u32) -> Stuck {
        let (rank, task) = (self.owner[id as usize], self.graph.task(TaskId(id)));
        let why = match (self.links[id as usize].pending, task.kind) {
            (0, Kind::Send) => "is sent and not received".to_owned(),
            (0, _) => "gets no message".to_owned(),
            (1, _) => "waits for 1 other task".to_owned(),
            (n, _) => format!("waits for {n} other tasks"),
        };
        Stuck { rank, index: id - self.graph.tasks(rank).start, task, why }
    }
}
