//! The links between ranks and relays, as a directed graph whose arcs have rates.

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc as Shared};

use rustc_hash::FxHashMap;
use unisono_base::{interrupt::poll, narrow, rounded};
use unisono_machine::network::Plane;

/// All parallel links from one node to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arc {
    pub from: u32,
    pub to: u32,
    /// The rate of these links together, in the graph's unit ([`Graph::bytes_per_ns`]).
    pub rate: u64,
}

/// A graph whose nodes `0..ranks` are ranks and whose other nodes are relays, which only forward.
#[derive(Clone, PartialEq, Debug)]
pub struct Graph {
    ranks: u32,
    arcs: Vec<Arc>,
    /// The first arc in `leaving` of each node: node n has `leaving[first[n]..first[n + 1]]`.
    first: Vec<u32>,
    /// The arcs, sorted by start.
    leaving: Vec<u32>,
    /// For each node of the graph, its index in the [`Plane`].
    places: Vec<u32>,
    /// The unit of rate, in kilobits per second.
    unit_kbps: f64,
    /// The length of each arc in the routing of the network; packets take paths of the least length.
    lengths: Vec<u64>,
    /// True for each ordered pair of ranks that exchange messages directly. `None` if every pair does that is joined by
    /// a path through relays only.
    exchange: Option<Shared<Vec<bool>>>,
}

/// The logarithm to base 2 of the upper bound on the sum of all rates of a plane, in the unit chosen for the rates. The
/// bound prevents overflow of sums.
const TOTAL_BITS: f64 = 60.0;

/// The distance of a node that cannot be reached.
const FAR: u64 = u64::MAX;

/// A path between two ranks: its arcs in order; all nodes in between are relays.
pub type Way = Vec<u32>;

/// The paths that messages may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ways {
    /// Any path that the sender chooses.
    Any,
    /// The paths of the least length, as in networks that route messages themselves.
    Shortest,
}

impl Graph {
    /// Creates a graph of `nodes` nodes, the first `ranks` of which are ranks. Parallel arcs become one of their total
    /// rate, arcs of rate 0 or from a node to itself are omitted, and rates are divided by their greatest common
    /// divisor.
    ///
    /// # Panics
    /// Panics if an arc names a node that does not exist.
    pub fn new(ranks: u32, nodes: u32, arcs: impl IntoIterator<Item = Arc>) -> Self {
        Self::with_places((0..nodes).collect(), ranks, arcs, 1.0)
    }

    /// Builds the graph in the largest unit for which all rates are whole. Rates in `given` are multiples of
    /// `unit_kbps`, in kilobits per second.
    fn with_places(places: Vec<u32>, ranks: u32, given: impl IntoIterator<Item = Arc>, unit_kbps: f64) -> Self {
        let mut graph = Self::joined(places, ranks, given, unit_kbps);
        let unit = graph.arcs.iter().map(|arc| arc.rate).fold(0, gcd).max(1);
        graph.arcs.iter_mut().for_each(|arc| arc.rate /= unit);
        graph.unit_kbps *= unit as f64;
        graph
    }

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

    /// Builds the graph of all planes of a network together. `places[k]` is the accelerator of rank k; switches and all
    /// other accelerators are relays. `gbps` returns the rate of one link of a plane, in Gbit/s. Rates are rounded up
    /// to multiples of a power of two, so that a bound is never too high; whole numbers of kbit/s remain exact.
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

    /// Returns the index in the [`Plane`] of a node of the graph.
    pub fn place(&self, node: u32) -> u32 {
        self.places[node as usize]
    }

    pub fn leaving(&self, node: u32) -> &[u32] {
        &self.leaving[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }

    /// Returns the bytes that one unit of rate carries in a nanosecond.
    pub fn bytes_per_ns(&self) -> f64 {
        self.unit_kbps / 8e6
    }

    /// Sets the length of each arc to the length of its link in the plane.
    #[must_use]
    pub fn with_lengths(mut self, plane: &Plane, lengths: &[u64]) -> Self {
        let of_ends: FxHashMap<(u32, u32), u64> =
            plane.links().iter().zip(lengths).map(|(link, &length)| ((link.from, link.to), length)).collect();
        let length = |arc: &Arc| of_ends[&(self.place(arc.from), self.place(arc.to))];
        self.lengths = self.arcs.iter().map(length).collect();
        self
    }

    /// Returns the length of each arc in the routing of the network.
    pub(crate) fn lengths(&self) -> &[u64] {
        &self.lengths
    }

    /// Returns the index of each arc's opposite; its own index if there is none.
    pub(crate) fn back(&self) -> Vec<u32> {
        let known: FxHashMap<(u32, u32), u32> =
            (0..).zip(&self.arcs).map(|(at, arc)| ((arc.from, arc.to), at)).collect();
        let back = |(at, arc): (u32, &Arc)| *known.get(&(arc.to, arc.from)).unwrap_or(&at);
        (0..).zip(&self.arcs).map(back).collect()
    }

    /// Returns the graph with all arcs reversed, without the restriction of [`Graph::near`]; arc k remains arc k.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let turned = self.arcs.iter().map(|arc| Arc { from: arc.to, to: arc.from, rate: arc.rate });
        Self {
            lengths: self.lengths.clone(),
            ..Self::with_places(self.places.clone(), self.ranks, turned, self.unit_kbps)
        }
    }

