//! Growth of trees along links with little load.

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc as Shared};

use unisono_base::{interrupt, narrow};

use super::{Hop, Scatter, ScatterTree, Trees};
use crate::{
    Graph, NoForest, Roots, Ways,
    concurrent::{Entering, Search},
    packing::{Edge, Tree},
    translated::Steps,
};

/// The steepness of costs in each round: a factor in the exponent.
const STEEPNESS: [f64; 20] = [
    4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 40.0, 48.0, 64.0, 64.0, 80.0, 96.0, 128.0, 128.0, 160.0, 192.0, 256.0, 256.0,
    384.0, 512.0,
];
/// The next round's target time, divided by the best time so far, if costs have a floor. The target is at least the
/// bound.
const AIM: f64 = 0.97;
/// The largest product of trees and nodes for which trees are grown with and without a floor of costs.
const MOST_TWICE: usize = 1 << 16;
/// The growth with a floor ends after this number of successive rounds without a time below [`BETTER`] times the best
/// time.
const MOST_STAYED: u32 = 4;
/// A time below this multiple of the best time is progress.
const BETTER: f64 = 0.999;
/// The growth ends once a time is at most this multiple of the bound.
const NEAR: f64 = 1.001;
/// No arc, or no node.
const NONE: u32 = u32::MAX;
/// A fraction of the mean price that is added to every price, so that no arc is free.
const LEAST_PRICE: f64 = 0.02;
/// The relative difference up to which costs count as equal.
const SAME: f64 = 1e-9;
/// The largest exponent in a cost, so that costs stay finite.
const MOST_EXPONENT: f64 = 200.0;

pub struct Grower<'a> {
    graph: &'a Graph,
    steps: Option<&'a Steps>,
    entering: Entering,
    /// The index of each arc's load: one for each arc or, with `steps`, each step.
    slot: Vec<u32>,
    rates: Vec<f64>,
    prices: Vec<f64>,
    load: Vec<f64>,
    cost: Vec<f64>,
    steepness: f64,
    /// The part of a link's cost that does not depend on loads, as a multiple of the link's price.
    floor: f64,
    /// A lower bound on the time for blocks of one unit.
    least: f64,
    /// The busy time above which a link's cost grows steeply.
    target: f64,
    chunks: u32,
    /// The roots whose trees are grown. With `steps`, rank 0 represents all roots.
    roots: Roots,
    /// With `steps`, the nodes sorted by their distance from rank 0. Otherwise loads decide the order.
    order: Option<Vec<u32>>,
    /// With `steps`: for each distance of a sender from the root, the number of ranks that joined by each step. The
    /// numbers break ties, because all shortest paths to a node take the same steps in different orders.
    reached_over: Vec<Vec<u32>>,
    /// The least length of a path from rank r to node n, at index `r * nodes + n`. `None` unless messages take shortest
    /// paths and the graph has relays.
    links: Option<Vec<u64>>,
    /// True if the network routes messages between two ranks through relays only ([`Graph::reached`]). Empty if `links`
    /// is `None`.
    reached: Vec<Vec<bool>>,
}

impl<'a> Grower<'a> {
    pub fn new(graph: &'a Graph, steps: Option<&'a Steps>, prices: &[u64], least: f64, ways: Ways) -> Self {
        let arcs = graph.arcs();
        let slot: Vec<u32> = match steps {
            Some(steps) => arcs.iter().map(|arc| steps.step(arc.from, arc.to)).collect(),
            None => (0..narrow(arcs.len())).collect(),
        };
        let slots = steps.map_or(arcs.len(), Steps::count);
        let (mut rates, mut of_slots) = (vec![0.0; slots], vec![0.0; slots]);
        for ((arc, &slot), &price) in arcs.iter().zip(&slot).zip(prices) {
            (rates[slot as usize], of_slots[slot as usize]) = (arc.rate as f64, price as f64);
        }
        let mean = rates.iter().zip(&of_slots).map(|(r, p)| r * p).sum::<f64>() / rates.iter().sum::<f64>();
        of_slots.iter_mut().for_each(|price| *price = *price / mean + LEAST_PRICE);
        let mut search = Search::new(graph);
        let order = steps.is_some().then(|| {
            search.run(graph, prices, 0);
            search.order.clone()
        });
        let relays = graph.nodes() > graph.ranks();
        let links = (ways == Ways::Shortest && relays).then(|| {
            let mut links = Vec::with_capacity(graph.ranks() as usize * graph.nodes() as usize);
            for rank in 0..graph.ranks() {
                interrupt::check();
                search.run(graph, graph.lengths(), rank);
                links.extend(&search.price);
            }
            links
        });
        Self {
            graph,
            steps,
            entering: Entering::new(graph),
            slot,
            load: vec![0.0; slots],
            cost: vec![0.0; slots],
            rates,
            prices: of_slots,
            steepness: 1.0,
            floor: 1.0,
            least,
            target: 1.0,
            chunks: 1,
            roots: Roots::All,
            order,
            reached_over: Vec::new(),
            reached: if links.is_some() {
                (0..graph.ranks()).map(|rank| graph.reached(rank)).collect()
            } else {
                Vec::new()
            },
            links,
        }
    }

