//! The links between ranks and relays, as a directed graph with rates.

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc as Shared};

use rustc_hash::FxHashMap;
use unisono_base::{interrupt::poll, narrow, rounded};
use unisono_machine::network::Plane;

/// All parallel links from one node to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arc {
    pub from: u32,
    pub to: u32,
    /// In units of the graph.
    pub rate: u64,
}

/// Ranks are the nodes `0..ranks`; relays, which only forward, follow.
#[derive(Clone, PartialEq, Debug)]
pub struct Graph {
    ranks: u32,
    arcs: Vec<Arc>,
    /// Arcs that leave each node: `leaving[first[n]..first[n + 1]]`.
    first: Vec<u32>,
    leaving: Vec<u32>,
    /// The node of the plane that each node stands for.
    places: Vec<u32>,
    /// Kilobits per second of a unit of rate.
    unit_kbps: f64,
    /// Of each arc, as the routing of the network counts it; packets take ways of the least length.
    lengths: Vec<u64>,
    /// For each pair of ranks, whether they exchange messages; `None` where all do that ways over relays alone join.
    exchange: Option<Shared<Vec<bool>>>,
}

/// All rates of a plane together are at most 2 to this power, in the unit that is chosen for them, so that sums of
/// rates fit.
const TOTAL_BITS: f64 = 60.0;

/// The length of a way to a node that no way reaches.
const FAR: u64 = u64::MAX;

/// Arcs of a way between two ranks, in order; all nodes between are relays.
pub type Way = Vec<u32>;

/// The ways that messages may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ways {
    /// Any, as the sender chooses.
    Any,
    /// Those of the least length, as networks route messages by themselves.
    Shortest,
}

impl Graph {
    /// Takes the arcs among `nodes` nodes, the first `ranks` of which are ranks. Parallel arcs are joined, and arcs
    /// without a rate are left out.
    ///
    /// # Panics
    /// An arc names a node that does not exist.
    pub fn new(ranks: u32, nodes: u32, arcs: impl IntoIterator<Item = Arc>) -> Self {
        Self::with_places((0..nodes).collect(), ranks, arcs, 1.0)
    }

    /// The graph with the largest unit of which all rates are multiples; `unit_kbps` is that of the rates that are
    /// given.
    fn with_places(places: Vec<u32>, ranks: u32, given: impl IntoIterator<Item = Arc>, unit_kbps: f64) -> Self {
        let mut graph = Self::joined(places, ranks, given, unit_kbps);
        let unit = graph.arcs.iter().map(|arc| arc.rate).fold(0, gcd).max(1);
        graph.arcs.iter_mut().for_each(|arc| arc.rate /= unit);
        graph.unit_kbps *= unit as f64;
        graph
    }

    /// The graph with the rates as they are given.
    fn joined(places: Vec<u32>, ranks: u32, given: impl IntoIterator<Item = Arc>, unit_kbps: f64) -> Self {
        let nodes = places.len();
        let mut known: FxHashMap<(u32, u32), usize> = FxHashMap::default();
        let mut arcs: Vec<Arc> = Vec::new();
        for arc in given.into_iter().filter(|arc| arc.rate > 0 && arc.from != arc.to) {
            poll();
            match known.get(&(arc.from, arc.to)) {
                Some(&at) => arcs[at].rate += arc.rate,
                None => {
                    known.insert((arc.from, arc.to), arcs.len());
                    arcs.push(arc);
                }
            }
        }
        let mut first = vec![0_u32; nodes + 1];
        arcs.iter().for_each(|arc| first[arc.from as usize + 1] += 1);
        for node in 0..nodes {
            first[node + 1] += first[node];
        }
        let (mut next, mut leaving) = (first.clone(), vec![0; arcs.len()]);
        for (at, arc) in (0..).zip(&arcs) {
            leaving[next[arc.from as usize] as usize] = at;
            next[arc.from as usize] += 1;
        }
        let lengths = vec![1; arcs.len()];
        Self { ranks, arcs, first, leaving, places, unit_kbps, lengths, exchange: None }
    }

    /// The graph of the planes of a network together: `places[k]` is the accelerator of rank k, and all other
    /// accelerators and the switches are relays. `gbps` is the rate of one link of a plane. Rates are multiples of a
    /// power of two, rounded up, so that a bound by them is never too high; whole numbers of kbit/s stay exact.
    pub fn of_plane(plane: &Plane, places: &[u32], planes: u32, gbps: impl Fn(u32) -> f64) -> Self {
        const RELAY: u32 = u32::MAX;
        let mut number = vec![RELAY; plane.nodes() as usize];
        for (rank, &place) in (0..).zip(places) {
            number[place as usize] = rank;
        }
        let mut at = places.to_vec();
        for node in 0..plane.nodes() {
            if number[node as usize] == RELAY {
                number[node as usize] = narrow(at.len());
                at.push(node);
            }
        }
        let rate_kbps: Vec<f64> =
            (0..narrow(plane.links().len())).map(|id| kbps(gbps(id) * f64::from(planes))).collect();
        let total_kbps: f64 = rate_kbps.iter().sum();
        let unit_kbps = (total_kbps.max(1.0).log2().ceil() - TOTAL_BITS).exp2();
        let arcs = plane.links().iter().zip(rate_kbps).map(|(link, rate)| Arc {
            from: number[link.from as usize],
            to: number[link.to as usize],
            rate: rounded((rate / unit_kbps).ceil()),
        });
        Self::with_places(at, narrow(places.len()), arcs, unit_kbps)
    }

    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    pub fn nodes(&self) -> u32 {
        narrow(self.places.len())
    }

