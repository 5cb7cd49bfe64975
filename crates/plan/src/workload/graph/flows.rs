//! The times of a program by flows: each group of each collective is a flow on the links that its messages use.
//!
//! A single group takes the time of the model, and keeps each link busy for a fraction of this time. Groups that are
//! under way at the same time share links max-min fairly: each group proceeds at a rate of at most 1, and on each link
//! the busy fractions times the rates add up to at most 1. A group begins when its last rank reaches the collective.
//! Unlike in the model, the groups of a collective do not wait for each other, and groups of different collectives
//! share links.

use std::{cmp::Reverse, collections::BinaryHeap};

use rustc_hash::FxHashMap;
use unisono_base::{interrupt, limits, narrow};
use unisono_sim::network::flow::max_min::Flows;
use unisono_workload::{Queues, Work, WorkloadGraph};

use super::{
    super::WorkloadError,
    Interval, ProgramPrices,
    occurrences::{Occurrence, Occurrences},
    report::{NodeTimes, computed_seconds},
    reported::reported,
    routes::{Group, routes},
};
use crate::PlanError;

/// If groups end within this multiple of the time until the next end, each gets its own time of end, but they free
/// their links together.
const TOGETHER: f64 = 1.02;
/// The bytes of the tables for each node on each rank.
const BYTES_OF_NODE: u128 = 64;

/// A group that is under way.
struct Active {
    row: usize,
    group: usize,
    node_of: Occurrence,
    begin: f64,
    /// The seconds of the remaining communication without other traffic.
    left: f64,
    rate: f64,
}

/// The end of a node as an event: the bits of its time, its rank and its index.
type End = (u64, u32, u32);

struct Run<'a, S> {
    graph: &'a WorkloadGraph,
    occurrences: &'a Occurrences,
    rows: &'a [Vec<Option<usize>>],
    seconds: S,
    overlap: bool,
    /// For each row of the prices, its groups.
    groups: Vec<Vec<Group>>,
    /// For each row, the index of each rank's group; `None` if the rank is in no group.
    of_rank: Vec<Vec<Option<u32>>>,
    /// The sum of the busy fractions of active groups on each link.
    loads: Vec<f64>,
    /// True if a group began or ended since rates were computed.
    changed: bool,
    times: Vec<Vec<Interval>>,
    done: Vec<Vec<bool>>,
    /// For each rank, the next node of each queue; without overlap only the first queue is used.
    next: Vec<[u32; 2]>,
    /// For each rank and queue, true if its next node is under way.
    busy: Vec<[bool; 2]>,
    came: FxHashMap<(Occurrence, u32), (usize, f64)>,
    active: Vec<Active>,
    ends: BinaryHeap<Reverse<End>>,
    events: u64,
}

/// Times a program by flows. `rows` holds the row in the prices of each node's communication, by class. `seconds`
/// returns the time of a node that computes.
///
/// # Errors
///
/// Returns an error if queues take nodes as they become ready, as in programs with messages between pairs, or if the
/// program has more nodes than a limit admits.
pub(super) fn flow(
    prices: &ProgramPrices,
    rows: &[Vec<Option<usize>>],
    overlap: bool,
    seconds: impl Fn(usize, usize) -> f64,
) -> Result<NodeTimes, PlanError> {
    let graph = prices.graph();
    if graph.queues == Queues::AsReady {
        return Err(WorkloadError::NoFlows(graph.name.clone()).into());
    }
    let nodes: u128 = graph.classes.iter().map(|class| (class.nodes.len() * class.ranks.len()) as u128).sum();
    limits::admit("the flows of the program", BYTES_OF_NODE * nodes, 0)?;
    let occurrences = Occurrences::new(graph);
    let groups = routes(prices)?;
    let of_rank = groups.iter().map(|of_row| {
        let mut of = vec![None; graph.ranks as usize];
        for (n, group) in of_row.iter().enumerate() {
            group.ranks.iter().for_each(|&rank| of[rank as usize] = Some(narrow(n)));
        }
        of
    });
    let each = |class: usize| graph.classes[class].nodes.len();
    let classes = || occurrences.class_of.iter().copied();
    let run = Run {
        graph,
        occurrences: &occurrences,
        rows,
        seconds,
        overlap,
        of_rank: of_rank.collect(),
        groups,
        loads: vec![0.0; prices.link_count()],
        changed: false,
        times: classes().map(|class| vec![Interval::default(); each(class)]).collect(),
        done: classes().map(|class| vec![false; each(class)]).collect(),
        next: vec![[0, 0]; graph.ranks as usize],
        busy: vec![[false, false]; graph.ranks as usize],
        came: FxHashMap::default(),
        active: Vec::new(),
        ends: BinaryHeap::new(),
        events: 0,
    };
    Ok(run.run())
}

/// Returns the bits of a time. Times are not negative, so bits have the order of the times.
fn key(time: f64) -> u64 {
    time.to_bits()
}