    /// Restricts the growth to the trees of some roots.
    pub fn of_roots(self, roots: Roots) -> Self {
        Self { roots, ..self }
    }

    pub fn scatter(mut self, chunks: u32) -> Result<Scatter, NoForest> {
        self.chunks = chunks;
        // A cost of at least the price keeps blocks away from paths with more links than necessary. If many links have
        // price 0, costs that depend on loads alone give better trees.
        let mut best = self.rounds(1.0, AIM)?;
        let work = best.1.len() * self.graph.nodes() as usize;
        if best.0 > NEAR * self.least * f64::from(chunks) && work <= MOST_TWICE {
            let other = self.rounds(0.0, 1.0)?;
            if other.0 < best.0 {
                best = other;
            }
        }
        Ok(self.finish(best.0 / f64::from(chunks), best.1))
    }

    /// Returns the scatter of one chunk along a given tree.
    pub fn along(mut self, tree: Tree) -> Scatter {
        let mut edges = vec![None; self.graph.ranks() as usize];
        let root = tree.root;
        for edge in tree.edges {
            let to = edge.to as usize;
            edges[to] = Some(edge);
        }
        let tree = preorder(root, edges);
        for Hop { edge, blocks } in &tree.hops {
            edge.way.iter().for_each(|&arc| self.load[self.slot[arc as usize] as usize] += f64::from(*blocks));
        }
        self.finish(self.time(), vec![Shared::new(tree)])
    }

    /// Grows all trees again in each round. Returns the shortest busy time of the busiest link after any round, for
    /// chunks of one unit, and the trees of that round. `floor` is the part of costs without loads, as a multiple of
    /// the price; `aim` is the next round's target time, divided by the shortest time so far.
    fn rounds(&mut self, floor: f64, aim: f64) -> Result<(f64, Vec<Shared<ScatterTree>>), NoForest> {
        let roots = if self.steps.is_some() { vec![0] } else { self.roots.list(self.graph.ranks()) };
        let chunks = self.chunks;
        let least = self.least * f64::from(chunks);
        (self.floor, self.target) = (floor, least);
        self.load.fill(0.0);
        let mut trees: Vec<Option<Shared<ScatterTree>>> = vec![None; roots.len() * chunks as usize];
        let mut best: Option<(f64, Vec<Option<Shared<ScatterTree>>>)> = None;
        let mut stayed = 0;
        for steepness in STEEPNESS {
            self.steepness = steepness;
            let levels = if self.steps.is_some() { self.graph.ranks() as usize } else { 0 };
            self.reached_over = vec![vec![0; self.rates.len()]; levels];
            // Chunks are the outer loop, so that the roots take turns.
            for chunk in 0..chunks {
                for (turn, &root) in roots.iter().enumerate() {
                    interrupt::check();
                    let at = turn * chunks as usize + chunk as usize;
                    if let Some(tree) = trees[at].take() {
                        self.unload(&tree);
                    }
                    (0..self.cost.len()).for_each(|slot| self.reprice(slot));
                    trees[at] = Some(Shared::new(self.grow(root)?));
                }
            }
            let time = self.time();
            let is_better = |by: f64| best.as_ref().is_none_or(|best| time < best.0 * by);
            stayed = if is_better(BETTER) { 0 } else { stayed + 1 };
            if is_better(1.0) {
                best = Some((time, trees.clone()));
            }
            let found = best.as_ref().map_or(least, |best| best.0);
            // If the target were far from the busy times, costs would hardly differ.
            self.target = least.max(found * aim);
            if found <= least * NEAR || (floor > 0.0 && stayed == MOST_STAYED) {
                break;
            }
        }
        let (time, trees) = best.expect("a round");
        Ok((time, trees.into_iter().flatten().collect()))
    }