    pub fn arcs(&self) -> &[Arc] {
        &self.arcs
    }

    /// The node of the plane that a node of the graph stands for.
    pub fn place(&self, node: u32) -> u32 {
        self.places[node as usize]
    }

    pub fn leaving(&self, node: u32) -> &[u32] {
        &self.leaving[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }

    /// Bytes that a unit of rate carries in a nanosecond.
    pub fn bytes_per_ns(&self) -> f64 {
        self.unit_kbps / 8e6
    }

    /// The same, where the links of a plane have these lengths.
    #[must_use]
    pub fn with_lengths(mut self, plane: &Plane, lengths: &[u64]) -> Self {
        let of_ends: FxHashMap<(u32, u32), u64> =
            plane.links().iter().zip(lengths).map(|(link, &length)| ((link.from, link.to), length)).collect();
        let length = |arc: &Arc| of_ends[&(self.place(arc.from), self.place(arc.to))];
        self.lengths = self.arcs.iter().map(length).collect();
        self
    }

    /// Of arcs, as the routing of the network counts them.
    pub(crate) fn lengths(&self) -> &[u64] {
        &self.lengths
    }

    /// The arc against each arc; the arc itself where there is none.
    pub(crate) fn back(&self) -> Vec<u32> {
        let known: FxHashMap<(u32, u32), u32> =
            (0..).zip(&self.arcs).map(|(at, arc)| ((arc.from, arc.to), at)).collect();
        let back = |(at, arc): (u32, &Arc)| *known.get(&(arc.to, arc.from)).unwrap_or(&at);
        (0..).zip(&self.arcs).map(back).collect()
    }

    /// The same graph with all arcs turned round; arc k stays arc k.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let turned = self.arcs.iter().map(|arc| Arc { from: arc.to, to: arc.from, rate: arc.rate });
        Self {
            lengths: self.lengths.clone(),
            ..Self::with_places(self.places.clone(), self.ranks, turned, self.unit_kbps)
        }
    }

    /// The same graph, where two ranks exchange messages only if no way through other ranks has as few links: then slow
    /// links beside a network of fast ones are kept for ranks that are far apart in it, and fewer messages meet on
    /// them. `None` where all ranks that exchange messages are near in this sense.
    pub fn near(&self) -> Option<Self> {
        if self.nodes() == self.ranks || self.lengths.windows(2).all(|pair| pair[0] == pair[1]) {
            return None;
        }
        let by_links = Self { lengths: vec![1; self.arcs.len()], ..self.clone() };
        let mut exchange = Vec::with_capacity((self.ranks as usize).pow(2));
        let mut is_fewer = false;
        for from in 0..self.ranks {
            for (is_reached, is_near) in self.reached(from).into_iter().zip(by_links.reached(from)) {
                exchange.push(is_reached && is_near);
                is_fewer |= is_reached && !is_near;
            }
        }
        is_fewer.then(|| Self { exchange: Some(Shared::new(exchange)), ..self.clone() })
    }

    fn exchanges(&self, from: u32, to: u32) -> bool {
        self.exchange.as_ref().is_none_or(|pairs| pairs[from as usize * self.ranks as usize + to as usize])
    }

    /// The ranks to which a network routes messages from one rank over relays alone: some way over relays is the
    /// shortest of all, and none through another rank is as short.
    pub fn reached(&self, from: u32) -> Vec<bool> {
        let Levels { distance, through_rank, .. } = self.levels(from);
        let direct = |rank: u32| {
            let at = rank as usize;
            rank != from && distance[at] != FAR && !through_rank[at] && self.exchanges(from, rank)
        };
        (0..self.ranks).map(direct).collect()
    }

    /// The arcs on the shortest ways over relays to the ranks that are reached so ([`Graph::reached`]), nearer ones
    /// first.
    pub(crate) fn fan(&self, from: u32) -> Vec<u32> {
        let Levels { order, distance, through_rank } = self.levels(from);
        // Whether a way goes on from a node to a rank; the farthest nodes first.
        let mut used = vec![false; self.places.len()];
        let mut fan = Vec::new();
        for &at in order.iter().rev().filter(|&&at| !through_rank[at as usize]) {
            poll();
            if at < self.ranks && at != from {
                used[at as usize] = self.exchanges(from, at);
                continue;
            }
            for &arc in self.leaving(at) {
                let to = self.arcs[arc as usize].to as usize;
                if distance[to] == distance[at as usize].saturating_add(self.lengths[arc as usize]) && used[to] {
                    fan.push(arc);
                    used[at as usize] = true;
                }
            }
        }
        fan.reverse();
        fan
    }

