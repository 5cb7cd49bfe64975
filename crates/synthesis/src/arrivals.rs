//! Forests of short blocks, grown in time: each tree uses links on which its messages arrive early.
//!
//! The time of short blocks depends on latencies, and a link is idle until the data of other ranks arrives. Each
//! message therefore takes the first free time of its links (as in networks over time; Ford and Fulkerson, 1958). Its
//! cost is an exponential of its arrival time plus, for each link, an exponential of the link's load. Trees are grown
//! one by one, message by message, the cheapest first. Then each tree is removed and grown again, in rounds of steeper
//! costs. Times are multiples of that of one unit on an arc of rate 1.

use std::sync::Arc as Shared;

use unisono_base::{
    interrupt::{self, poll},
    narrow,
};

use crate::{
    Way, Ways,
    loads::{Links, Loads},
    packing::{Edge, Tree},
    pricing::Pricing,
    slots::{Reservation, Slots},
};

/// The length of the time covered by slots, divided by the end of the known forest.
const HORIZON: f64 = 2.0;
/// The steepness of costs in each round: a factor in the exponents of costs.
const STEEP: [f64; 5] = [2.0, 4.0, 8.0, 16.0, 32.0];
/// The relative difference up to which costs count as equal.
const CLOSE: f64 = 1e-9;
const NONE: usize = usize::MAX;

/// The cheapest path between two ranks.
#[derive(Default)]
struct Between {
    arcs: Way,
    /// The symmetry class of each link.
    links: Vec<u32>,
    /// The sum of the latencies of the links.
    latency: f64,
    /// The sum of the times that one unit takes on each link.
    takes: f64,
    /// The time of one unit on the slowest link.
    slowest: f64,
}

/// A tree with the times of its messages.
#[derive(Clone, Default)]
struct Placed {
    parent: Vec<usize>,
    /// The messages; each follows the message that brings its data.
    messages: Vec<Sent>,
    end: f64,
}

#[derive(Clone)]
struct Sent {
    /// The path, as an index of [`Grower::ways`].
    way: usize,
    reserved: Reservation,
    /// The arrival time.
    there: f64,
}

struct Grower<'a> {
    ranks: usize,
    depth: u32,
    slots: Slots,
    loads: Loads<'a>,
    /// The path from rank a to rank b, at index `a * ranks + b`.
    ways: Vec<Between>,
    /// The cost of each path that results from the loads of its links.
    costs: Vec<f64>,
    /// The arrival time at which the cost of lateness equals the cost of links that are busy until the end.
    target: f64,
}

/// Grows as many trees for each root as `known` has, of at most `depth` edges from the root. `known` is a forest whose
/// last message arrives at `end`. Each tree carries one unit; `hops` are the latencies of arcs, in the unit of `end`.
/// Returns the trees of each root after the round whose last message arrives earliest.
pub fn grow(
    links: &Links,
    hops: &[f64],
    roots: &[u32],
    depth: Option<u32>,
    known: &[Vec<Shared<Tree>>],
    end: f64,
) -> Vec<Vec<Shared<Tree>>> {
    let (end, chunks) = (end.max(f64::MIN_POSITIVE), known.first().map_or(0, Vec::len));
    let mut loads = Loads::new(links, narrow(chunks), STEEP[0]);
    let mut pricing = Pricing::new(links.graph, Ways::Shortest, depth);
    pricing.reprice(loads.aim(end));
    let mut grower = Grower::new(links, hops, loads, &pricing, depth, end);
    // The roots take turns.
    let of = |at: usize| (at % roots.len(), at / roots.len());
    let mut placed: Vec<Placed> = Vec::with_capacity(roots.len() * chunks);
    for at in 0..roots.len() * chunks {
        let (root, chunk) = of(at);
        grower.aim();
        let parent = grower.tree(roots[root] as usize).unwrap_or_else(|| parents(&known[root][chunk], grower.ranks));
        placed.push(grower.place(roots[root] as usize, parent));
    }
    let last = |placed: &[Placed]| placed.iter().map(|one| one.end).fold(0.0, f64::max);
    let mut best = (last(&placed), placed.clone());
    for steepness in STEEP.into_iter().skip(1) {
        interrupt::check();
        grower.loads.steepness = steepness;
        grower.target = last(&placed);
        for (at, one) in placed.iter_mut().enumerate() {
            grower.take(one, -1.0);
            grower.aim();
            let root = roots[of(at).0] as usize;
            let other = grower.tree(root).map(|parent| grower.place(root, parent));
            let is_better = |other: &Placed| other.parent == one.parent || grower.cost_of(other) < grower.cost_of(one);
            match other {
                Some(other) if is_better(&other) => *one = other,
                other => {
                    other.iter().for_each(|other| grower.take(other, -1.0));
                    grower.take(one, 1.0);
                }
            }
        }
        let end = last(&placed);
        if end < best.0 {
            best = (end, placed.clone());
        }
    }
    let mut trees = vec![Vec::with_capacity(chunks); roots.len()];
    for (at, placed) in best.1.iter().enumerate() {
        let root = of(at).0;
        trees[root].push(Shared::new(grower.listed(roots[root], placed)));
    }
    trees
}