    /// Returns the graph in which two ranks exchange messages directly only if every path through a third rank has more
    /// links than a path through relays only. Slow links beside a fast network are then reserved for ranks that are far
    /// apart in the network, and carry fewer messages. Returns `None` if this excludes no pair of ranks.
    pub fn near(&self) -> Option<Self> {
        if self.nodes() == self.ranks || self.lengths.windows(2).all(|pair| pair[0] == pair[1]) {
            return None;
        }
        let by_links = self.by_links();
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

    /// Returns the graph in which all arcs have the same length.
    fn by_links(&self) -> Self {
        Self { lengths: vec![1; self.arcs.len()], ..self.clone() }
    }

    /// Returns the sum, over all ranks that `from` reaches, of the minimum number of links on a path to the rank. Paths
    /// may pass through other ranks.
    pub fn links_to_ranks(&self, from: u32) -> u64 {
        let mut links = vec![u32::MAX; self.places.len()];
        links[from as usize] = 0;
        let (mut queue, mut k, mut sum) = (vec![from], 0, 0);
        while let Some(&at) = queue.get(k) {
            poll();
            k += 1;
            let here = links[at as usize];
            if at < self.ranks {
                sum += u64::from(here);
            }
            for &arc in self.leaving(at) {
                let to = self.arcs[arc as usize].to;
                if links[to as usize] == u32::MAX {
                    links[to as usize] = here + 1;
                    queue.push(to);
                }
            }
        }
        sum
    }

    fn exchanges(&self, from: u32, to: u32) -> bool {
        self.exchange.as_ref().is_none_or(|pairs| pairs[from as usize * self.ranks as usize + to as usize])
    }

    /// Returns, for each rank, whether messages from `from` reach the rank through relays only. Three conditions must
    /// hold: some path through relays has the least length; every path through another rank is longer; and the two
    /// ranks exchange messages ([`Graph::near`]).
    pub fn reached(&self, from: u32) -> Vec<bool> {
        let Levels { distance, through_rank, .. } = self.levels(from);
        let direct = |rank: u32| {
            let at = rank as usize;
            rank != from && distance[at] != FAR && !through_rank[at] && self.exchanges(from, rank)
        };
        (0..self.ranks).map(direct).collect()
    }

    /// Returns the arcs on the shortest paths through relays to the ranks of [`Graph::reached`], nearest arcs first.
    pub(crate) fn fan(&self, from: u32) -> Vec<u32> {
        let Levels { order, distance, through_rank } = self.levels(from);
        // True for nodes on a path to a rank; computed from the farthest node to the nearest.
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
        // Among nodes at the same distance, the first found is visited first.
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

    /// Returns the graph reduced to arcs and relays on shortest paths through relays between ranks
    /// ([`Graph::reached`]), with all ranks and the same unit.
    pub fn routed(&self) -> Self {
        if self.nodes() == self.ranks {
            // Without relays, every path is a single arc.
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

    /// Computes the cheapest paths through relays from one rank to all nodes at given prices of arcs; among equally
    /// cheap paths, those with the fewest arcs. Sets `price` to the price of each node's path, infinite if there is
    /// none, and `by` to its last arc.
    pub(crate) fn ways(&self, from: u32, prices: &[f64], price: &mut [f64], by: &mut [u32]) {
        let nodes = self.places.len();
        price.fill(f64::INFINITY);
        let (mut arcs, mut done) = (vec![u32::MAX; nodes], vec![false; nodes]);
        (price[from as usize], arcs[from as usize]) = (0.0, 0);
        // The graphs are small, so the nearest node is found by a scan.
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

/// Converts a rate in Gbit/s to kbit/s. A result that differs from a whole number only by decimal rounding becomes that
/// number.
fn kbps(gbps: f64) -> f64 {
    let kbps = gbps * 1e6;
    let whole = kbps.round();
    if (kbps - whole).abs() <= 4.0 * f64::EPSILON * kbps { whole } else { kbps }
}

/// The nodes of a graph sorted by their distance from a start node.
struct Levels {
    /// The nodes, nearest first.
    order: Vec<u32>,
    distance: Vec<u64>,
    /// For each node, true if a shortest path to it has a rank in between.
    through_rank: Vec<bool>,
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