    fn levels(&self, from: u32) -> Levels {
        let nodes = self.places.len();
        let (mut distance, mut through_rank) = (vec![FAR; nodes], vec![false; nodes]);
        let (mut order, mut done) = (Vec::with_capacity(nodes), vec![false; nodes]);
        distance[from as usize] = 0;
        // Of equally far nodes the one that was found first.
        let (mut open, mut found) = (BinaryHeap::from([Reverse((0, 0_u32, from))]), 0);
        while let Some(Reverse((_, _, at))) = open.pop() {
            poll();
            if std::mem::replace(&mut done[at as usize], true) {
                continue;
            }
            order.push(at);
            let passes = through_rank[at as usize] || (at != from && at < self.ranks);
            for &arc in self.leaving(at) {
                let (to, here) = (self.arcs[arc as usize].to, distance[at as usize] + self.lengths[arc as usize]);
                if here < distance[to as usize] {
                    (distance[to as usize], through_rank[to as usize]) = (here, false);
                    found += 1;
                    open.push(Reverse((here, found, to)));
                }
                if here == distance[to as usize] {
                    through_rank[to as usize] |= passes;
                }
            }
        }
        Levels { order, distance, through_rank }
    }

    /// The arcs and relays that shortest ways between ranks over relays use ([`Graph::reached`]); all ranks, and the
    /// same unit.
    pub fn routed(&self) -> Self {
        if self.nodes() == self.ranks {
            // Without relays, the ways over relays alone are the arcs themselves.
            return self.clone();
        }
        let mut kept = vec![false; self.arcs.len()];
        for from in 0..self.ranks {
            self.fan(from).into_iter().for_each(|arc| kept[arc as usize] = true);
        }
        let arcs = || self.arcs.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(arc, _)| *arc);
        let mut stays: Vec<bool> = (0..self.places.len()).map(|node| node < self.ranks as usize).collect();
        arcs().for_each(|arc| [arc.from, arc.to].into_iter().for_each(|node| stays[node as usize] = true));
        let places = self.places.iter().zip(&stays).filter(|(_, stays)| **stays).map(|(&place, _)| place).collect();
        let mut number = vec![0; stays.len()];
        for (new, old) in (0..).zip((0..stays.len()).filter(|&node| stays[node])) {
            number[old] = new;
        }
        let moved = arcs().map(|arc| Arc { from: number[arc.from as usize], to: number[arc.to as usize], ..arc });
        let lengths = self.lengths.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(&length, _)| length).collect();
        let exchange = self.exchange.clone();
        Self { lengths, exchange, ..Self::joined(places, self.ranks, moved, self.unit_kbps) }
    }

    /// The cheapest ways from one rank to all others over relays, at the prices of arcs; among equal ones those with
    /// the fewest arcs. `price` gets that of the way to each node, infinite where there is none, and `by` the arc by
    /// which it comes there.
    pub(crate) fn ways(&self, from: u32, prices: &[f64], price: &mut [f64], by: &mut [u32]) {
        let nodes = self.places.len();
        price.fill(f64::INFINITY);
        let (mut arcs, mut done) = (vec![u32::MAX; nodes], vec![false; nodes]);
        (price[from as usize], arcs[from as usize]) = (0.0, 0);
        // The graphs are small, so a scan finds the nearest node.
        loop {
            poll();
            let near = (0..nodes).filter(|&n| !done[n] && price[n].is_finite());
            let Some(at) = near.min_by(|&a, &b| price[a].total_cmp(&price[b]).then(arcs[a].cmp(&arcs[b]))) else {
                break;
            };
            done[at] = true;
            if at != from as usize && at < self.ranks as usize {
                continue;
            }
            for &arc in self.leaving(narrow(at)) {
                let to = self.arcs[arc as usize].to as usize;
                let (found, number) = (price[at] + prices[arc as usize], arcs[at] + 1);
                if found < price[to] || (found == price[to] && number < arcs[to]) {
                    (price[to], arcs[to], by[to]) = (found, number, arc);
                }
            }
        }
    }
}

/// Kilobits per second of a rate in Gbit/s. What differs from a whole number by the rounding of decimals is that
/// number.
fn kbps(gbps: f64) -> f64 {
    let kbps = gbps * 1e6;
    let whole = kbps.round();
    if (kbps - whole).abs() <= 4.0 * f64::EPSILON * kbps { whole } else { kbps }
}

/// The nodes of a graph by their distance from one.
struct Levels {
    /// Nearer ones first.
    order: Vec<u32>,
    distance: Vec<u64>,
    /// Whether a shortest way passes a rank.
    through_rank: Vec<bool>,
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