fn parents(tree: &Tree, ranks: usize) -> Vec<usize> {
    let mut parent = vec![NONE; ranks];
    tree.edges.iter().for_each(|edge| parent[edge.to as usize] = edge.from as usize);
    parent
}

impl<'a> Grower<'a> {
    pub fn new(
        links: &Links<'a>,
        hops: &[f64],
        loads: Loads<'a>,
        pricing: &Pricing,
        depth: Option<u32>,
        end: f64,
    ) -> Self {
        let Links { graph, symmetry, .. } = *links;
        let (rates, hops) = (symmetry.rates(graph), symmetry.largest(hops));
        let between = |from: u32, to: u32| {
            if from == to || !pricing.price(from as usize, to as usize).is_finite() {
                return Between::default();
            }
            let arcs = pricing.way(from, to);
            let links: Vec<u32> = arcs.iter().map(|&arc| symmetry.class(arc)).collect();
            let takes = || links.iter().map(|&link| rates[link as usize].recip());
            let (latency, slowest) = (links.iter().map(|&link| hops[link as usize]).sum(), takes().fold(0.0, f64::max));
            Between { latency, slowest, takes: takes().sum(), arcs, links }
        };
        let ranks = 0..graph.ranks();
        let ways: Vec<Between> = ranks
            .clone()
            .flat_map(|from| ranks.clone().map(move |to| (from, to)))
            .map(|(from, to)| between(from, to))
            .collect();
        let costs = vec![0.0; ways.len()];
        let slots = Slots::new(rates, end * HORIZON);
        let depth = depth.unwrap_or(u32::MAX);
        Self { ranks: graph.ranks() as usize, depth, slots, loads, costs, ways, target: end }
    }

    /// Computes the cost of each path from the present loads.
    fn aim(&mut self) {
        let links: Vec<f64> = (0..self.loads.classes()).map(|link| self.loads.cost(link)).collect();
        for (cost, way) in self.costs.iter_mut().zip(&self.ways) {
            *cost = way.links.iter().map(|&link| links[link as usize]).sum();
        }
    }

    fn way(&self, from: usize, to: usize) -> usize {
        from * self.ranks + to
    }

    /// Returns the cost of a message that arrives at time `there`.
    fn cost(&self, way: usize, there: f64) -> f64 {
        let late = (self.loads.steepness * (there / self.target - 1.0)).exp();
        self.costs[way] + late * self.ways[way].takes
    }

    fn cost_of(&self, placed: &Placed) -> f64 {
        placed.messages.iter().map(|sent| self.cost(sent.way, sent.there)).sum()
    }

    /// Returns the arrival time of a message with data at `ready`; stores its slots in `reserved`.
    fn there(&self, way: usize, ready: f64, reserved: &mut Reservation) -> f64 {
        self.slots.fit(&self.ways[way].links, ready, reserved) + self.ways[way].latency
    }