    fn finish(&self, time: f64, trees: Vec<Shared<ScatterTree>>) -> Scatter {
        let ranks = self.graph.ranks() as usize;
        let (mut held, mut messages, mut deepest) = (vec![0_u64; ranks], vec![0_u64; ranks], 0);
        for tree in &trees {
            let mut depth = vec![0_u32; ranks];
            for Hop { edge, blocks } in &tree.hops {
                let (from, to) = (edge.from as usize, edge.to as usize);
                depth[to] = depth[from] + 1;
                deepest = deepest.max(depth[to]);
                held[to] += u64::from(blocks - 1);
                messages[from] += 1;
                messages[to] += 1;
            }
            held[tree.root as usize] += ranks as u64 - 1;
        }
        let most = |of: &[u64]| match self.steps {
            // Over all roots, every rank has each position of the tree of rank 0 once. The total of a rank is therefore
            // the sum over all positions.
            Some(_) => of.iter().sum(),
            None => of.iter().copied().max().unwrap_or(0),
        };
        let (most_held, most_messages) = (most(&held), most(&messages));
        let trees = match self.steps {
            Some(steps) => Trees::Moved { steps: steps.clone(), of: trees },
            None => Trees::RootTrees(trees),
        };
        Scatter { roots: self.roots, chunks: self.chunks, depth: deepest, time, most_held, most_messages, trees }
    }

    /// Returns the busy time of the busiest arc, for chunks of one unit.
    fn time(&self) -> f64 {
        self.load.iter().zip(&self.rates).map(|(load, rate)| load / rate).fold(0.0, f64::max)
    }

    fn unload(&mut self, tree: &ScatterTree) {
        for Hop { edge, blocks } in &tree.hops {
            for &arc in &edge.way {
                self.load[self.slot[arc as usize] as usize] -= f64::from(*blocks);
            }
        }
    }

    fn reprice(&mut self, slot: usize) {
        let busy = (self.load[slot] + 1.0) / (self.rates[slot] * self.target);
        self.cost[slot] = self.prices[slot] * (self.floor + (self.steepness * (busy - 1.0)).min(MOST_EXPONENT).exp());
    }

    /// Returns whether messages may take a path of this length from a rank to a node.
    fn is_way(&self, from: u32, to: u32, length: u64) -> bool {
        let nodes = self.graph.nodes() as usize;
        let Some(of) = &self.links else { return true };
        let is_rank = to < self.graph.ranks();
        of[from as usize * nodes + to as usize] == length && (!is_rank || self.reached[from as usize][to as usize])
    }

    /// Returns the nodes sorted by their distance from the root at the present costs.
    fn nearest_first(&self, root: u32) -> Vec<u32> {
        let nodes = self.graph.nodes() as usize;
        let (mut least, mut order) = (vec![f64::INFINITY; nodes], Vec::with_capacity(nodes));
        least[root as usize] = 0.0;
        // Costs are not negative, so comparing the bits of two costs compares the costs.
        let mut open = BinaryHeap::from([Reverse((0_u64, root))]);
        while let Some(Reverse((bits, at))) = open.pop() {
            if bits > least[at as usize].to_bits() {
                continue;
            }
            order.push(at);
            for &arc in self.graph.leaving(at) {
                let to = self.graph.arcs()[arc as usize].to;
                let found = f64::from_bits(bits) + self.cost[self.slot[arc as usize] as usize];
                if found < least[to as usize] {
                    least[to as usize] = found;
                    open.push(Reverse((found.to_bits(), to)));
                }
            }
        }
        order
    }

