//! The event engine: its state, and the loop over its events. The other files of the module implement its rules.

use std::{cmp::Reverse, collections::BinaryHeap};

use rustc_hash::FxHashMap;
use unisono_base::{TaskId, interrupt::poll, limits, narrow};
use unisono_cost::endpoint::Prices;
use unisono_lower::tasks::{Kind, Task, TaskGraph};

use super::{
    Options, Run, SimError, TraceEvent,
    blocked::{Blocked, ClassKey, Waiter},
    carrier::{AsPriced, Carried, Carrier},
    link::Link,
    matching::Matching,
};
use unisono_base::queue::{Event, Queue};

/// A flag of an event: the event concerns the message of its task, not the task itself.
pub(super) const MESSAGE: u32 = 1 << 31;
/// A flag of an event: the event is the head of a class ([`super::blocked`]).
pub(super) const WAITED: u32 = 1 << 30;
/// The largest number of clocks of all ranks together. At 8 bytes each, these take half a gigabyte.
const MOST_CLOCKS: u64 = 1 << 26;
/// The bytes of an engine's tables, without its graph, for each task. [`RANK_BYTES`] are the bytes for each rank with
/// one CPU and one interface, which has three clocks.
pub(crate) const TASK_BYTES: u128 = size_of::<Link>() as u128;
pub(crate) const RANK_BYTES: u128 = Blocked::RANK_BYTES + Matching::RANK_BYTES + 3 * size_of::<u64>() as u128;
/// Estimated steps to execute a task and its message.
const STEPS_A_TASK: u128 = 100;

pub(super) fn run<P: Prices>(graph: &TaskGraph, prices: &P, options: &Options) -> Result<Run, SimError> {
    run_with(graph, prices, options, || AsPriced).map(|done| done.0)
}

/// Runs the tasks of the ranks with a carrier for their messages. Also returns the carrier.
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

pub(crate) fn check(graph: &TaskGraph, options: &Options) -> Result<(), SimError> {
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
    // Memory in addition to the graph: each task's link, due time, waiter, and events in the queue and its buckets.
    let tasks = graph.task_count() as u128;
    let each = size_of::<Link>() + size_of::<u64>() + size_of::<Waiter>() + 2 * size_of::<Event>();
    limits::admit("the simulation of the tasks", each as u128 * tasks + 8 * u128::from(clocks), STEPS_A_TASK * tasks)?;
    Ok(())
}

/// Reason why a run ends early.
pub(super) enum Halt {
    /// A clock decreased, so classes are not valid. Only negative prices cause this; in LogGOPSim's arithmetic, a
    /// message of 0 bytes has a negative price.
    Fell,
    Failed(SimError),
}

pub(super) struct Engine<'a, P, C> {
    pub(super) graph: &'a TaskGraph,
    pub(super) carrier: C,
    pub(super) prices: &'a P,
    pub(super) options: &'a Options,
    /// True if waiting events form classes. Otherwise each event is queued again individually.
    pub(super) classes: bool,
    /// True if a message's price may be negative. Clocks are then computed modulo 2^64.
    pub(super) wraps: bool,
    /// True if messages occupy CPUs. If false, messages occupy interfaces only.
    pub(super) uses_cpus: bool,
    pub(super) slack: u64,
    pub(super) eager: u64,
    /// Clocks of each rank, in this order: CPUs, interfaces that receive, interfaces that send.
    pub(super) clocks: Vec<u64>,
    pub(super) clocks_each: usize,
    pub(super) links: Vec<Link>,
    pub(super) queue: Queue,
    pub(super) blocked: Blocked,
    pub(super) matching: Matching,
    pub(super) stamp: u32,
    /// The tasks that the current event made free: at its own rank (index 0), and at the rank at the other end of the
    /// message (index 1).
    pub(super) freed: [Vec<u32>; 2],
    /// The earliest start of each task that tasks on other CPUs allow. Empty with one CPU, or with independent CPUs.
    pub(super) due: Vec<u64>,
    /// Time at which the task or message of the current event ends.
    pub(super) until: u64,
    pub(super) done: u64,
    pub(super) counts: [u64; 4],
    pub(super) left_over: u64,
    pub(super) traced: Vec<bool>,
    pub(super) trace: Vec<TraceEvent>,
    pub(super) watched: Vec<u64>,
    pub(super) sent: Vec<[u64; 2]>,
    /// Messages with a known future departure, as (time, task), earliest first.
    pub(super) leaves: BinaryHeap<Reverse<(u64, u32)>>,
    /// For each clock: true while it belongs to a CPU that waits for a message to leave. Empty unless sends block.
    pub(super) held: Vec<bool>,
    /// The events that wait for a CPU of which `held` is true, in the order of their arrival. The key is the index of
    /// the CPU's clock.
    pub(super) parked: FxHashMap<usize, Vec<(Event, ClassKey)>>,
    /// The number of events that were read ahead but not taken yet.
    ahead: usize,
}