impl<S: Fn(usize, usize) -> f64> Run<'_, S> {
    fn run(mut self) -> NodeTimes {
        for rank in 0..self.graph.ranks {
            self.advance(rank, 0.0);
        }
        let mut now = 0.0;
        loop {
            interrupt::check();
            self.share();
            let flows = self.active.iter().map(|one| one.left / one.rate).fold(f64::INFINITY, f64::min);
            let event = self.ends.peek().map_or(f64::INFINITY, |Reverse(end)| f64::from_bits(end.0));
            let then = event.min(now + flows);
            if then.is_infinite() {
                break;
            }
            let together = if now + flows <= event { flows * TOGETHER } else { -1.0 };
            let (mut ended, passed) = (Vec::new(), then - now);
            self.active.retain_mut(|one| {
                let until = one.left / one.rate;
                one.left -= one.rate * passed;
                let ends = until <= together;
                if ends {
                    ended.push((one.row, one.group, one.node_of, Interval { begin: one.begin, end: now + until }));
                }
                !ends
            });
            now = then;
            self.changed |= !ended.is_empty();
            for (row, group, occurrence, time) in ended {
                self.end_group(row, group, occurrence, time);
            }
            // All nodes that end at this time are handled before rates are computed again.
            while let Some(&Reverse((bits, rank, node))) = self.ends.peek().filter(|Reverse(end)| end.0 <= key(now)) {
                self.ends.pop();
                self.end(rank, node, f64::from_bits(bits));
            }
        }
        let ends: Vec<f64> = self.times.iter().map(|of| of.iter().map(|time| time.end).fold(0.0, f64::max)).collect();
        let computed = (0..self.graph.classes.len()).map(|class| computed_seconds(self.graph, class, &self.seconds));
        let computed: Vec<f64> = computed.collect();
        let last = reported(&ends, |rank| computed[self.occurrences.class_of[rank]]);
        NodeTimes {
            rank: narrow(last),
            class: self.occurrences.class_of[last],
            times: self.times.swap_remove(last),
            seconds: ends.into_iter().fold(0.0, f64::max),
            packets: None,
            events: Some(self.events),
        }
    }

    /// Computes the rate of each active group.
    fn share(&mut self) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        self.loads.fill(0.0);
        for one in &self.active {
            let links = &self.groups[one.row][one.group].links;
            links.iter().for_each(|&(link, part)| self.loads[link as usize] += part);
        }
        if self.loads.iter().all(|&load| load <= 1.0 + 1e-9) {
            self.active.iter_mut().for_each(|one| one.rate = 1.0);
            return;
        }
        // Each group has an additional link of its own, which limits its rate to 1.
        let mut flows = Flows::new(vec![1.0; self.loads.len() + self.active.len()]);
        let mut shares = Vec::new();
        for (n, one) in self.active.iter().enumerate() {
            shares.clear();
            shares.extend_from_slice(&self.groups[one.row][one.group].links);
            shares.push((narrow(self.loads.len() + n), 1.0));
            flows.push(&shares);
        }
        let rates = flows.rates(|_| true);
        self.active.iter_mut().zip(rates).for_each(|(one, rate)| one.rate = rate);
    }

    fn queue(&self, work: &Work) -> usize {
        usize::from(self.overlap && !work.is_compute())
    }

    /// Begins the next nodes of a rank whose queues are free and whose predecessors have ended.
    fn advance(&mut self, rank: u32, now: f64) {
        let class = self.occurrences.class_of[rank as usize];
        let nodes = &self.graph.classes[class].nodes;
        for queue in 0..2 {
            let at = &mut self.next[rank as usize][queue];
            while (*at as usize) < nodes.len()
                && usize::from(self.overlap && !nodes[*at as usize].work.is_compute()) != queue
            {
                *at += 1;
            }
            let (node, done) = (*at as usize, &self.done[rank as usize]);
            if self.busy[rank as usize][queue]
                || node >= nodes.len()
                || nodes[node].after.iter().any(|&before| !done[before as usize])
            {
                continue;
            }
            self.busy[rank as usize][queue] = true;
            self.times[rank as usize][node].begin = now;
            match (self.rows[class][node], self.occurrences.of[class][node]) {
                (Some(row), Some(occurrence)) => self.come(rank, row, occurrence, now),
                _ => self.ends.push(Reverse((key(now + (self.seconds)(class, node)), rank, narrow(node)))),
            }
        }
    }

    /// Handles a rank that reaches a communication, which begins when all ranks of its group have reached it.
    fn come(&mut self, rank: u32, row: usize, occurrence: Occurrence, now: f64) {
        let Some(group) = self.of_rank[row][rank as usize] else {
            let class = self.occurrences.class_of[rank as usize];
            let node = self.occurrences.nodes[class][&occurrence];
            self.ends.push(Reverse((key(now), rank, narrow(node))));
            return;
        };
        let came = self.came.entry((occurrence, group)).or_insert((0, now));
        *came = (came.0 + 1, came.1.max(now));
        let of = &self.groups[row][group as usize];
        if came.0 == of.ranks.len() {
            let begin = came.1;
            self.came.remove(&(occurrence, group));
            let (group, left) = (group as usize, of.seconds);
            self.changed = true;
            self.active.push(Active { row, group, node_of: occurrence, begin, left, rate: 1.0 });
        }
    }

    fn end_group(&mut self, row: usize, group: usize, occurrence: Occurrence, time: Interval) {
        for n in 0..self.groups[row][group].ranks.len() {
            let rank = self.groups[row][group].ranks[n];
            let node = self.occurrences.nodes[self.occurrences.class_of[rank as usize]][&occurrence];
            self.times[rank as usize][node].begin = time.begin;
            self.ends.push(Reverse((key(time.end), rank, narrow(node))));
        }
    }

    fn end(&mut self, rank: u32, node: u32, now: f64) {
        self.events += 1;
        let class = self.occurrences.class_of[rank as usize];
        let queue = self.queue(&self.graph.classes[class].nodes[node as usize].work);
        self.times[rank as usize][node as usize].end = now;
        self.done[rank as usize][node as usize] = true;
        self.busy[rank as usize][queue] = false;
        self.next[rank as usize][queue] = node + 1;
        self.advance(rank, now);
    }
}