    /// Grows the tree of a root and adds its load.
    fn grow(&mut self, root: u32) -> Result<ScatterTree, NoForest> {
        let order = self.order.clone().unwrap_or_else(|| self.nearest_first(root));
        let mut growth = Growth::new(self.graph, &order);
        let mut left = Vec::new();
        for &at in &order[1..] {
            interrupt::poll();
            let is_rank = at < self.graph.ranks();
            let Some((arc, distance)) = self.cheapest(&growth, at) else {
                if is_rank {
                    left.push(at);
                }
                continue;
            };
            growth.by[at as usize] = arc;
            growth.is_joined[at as usize] = true;
            if !is_rank {
                continue;
            }
            if self.steps.is_some() {
                growth.distance[at as usize] = distance + 1;
                self.reached_over[distance as usize][self.slot[arc as usize] as usize] += 1;
            }
            let edge = growth.edge(self.graph, at);
            let relays: Vec<u32> = edge.way[1..].iter().map(|&arc| self.graph.arcs()[arc as usize].from).collect();
            growth.edges[at as usize] = Some(edge);
            self.load_path(&growth.edges, at);
            // With the new load, other paths to these relays may be cheaper for later ranks.
            for relay in relays {
                if let Some((arc, _)) = self.cheapest(&growth, relay) {
                    growth.by[relay as usize] = arc;
                }
            }
        }
        let mut edges = growth.edges;
        self.join(&mut edges, &left)?;
        Ok(preorder(root, edges))
    }

    /// Returns the cheapest arc by which a node can join, and, with `steps`, the distance from the root of the last
    /// rank on its path; `None` if no allowed path leads to the node.
    fn cheapest(&self, growth: &Growth, at: u32) -> Option<(u32, u32)> {
        let graph = self.graph;
        let mut best: Option<(f64, u32, u32)> = None;
        let mut fewest = u32::MAX;
        for &arc in self.entering.of(at) {
            let from = graph.arcs()[arc as usize].from;
            if !growth.is_joined[from as usize] || growth.place[from as usize] > growth.place[at as usize] {
                continue;
            }
            let slot = self.slot[arc as usize] as usize;
            let most = best.map_or(f64::INFINITY, |best| best.0 * (1.0 + SAME));
            // The path leads through relays to the last rank, and from there through ranks to the root.
            let (mut cost, mut up, mut length) = (self.cost[slot], from, graph.lengths()[arc as usize]);
            while up >= graph.ranks() {
                let arc = growth.by[up as usize] as usize;
                cost += self.cost[self.slot[arc] as usize];
                (up, length) = (graph.arcs()[arc].from, length + graph.lengths()[arc]);
            }
            if !self.is_way(up, at, length) {
                continue;
            }
            let distance = growth.distance[up as usize];
            while let Some(edge) = &growth.edges[up as usize]
                && cost < most
            {
                cost += edge.way.iter().map(|&arc| self.cost[self.slot[arc as usize] as usize]).sum::<f64>();
                up = edge.from;
            }
            let reached = if self.steps.is_some() { self.reached_over[distance as usize][slot] } else { 0 };
            if best.is_none_or(|best| cost < best.0 * (1.0 - SAME)) || (cost < most && reached < fewest) {
                (best, fewest) = (Some((cost, arc, distance)), reached);
            }
        }
        best.map(|(_, arc, distance)| (arc, distance))
    }

    /// Adds one block to the load of each link between the root and a rank.
    fn load_path(&mut self, edges: &[Option<Edge>], rank: u32) {
        let mut up = rank;
        while let Some(edge) = &edges[up as usize] {
            for &arc in &edge.way {
                let slot = self.slot[arc as usize] as usize;
                self.load[slot] += 1.0;
                self.reprice(slot);
            }
            up = edge.from;
        }
    }