impl<'a, P: Prices, C: Carrier> Engine<'a, P, C> {
    pub(super) fn new(graph: &'a TaskGraph, prices: &'a P, options: &'a Options, classes: bool, carrier: C) -> Self {
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
        let held = if options.blocking { vec![false; clocks.len()] } else { Vec::new() };
        let mut links = Vec::with_capacity(graph.task_count());
        (0..ranks).for_each(|rank| links.extend(graph.tasks(rank).map(|_| Link::new(rank))));
        let mut wraps = false;
        for task in 0..narrow(graph.task_count()) {
            if task % 64 == 0 {
                poll();
            }
            let Task { kind, amount, .. } = graph.task(TaskId(task));
            wraps |= kind == Kind::Send && prices.may_wrap(amount);
            for (later, _) in graph.waiting(TaskId(task)) {
                links[later.index()].wait();
            }
        }
        Self {
            graph,
            carrier,
            prices,
            options,
            classes,
            wraps,
            uses_cpus: prices.uses_cpus(),
            slack: prices.gap_slack(),
            eager: prices.eager_bytes(),
            clocks,
            clocks_each,
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
            held,
            parked: FxHashMap::default(),
            ahead: 0,
        }
    }

    /// Queues the tasks of a rank that wait for no other task.
    pub(super) fn begin(&mut self, rank: u32) {
        let tasks = self.graph.tasks(rank);
        poll();
        let mut free = std::mem::take(&mut self.freed[0]);
        free.extend(tasks.filter(|&task| self.links[task as usize].is_free()));
        self.freed[0] = free;
        let before = self.stamp;
        self.admit(rank, 0);
        self.carrier.began(rank, self.stamp - before);
    }

    fn run(mut self) -> Result<(Run, C), Halt> {
        (0..self.graph.rank_count()).for_each(|rank| self.begin(rank));
        if C::PRICED && self.options.leaving.is_empty() {
            while let Some(event) = self.next() {
                self.step(event)?;
            }
        } else {
            self.run_carried(u64::MAX)?;
        }
        self.finish().map_err(Halt::Failed)
    }

    /// Returns the next event of the ranks.
    #[inline]
    fn next(&mut self) -> Option<Event> {
        let event = self.queue.pop();
        if self.ahead == 0 {
            poll();
            self.ahead = self.read_ahead();
        } else {
            self.ahead -= 1;
        }
        event
    }

    /// Runs all events up to the time `last`. Arrivals and departures up to the time of the ranks' next event are
    /// executed before this event.
    pub(super) fn run_carried(&mut self, last: u64) -> Result<(), Halt> {
        loop {
            let next = self.queue.peek().map_or(u64::MAX, |event| event.time);
            let until = next.min(last);
            let leave = self.leaves.peek().map(|&Reverse(leave)| leave).filter(|leave| leave.0 <= until);
            if let Some((time, id, carried)) = self.carrier.report(leave.map_or(until, |leave| leave.0)) {
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
            } else if next > last {
                return Ok(());
            } else if let Some(event) = self.next() {
                let before = self.stamp;
                self.step(event)?;
                self.carrier.stepped(event.time, event.stamp, self.stamp - before);
            } else {
                return Ok(());
            }
        }
    }

    /// Records the time at which the sender of a message begins to work on it.
    pub(super) fn begun(&mut self, time: u64, id: u32) {
        if let Ok(at) = self.options.leaving.binary_search(&TaskId(id)) {
            self.sent[at][0] = time;
        }
    }

    /// Records that a message has left. If the message is eager, its send ends.
    fn left(&mut self, time: u64, id: u32) {
        if let Ok(at) = self.options.leaving.binary_search(&TaskId(id)) {
            self.sent[at][1] = time;
        }
        self.let_go(time, id);
        if self.graph.task(TaskId(id)).amount <= self.eager {
            self.until = time;
            self.end(id, 0);
            self.admit(self.links[id as usize].owner, 0);
        }
    }
}
