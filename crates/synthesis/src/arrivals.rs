//! Forests of short blocks, grown in time: each tree where its messages arrive early.
//!
//! Latencies decide how long short blocks take, and a link is of use before the data of other ranks can be there. So
//! each message takes the first time that its links have left (as in networks over time; Ford and Fulkerson, 1958), and
//! costs a power of e that grows with its arrival, and one for each link that grows with the link's load. Trees are
//! grown one by one from the cheapest message on, then each of them again in turn, without its own messages, at steeper
//! costs.

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
    slots::{Held, Slots},
};

/// Slots reach until so many times the end of a known forest.
const HORIZON: f64 = 2.0;
/// The exponents of the cost of a message that ends last, round by round.
const STEEP: [f64; 5] = [2.0, 4.0, 8.0, 16.0, 32.0];
/// Differences of costs that count as none.
const CLOSE: f64 = 1e-9;
const NONE: usize = usize::MAX;

/// Between two ranks.
#[derive(Default)]
struct Between {
    arcs: Way,
    /// The links that stand for them.
    links: Vec<u32>,
    latency: f64,
    /// The time of one unit on all links together, and on the slowest one.
    takes: f64,
    slowest: f64,
}

/// A tree with the times of its messages.
#[derive(Clone, Default)]
struct Placed {
    parent: Vec<usize>,
    /// In an order in which every message comes after the one that brings its data.
    messages: Vec<Sent>,
    end: f64,
}

#[derive(Clone)]
struct Sent {
    way: usize,
    held: Held,
    there: f64,
}

struct Grower<'a> {
    ranks: usize,
    depth: u32,
    slots: Slots,
    loads: Loads<'a>,
    ways: Vec<Between>,
    /// Of each way, what the loads of its links cost.
    costs: Vec<f64>,
    /// The time at which a message that arrives costs as much as a link that is busy until the end.
    target: f64,
}

/// Grows trees of each root, of at most `depth` edges from the root downwards, as many as in `known`: the trees of a
/// forest that ends at `end`. The block of each tree is one unit; arcs add `hops`.
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
    // Roots take turns.
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

    /// Computes what loads cost.
    fn aim(&mut self) {
        let links: Vec<f64> = (0..self.loads.classes()).map(|link| self.loads.cost(link)).collect();
        for (cost, way) in self.costs.iter_mut().zip(&self.ways) {
            *cost = way.links.iter().map(|&link| links[link as usize]).sum();
        }
    }

    fn way(&self, from: usize, to: usize) -> usize {
        from * self.ranks + to
    }

    /// What a message costs that is there at a time.
    fn cost(&self, way: usize, there: f64) -> f64 {
        let late = (self.loads.steepness * (there / self.target - 1.0)).exp();
        self.costs[way] + late * self.ways[way].takes
    }

    fn cost_of(&self, placed: &Placed) -> f64 {
        placed.messages.iter().map(|sent| self.cost(sent.way, sent.there)).sum()
    }

    /// When a message that can leave at `ready` is there.
    fn there(&self, way: usize, ready: f64, held: &mut Held) -> f64 {
        self.slots.fit(&self.ways[way].links, ready, held) + self.ways[way].latency
    }

    /// The parents of a tree that is grown from the cheapest message on.
    fn tree(&mut self, root: usize) -> Option<Vec<usize>> {
        poll();
        let n = self.ranks;
        let (mut parent, mut depth, mut there) = (vec![NONE; n], vec![u32::MAX; n], vec![f64::INFINITY; n]);
        let mut best = vec![(f64::INFINITY, NONE); n];
        let mut taken: Vec<Sent> = Vec::with_capacity(n);
        let mut held = Held::default();
        (there[root], depth[root]) = (0.0, 0);
        let mut last = root;
        let found = (1..n).all(|_| {
            if depth[last] < self.depth {
                for to in (0..n).filter(|&to| depth[to] == u32::MAX) {
                    self.offer(&mut best[to], last, to, there[last], &mut held);
                }
            }
            // Costs only grow with the messages of this tree, so the least known one is computed again until it stays.
            let (from, to) = loop {
                let open = (0..n).filter(|&to| depth[to] == u32::MAX);
                let Some(to) = open.min_by(|&a, &b| best[a].0.total_cmp(&best[b].0)) else { return false };
                let (known, from) = best[to];
                if from == NONE {
                    return false;
                }
                best[to] = (f64::INFINITY, NONE);
                self.offer(&mut best[to], from, to, there[from], &mut held);
                if best[to].0 <= known * (1.0 + CLOSE) {
                    break (from, to);
                }
                for from in (0..n).filter(|&from| depth[from] < self.depth) {
                    self.offer(&mut best[to], from, to, there[from], &mut held);
                }
            };
            let way = self.way(from, to);
            there[to] = self.there(way, there[from], &mut held);
            self.slots.take(&self.ways[way].links, &held, 1.0);
            taken.push(Sent { way, held: held.clone(), there: there[to] });
            (parent[to], depth[to], last) = (from, depth[from] + 1, to);
            true
        });
        for Sent { way, held, .. } in taken {
            self.slots.take(&self.ways[way].links, &held, -1.0);
        }
        found.then_some(parent)
    }

    /// Notes a message to a rank where it is cheaper than the best one known.
    fn offer(&self, best: &mut (f64, usize), from: usize, to: usize, ready: f64, held: &mut Held) {
        let way = self.way(from, to);
        if self.ways[way].links.is_empty() || self.costs[way] >= best.0 {
            return;
        }
        let cost = self.cost(way, self.there(way, ready, held));
        if cost < best.0 {
            *best = (cost, from);
        }
    }

    /// Gives the messages of a tree the first time that is left; of a rank's those that have most behind them go first.
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
        // Ranks send in the order in which they have the chunk.
        let mut open = vec![root];
        while let Some(at) = (0..open.len()).min_by(|&a, &b| there[open[a]].total_cmp(&there[open[b]])) {
            let from = open.swap_remove(at);
            for &to in &children[from] {
                let (way, mut held) = (self.way(from, to), Held::default());
                there[to] = self.there(way, there[from], &mut held);
                self.slots.take(&self.ways[way].links, &held, 1.0);
                placed.messages.push(Sent { way, held, there: there[to] });
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

    /// Takes the slots of a tree that was placed before, or with -1 gives them back.
    fn take(&mut self, placed: &Placed, times: f64) {
        for sent in &placed.messages {
            let links = &self.ways[sent.way].links;
            self.slots.take(links, &sent.held, times);
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