    /// Returns the parents of a tree that grows by its cheapest message, without occupying slots; `None` if a rank is
    /// out of reach.
    fn tree(&mut self, root: usize) -> Option<Vec<usize>> {
        poll();
        let n = self.ranks;
        let (mut parent, mut depth, mut there) = (vec![NONE; n], vec![u32::MAX; n], vec![f64::INFINITY; n]);
        let mut best = vec![(f64::INFINITY, NONE); n];
        let mut taken: Vec<Sent> = Vec::with_capacity(n);
        let mut reserved = Reservation::default();
        (there[root], depth[root]) = (0.0, 0);
        let mut last = root;
        let found = (1..n).all(|_| {
            if depth[last] < self.depth {
                for to in (0..n).filter(|&to| depth[to] == u32::MAX) {
                    self.offer(&mut best[to], last, to, there[last]);
                }
            }
            // While this tree grows, its messages can only raise the costs of other messages. The cheapest message is
            // therefore recomputed until it stays the cheapest.
            let (from, to) = loop {
                let open = (0..n).filter(|&to| depth[to] == u32::MAX);
                let Some(to) = open.min_by(|&a, &b| best[a].0.total_cmp(&best[b].0)) else { return false };
                let (known, from) = best[to];
                if from == NONE {
                    return false;
                }
                best[to] = (f64::INFINITY, NONE);
                self.offer(&mut best[to], from, to, there[from]);
                if best[to].0 <= known * (1.0 + CLOSE) {
                    break (from, to);
                }
                for from in (0..n).filter(|&from| depth[from] < self.depth) {
                    self.offer(&mut best[to], from, to, there[from]);
                }
            };
            let way = self.way(from, to);
            there[to] = self.there(way, there[from], &mut reserved);
            self.slots.take(&self.ways[way].links, &reserved, 1.0);
            taken.push(Sent { way, reserved: reserved.clone(), there: there[to] });
            (parent[to], depth[to], last) = (from, depth[from] + 1, to);
            true
        });
        for Sent { way, reserved, .. } in taken {
            self.slots.take(&self.ways[way].links, &reserved, -1.0);
        }
        found.then_some(parent)
    }

    /// Stores `from` as the parent of rank `to` in `best` if it is cheaper than the stored parent.
    fn offer(&self, best: &mut (f64, usize), from: usize, to: usize, ready: f64) {
        let way = self.way(from, to);
        if self.ways[way].links.is_empty() || self.costs[way] >= best.0 {
            return;
        }
        let Between { links, latency, .. } = &self.ways[way];
        let cost = self.cost(way, self.slots.end(links, ready) + latency);
        if cost < best.0 {
            *best = (cost, from);
        }
    }

    /// Reserves the first free times for the messages of a tree, and adds the tree to the loads. A rank sends first to
    /// the child with the slowest subtree.
    fn place(&mut self, root: usize, parent: Vec<usize>) -> Placed {
        let n = self.ranks;
        let mut children = vec![Vec::new(); n];
        (0..n).filter(|&to| parent[to] != NONE).for_each(|to| children[parent[to]].push(to));
        let mut order = vec![root];
        let mut next = 0;
        while next < order.len() {
            order.extend_from_slice(&children[order[next]]);
            next += 1;
        }
        let mut behind = vec![0.0_f64; n];
        for &to in order.iter().skip(1).rev() {
            let way = &self.ways[self.way(parent[to], to)];
            behind[parent[to]] = behind[parent[to]].max(behind[to] + way.latency + way.slowest);
        }
        children.iter_mut().for_each(|of| of.sort_by(|&a, &b| behind[b].total_cmp(&behind[a])));
        let mut there = vec![0.0_f64; n];
        let mut placed = Placed { parent, messages: Vec::with_capacity(n - 1), end: 0.0 };
        // Senders are processed in the order in which they receive the chunk.
        let mut open = vec![root];
        while let Some(at) = (0..open.len()).min_by(|&a, &b| there[open[a]].total_cmp(&there[open[b]])) {
            let from = open.swap_remove(at);
            for &to in &children[from] {
                let (way, mut reserved) = (self.way(from, to), Reservation::default());
                there[to] = self.there(way, there[from], &mut reserved);
                self.slots.take(&self.ways[way].links, &reserved, 1.0);
                placed.messages.push(Sent { way, reserved, there: there[to] });
                placed.end = placed.end.max(there[to]);
                if !children[to].is_empty() {
                    open.push(to);
                }
            }
        }
        for sent in &placed.messages {
            self.loads.carry(&self.ways[sent.way].links, 1.0);
        }
        placed
    }

    /// Occupies the slots of a tree's messages and adds them to the loads, or undoes both if `times` is -1.
    fn take(&mut self, placed: &Placed, times: f64) {
        for sent in &placed.messages {
            let links = &self.ways[sent.way].links;
            self.slots.take(links, &sent.reserved, times);
            self.loads.carry(links, times);
        }
    }

    fn listed(&self, root: u32, placed: &Placed) -> Tree {
        let mut depth = vec![0; self.ranks];
        let edge = |sent: &Sent| {
            let (from, to) = (sent.way / self.ranks, sent.way % self.ranks);
            depth[to] = depth[from] + 1;
            Edge { from: narrow(from), to: narrow(to), way: self.ways[sent.way].arcs.clone() }
        };
        let edges = placed.messages.iter().map(edge).collect();
        Tree { root, edges, depth: depth.into_iter().max().unwrap_or(0) }
    }
}