    /// Joins each remaining rank to the nearest rank of the tree. At these costs, no allowed path leads to these ranks.
    fn join(&mut self, edges: &mut [Option<Edge>], left: &[u32]) -> Result<(), NoForest> {
        if left.is_empty() {
            return Ok(());
        }
        let links = self.links.take().ok_or(NoForest::Unreachable)?;
        let nodes = self.graph.nodes() as usize;
        let far = |from: u32, to: u32| links[from as usize * nodes + to as usize];
        // For each remaining rank: its distance from the tree, the nearest rank of the tree, and the remaining rank.
        let mut near: Vec<(u64, u32, u32)> = left
            .iter()
            .map(|&to| {
                let joined = (0..self.graph.ranks()).filter(|rank| !left.contains(rank));
                joined.map(|from| (far(from, to), from, to)).min().expect("the root is in the tree")
            })
            .collect();
        while let Some(at) = (0..near.len()).min_by_key(|&at| near[at]) {
            interrupt::poll();
            let (_, from, to) = near.swap_remove(at);
            // A rank in between would be nearer, so the path contains only relays.
            let (mut way, mut here) = (Vec::new(), to);
            while here != from {
                let (graph, end) = (self.graph, far(from, here));
                let before = |arc: u32| far(from, graph.arcs()[arc as usize].from);
                let nearer = |&&arc: &&u32| before(arc).checked_add(graph.lengths()[arc as usize]) == Some(end);
                let price = |arc: &u32| self.cost[self.slot[*arc as usize] as usize];
                let arcs = self.entering.of(here).iter().filter(nearer);
                let arc = *arcs.min_by(|a, b| price(a).total_cmp(&price(b))).ok_or(NoForest::Unreachable)?;
                way.push(arc);
                here = self.graph.arcs()[arc as usize].from;
            }
            way.reverse();
            edges[to as usize] = Some(Edge { from, to, way });
            self.load_path(edges, to);
            for other in &mut near {
                *other = (*other).min((far(to, other.2), to, other.2));
            }
        }
        self.links = Some(links);
        Ok(())
    }
}

struct Growth {
    /// The index of each node in the order of visits.
    place: Vec<u32>,
    is_joined: Vec<bool>,
    /// The arc by which each node is reached at present; the arc of a rank never changes.
    by: Vec<u32>,
    /// The message that reaches each rank, once the rank has joined.
    edges: Vec<Option<Edge>>,
    /// With `steps`, the number of links from the root to each rank.
    distance: Vec<u32>,
}

impl Growth {
    fn new(graph: &Graph, order: &[u32]) -> Self {
        let nodes = graph.nodes() as usize;
        let (mut place, mut is_joined) = (vec![NONE; nodes], vec![false; nodes]);
        (0..).zip(order).for_each(|(at, &node)| place[node as usize] = at);
        is_joined[order[0] as usize] = true;
        let ranks = graph.ranks() as usize;
        Self { place, is_joined, by: vec![NONE; nodes], edges: vec![None; ranks], distance: vec![0; ranks] }
    }

    /// Returns the message that reaches a rank, along the relays before it.
    fn edge(&self, graph: &Graph, to: u32) -> Edge {
        let mut way = vec![self.by[to as usize]];
        let mut from = graph.arcs()[way[0] as usize].from;
        while from >= graph.ranks() {
            way.push(self.by[from as usize]);
            from = graph.arcs()[self.by[from as usize] as usize].from;
        }
        way.reverse();
        Edge { from, to, way }
    }
}

/// Sorts the messages of a tree so that those to the descendants of a rank directly follow the message to the rank, and
/// counts the blocks of each.
fn preorder(root: u32, edges: Vec<Option<Edge>>) -> ScatterTree {
    let mut below = vec![Vec::new(); edges.len()];
    for edge in edges.iter().flatten() {
        below[edge.from as usize].push(edge.to);
    }
    let (mut edges, mut hops) = (edges, Vec::with_capacity(below.len() - 1));
    // `Ok`: a rank to visit. `Err`: a hop all of whose descendants are listed.
    let mut open: Vec<Result<u32, usize>> = below[root as usize].iter().rev().map(|&rank| Ok(rank)).collect();
    while let Some(next) = open.pop() {
        match next {
            Ok(rank) => {
                let edge = edges[rank as usize].take().expect("a rank of the tree");
                open.push(Err(hops.len()));
                hops.push(Hop { edge, blocks: 0 });
                open.extend(below[rank as usize].iter().rev().map(|&rank| Ok(rank)));
            }
            Err(hop) => hops[hop].blocks = narrow(hops.len() - hop),
        }
    }
    ScatterTree { root, hops }
}
