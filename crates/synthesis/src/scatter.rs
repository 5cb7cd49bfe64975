//! Trees along which all ranks scatter their blocks at once, so that the busiest link ends early: an all-to-all.
//!
//! The flow of one source is a mixture of flows along trees, because those are the vertices of its polyhedron; so whole chunks that
//! each travel along one tree come as near to the least time as chunks are small. A message from a rank carries the blocks of all
//! ranks at and below the next one. A tree grows rank by rank, in the order of distances at the prices of the concurrent flow
//! ([`crate::concurrent`]): every rank is joined where the sum of the links' costs is least. A link costs its price, times a
//! power of e that grows with its load. The trees of all ranks are grown again in turn, with steeper costs each time.

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc as Shared};

use rustc_hash::FxHashMap;
use unisono_base::{interrupt, narrow};

use crate::{
    Fabric, Graph, NoForest, Ways,
    concurrent::{Entering, Search},
    fabric::size,
    packing::Edge,
    timetable::Jobs,
    translated::Steps,
};

/// A message of a tree: from one rank to the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hop {
    pub edge: Edge,
    /// Ranks at and below the receiver, whose blocks it carries.
    pub blocks: u32,
}

/// A message of a tree without its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passed {
    pub from: u32,
    pub to: u32,
    /// The first link on its way, as a number that differs for different links of the sender.
    pub link: u32,
    pub blocks: u32,
}

/// A tree of messages from a root to all ranks. The ranks below the receiver of hop k are those of the next hops, `blocks` in all with
/// the receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScatterTree {
    pub root: u32,
    pub hops: Vec<Hop>,
}

/// One tree for each chunk of each root.
#[derive(Clone, Debug)]
pub struct Scatter {
    /// Of the block of every pair of ranks.
    pub chunks: u32,
    /// Messages from a root to the farthest rank.
    pub depth: u32,
    /// The time in which the busiest arc carries its share of blocks of one unit.
    pub time: f64,
    /// Chunks that a rank holds for others or packs, the most of all ranks.
    pub most_held: u64,
    /// Messages that a rank sends and receives, the most of all ranks.
    pub most_messages: u64,
    trees: Trees,
}

#[derive(Clone, Debug)]
enum Trees {
    /// Of each root, its chunks in order.
    Listed(Vec<Shared<ScatterTree>>),
    /// Every root has the trees of rank 0, moved.
    Moved { steps: Steps, of: Vec<Shared<ScatterTree>> },
}

/// One message: the blocks of some ranks over one hop of a tree.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ScatterMessage {
    /// In units of [`Scatter::time`] for one chunk.
    pub begin: f64,
    pub root: u32,
    pub chunk: u32,
    pub hop: u32,
    /// The hop that reaches the first rank whose block it carries; those of the next hops follow.
    pub first: u32,
    pub blocks: u32,
}

/// Ranks times arcs up to which trees for a few chunks are found at once.
const MOST_QUICK: u64 = 10_000;
/// Ranks times nodes, chunks and rounds that are grown at most.
const MOST_GROWN: u64 = 1 << 26;
/// The steepness of costs in each round.
const STEEPNESS: [f64; 20] = [
    4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 40.0, 48.0, 64.0, 64.0, 80.0, 96.0, 128.0, 128.0, 160.0, 192.0, 256.0, 256.0,
    384.0, 512.0,
];
/// The time that trees aim at, as a share of the best so far.
const AIM: f64 = 0.97;
/// Trees times nodes up to which costs with and without a floor are tried.
const MOST_TWICE: usize = 1 << 16;
/// Rounds without a time that is better by this factor end the growth.
const MOST_STAYED: u32 = 4;
const BETTER: f64 = 0.999;
/// A time this near to the bound is good enough.
const NEAR: f64 = 1.001;

impl Scatter {
    /// The messages of a tree without their ways, in the same order as [`ScatterTree::hops`].
    pub fn hops(&self, root: u32, chunk: u32) -> Vec<Passed> {
        let passed =
            |Hop { edge, blocks }: &Hop| Passed { from: edge.from, to: edge.to, link: edge.way[0], blocks: *blocks };
        match &self.trees {
            Trees::Listed(of) => of[(root * self.chunks + chunk) as usize].hops.iter().map(passed).collect(),
            Trees::Moved { steps, of } => {
                let moved = |h: &Hop| Passed {
                    from: steps.moved(h.edge.from, root),
                    to: steps.moved(h.edge.to, root),
                    link: steps.step(h.edge.from, h.edge.to),
                    blocks: h.blocks,
                };
                of[chunk as usize].hops.iter().map(moved).collect()
            }
        }
    }

    /// When all messages are there if a chunk is one unit, a link adds `hop` to its messages, and messages have at most `batch`
    /// blocks. Also returns their number.
    pub fn end(&self, graph: &Graph, batch: u32, hop: f64) -> (f64, u64) {
        let (jobs, rates) = self.jobs(graph, batch);
        let count = jobs.count() as u64;
        (jobs.begins(&rates, hop).1, count)
    }

    /// The messages of all roots in the order in which they begin, where a link adds `hop` to a message of one unit.
    pub fn timetable(&self, graph: &Graph, batch: u32, hop: f64) -> Vec<ScatterMessage> {
        let (jobs, rates) = self.jobs(graph, batch);
        let (begins, _) = jobs.begins(&rates, hop);
        let (mut messages, mut begins) = (Vec::with_capacity(begins.len()), begins.into_iter());
        for (at, tree) in (0..).zip(self.listed()) {
            let (root, chunk) = (at / self.chunks, at % self.chunks);
            for (hop, Hop { blocks, .. }) in (0..).zip(&tree.hops) {
                for (first, blocks) in batches(hop, *blocks, batch) {
                    let begin = begins.next().expect("a job for each message");
                    messages.push(ScatterMessage { begin, root, chunk, hop, first, blocks });
                }
            }
        }
        messages.sort_by(|a, b| a.begin.total_cmp(&b.begin));
        if matches!(self.trees, Trees::Moved { .. }) {
            // Every root has the times of rank 0.
            let all = |m: &ScatterMessage| {
                let m = *m;
                (0..graph.ranks()).map(move |root| ScatterMessage { root, ..m })
            };
            messages = messages.iter().flat_map(all).collect();
        }
        messages
    }

    /// The number of roots whose messages [`Scatter::end`] counts: where all ranks are alike, it counts those of one.
    pub fn listed_roots(&self) -> u64 {
        self.listed().len() as u64 / u64::from(self.chunks)
    }

    /// The trees of all roots, or of rank 0.
    fn listed(&self) -> &[Shared<ScatterTree>] {
        match &self.trees {
            Trees::Listed(of) | Trees::Moved { of, .. } => of,
        }
    }

    /// The messages in the order of roots, chunks and hops, and the rates of their links; of alike roots those of rank 0. A message waits
    /// for the one that brought the same blocks to its sender.
    fn jobs(&self, graph: &Graph, batch: u32) -> (Jobs, Vec<f64>) {
        let mut jobs = Jobs::default();
        let (rates, steps) = match &self.trees {
            Trees::Listed(_) => (graph.arcs().iter().map(|arc| arc.rate as f64).collect(), None),
            Trees::Moved { steps, .. } => (steps.rates(), Some(steps)),
        };
        // Messages of one length over the same links.
        let mut classes: FxHashMap<(&[u32], u32), u32> = FxHashMap::default();
        let mut step_classes: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        for tree in self.listed() {
            // The first message to each rank, and its place among the batches of the tree.
            let mut brings: Vec<Option<(u32, u32)>> = vec![None; graph.ranks() as usize];
            for (hop, Hop { edge, blocks }) in (0..).zip(&tree.hops) {
                interrupt::poll();
                let mut begun = None;
                for (first, blocks) in batches(hop, *blocks, batch) {
                    let after = brings[edge.from as usize].map(|(job, place)| job + first / batch - place);
                    let mut new = |links: &[u32]| jobs.class_of(links, f64::from(blocks));
                    let class = match steps {
                        Some(steps) => {
                            let step = steps.step(edge.from, edge.to);
                            *step_classes.entry((step, blocks)).or_insert_with(|| new(&[step]))
                        }
                        None => *classes.entry((&edge.way, blocks)).or_insert_with(|| new(&edge.way)),
                    };
                    let job = jobs.add(after, class);
                    begun = begun.or(Some((job, first / batch)));
                }
                brings[edge.to as usize] = begun;
            }
        }
        (jobs, rates)
    }
}

/// The messages of a hop with so many blocks, as first hop and number: the list of all blocks is cut after every `batch` of them.
fn batches(hop: u32, blocks: u32, batch: u32) -> impl Iterator<Item = (u32, u32)> {
    let end = hop + blocks;
    (hop / batch..=(end - 1) / batch).map(move |place| {
        let first = hop.max(place * batch);
        (first, end.min((place + 1) * batch) - first)
    })
}

impl Fabric {
    /// Whether any plan may consider such trees.
    pub fn scatters_quickly(&self) -> bool {
        self.steps().is_some() || size(self.graph()) <= MOST_QUICK
    }

    /// Trees for the chunks of all ranks. They are kept.
    ///
    /// # Errors
    /// A rank that cannot be reached; too many ranks.
    pub fn scatter(&self, chunks: u32) -> Result<Shared<Scatter>, NoForest> {
        let lock = || self.known_scatters().lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(found) = lock().get(&chunks) {
            return Ok(Shared::clone(found));
        }
        let graph = self.graph();
        let roots = if self.steps().is_some() { 1 } else { u64::from(graph.ranks()) };
        let nodes = u64::from(graph.nodes());
        if roots * nodes * u64::from(chunks) > MOST_GROWN {
            return Err(NoForest::TooLarge { ranks: graph.ranks(), links: graph.arcs().len() });
        }
        let flow = self.concurrent_flow().ok_or(NoForest::Unreachable)?;
        let made =
            Shared::new(Grower::new(graph, self.steps(), &flow.prices, flow.time(), Ways::Shortest).scatter(chunks)?);
        lock().insert(chunks, Shared::clone(&made));
        Ok(made)
    }
}

/// No arc, or no node.
const NONE: u32 = u32::MAX;
/// What an arc without a price costs, in proportion to the mean price.
const LEAST_PRICE: f64 = 0.02;
/// Relative differences of costs that count as none.
const SAME: f64 = 1e-9;
/// Exponents of costs end here.
const MOST_EXPONENT: f64 = 200.0;

struct Grower<'a> {
    graph: &'a Graph,
    steps: Option<&'a Steps>,
    entering: Entering,
    /// The load of each arc is counted here: one place for each arc, or for each step.
    slot: Vec<u32>,
    rates: Vec<f64>,
    prices: Vec<f64>,
    load: Vec<f64>,
    cost: Vec<f64>,
    steepness: f64,
    /// The part of costs that does not depend on loads.
    floor: f64,
    /// Time of one unit that trees aim at, and that no trees reach.
    least: f64,
    target: f64,
    chunks: u32,
    /// Where all ranks are alike, the nodes in the order of their distance from rank 0. Elsewhere loads decide the order.
    order: Option<Vec<u32>>,
    /// Of nodes at each distance, how many each step reaches: all shortest paths to a node take the same steps, in unlike orders.
    reached_over: Vec<Vec<u32>>,
    /// Links from each rank to each node, where messages take the ways with the fewest links.
    links: Option<Vec<u16>>,
    /// Whether the network routes messages from each rank to each other one over relays alone.
    reached: Vec<Vec<bool>>,
}

impl<'a> Grower<'a> {
    fn new(graph: &'a Graph, steps: Option<&'a Steps>, prices: &[u64], least: f64, ways: Ways) -> Self {
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
            let ones = vec![1; arcs.len()];
            let mut links = Vec::with_capacity(graph.ranks() as usize * graph.nodes() as usize);
            for rank in 0..graph.ranks() {
                interrupt::check();
                search.run(graph, &ones, rank);
                links.extend(search.price.iter().map(|&far| u16::try_from(far).unwrap_or(u16::MAX)));
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

    fn scatter(mut self, chunks: u32) -> Result<Scatter, NoForest> {
        self.chunks = chunks;
        // Costs of at least the price keep blocks from ways that load more links than need be. Where many links have no price, loads
        // alone find more.
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

    /// Grows all trees in rounds, and returns the best time of chunks with its trees.
    fn rounds(&mut self, floor: f64, aim: f64) -> Result<(f64, Vec<Shared<ScatterTree>>), NoForest> {
        let roots = if self.steps.is_some() { 1 } else { self.graph.ranks() };
        let chunks = self.chunks;
        let least = self.least * f64::from(chunks);
        (self.floor, self.target) = (floor, least);
        self.load.fill(0.0);
        let mut trees: Vec<Option<Shared<ScatterTree>>> = vec![None; (roots * chunks) as usize];
        let mut best: Option<(f64, Vec<Option<Shared<ScatterTree>>>)> = None;
        let mut stayed = 0;
        for steepness in STEEPNESS {
            self.steepness = steepness;
            let levels = if self.steps.is_some() { self.graph.ranks() as usize } else { 0 };
            self.reached_over = vec![vec![0; self.rates.len()]; levels];
            // Chunks are the outer loop, so that roots take turns.
            for chunk in 0..chunks {
                for root in 0..roots {
                    interrupt::check();
                    let at = (root * chunks + chunk) as usize;
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
            // Loads cannot be told apart far from the target.
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
            // Every rank has the places of all others.
            Some(_) => of.iter().sum(),
            None => of.iter().copied().max().unwrap_or(0),
        };
        let (most_held, most_messages) = (most(&held), most(&messages));
        let trees = match self.steps {
            Some(steps) => Trees::Moved { steps: steps.clone(), of: trees },
            None => Trees::Listed(trees),
        };
        Scatter { chunks: self.chunks, depth: deepest, time, most_held, most_messages, trees }
    }

    /// The time of the busiest arc.
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

    /// Whether a message from a rank may have gone so many links when it comes to a node.
    fn is_way(&self, from: u32, to: u32, links: u32) -> bool {
        let nodes = self.graph.nodes() as usize;
        let Some(of) = &self.links else { return true };
        let is_rank = to < self.graph.ranks();
        u32::from(of[from as usize * nodes + to as usize]) == links
            && (!is_rank || self.reached[from as usize][to as usize])
    }

    /// Nodes in the order of their distance at the present costs.
    fn nearest_first(&self, root: u32) -> Vec<u32> {
        let nodes = self.graph.nodes() as usize;
        let (mut least, mut order) = (vec![f64::INFINITY; nodes], Vec::with_capacity(nodes));
        least[root as usize] = 0.0;
        // Costs are not negative, so they are ordered as their bits are.
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

    /// A tree of a root, whose load is added.
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
            // With more load, other ways to the relays may be cheaper for the ranks that come.
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

    /// The arc over which a node is joined at the least cost, and the distance of the rank before it.
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
            // Relays to the last rank, and ranks to the root.
            let (mut cost, mut up, mut links) = (self.cost[slot], from, 1);
            while up >= graph.ranks() {
                let arc = growth.by[up as usize] as usize;
                cost += self.cost[self.slot[arc] as usize];
                (up, links) = (graph.arcs()[arc].from, links + 1);
            }
            if links > 1 && !self.is_way(up, at, links) {
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

    /// Adds the block of a rank to all links between it and the root.
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

    /// Joins the ranks that no tree of allowed ways at these prices reaches, each to the nearest rank of the tree.
    fn join(&mut self, edges: &mut [Option<Edge>], left: &[u32]) -> Result<(), NoForest> {
        if left.is_empty() {
            return Ok(());
        }
        let links = self.links.take().ok_or(NoForest::Unreachable)?;
        let nodes = self.graph.nodes() as usize;
        let far = |from: u32, to: u32| links[from as usize * nodes + to as usize];
        // The nearest rank of the tree to each rank that is left.
        let mut near: Vec<(u16, u32, u32)> = left
            .iter()
            .map(|&to| {
                let joined = (0..self.graph.ranks()).filter(|rank| !left.contains(rank));
                joined.map(|from| (far(from, to), from, to)).min().expect("the root is in the tree")
            })
            .collect();
        while let Some(at) = (0..near.len()).min_by_key(|&at| near[at]) {
            interrupt::poll();
            let (_, from, to) = near.swap_remove(at);
            // Ranks between would be nearer, so there are only relays.
            let (mut way, mut here) = (Vec::new(), to);
            while here != from {
                let nearer = |&&arc: &&u32| far(from, self.graph.arcs()[arc as usize].from) + 1 == far(from, here);
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

/// A tree that grows.
struct Growth {
    /// The place of each node in the order in which nodes are joined.
    place: Vec<u32>,
    is_joined: Vec<bool>,
    /// The arc that leads to each node at present; ranks keep theirs.
    by: Vec<u32>,
    /// The messages that reach ranks.
    edges: Vec<Option<Edge>>,
    /// Where all ranks are alike: links from the root to each rank.
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

    /// The message that reaches a rank over the relays before it.
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

/// Orders the messages of a tree so that those below a rank follow the one that reaches it.
fn preorder(root: u32, edges: Vec<Option<Edge>>) -> ScatterTree {
    let mut below = vec![Vec::new(); edges.len()];
    for edge in edges.iter().flatten() {
        below[edge.from as usize].push(edge.to);
    }
    let (mut edges, mut hops) = (edges, Vec::with_capacity(below.len() - 1));
    // Ranks to visit, or with `Err` the hop whose ranks are all listed.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Arc, concurrent::torus};

    /// Every tree reaches every rank once, over ways of relays; the busiest arc has the time.
    fn check(graph: &Graph, scatter: &Scatter) {
        let mut load = vec![0.0; graph.arcs().len()];
        let Trees::Listed(trees) = &scatter.trees else { panic!("trees of all ranks") };
        assert_eq!(trees.len(), (graph.ranks() * scatter.chunks) as usize);
        for tree in trees {
            let mut below = vec![0; graph.ranks() as usize];
            let mut has: Vec<bool> = (0..graph.ranks()).map(|rank| rank == tree.root).collect();
            for Hop { edge, blocks } in &tree.hops {
                assert!(has[edge.from as usize] && !std::mem::replace(&mut has[edge.to as usize], true));
                below[edge.to as usize] = *blocks;
                let mut at = edge.from;
                for &arc in &edge.way {
                    assert!(at == edge.from || at >= graph.ranks());
                    assert_eq!(graph.arcs()[arc as usize].from, at);
                    at = graph.arcs()[arc as usize].to;
                    load[arc as usize] += f64::from(*blocks);
                }
                assert_eq!(at, edge.to);
            }
            assert!(has.into_iter().all(|h| h));
            // The blocks of a hop are those of the ranks that come next.
            for (at, hop) in tree.hops.iter().enumerate() {
                let children = tree.hops.iter().filter(|other| other.edge.from == hop.edge.to);
                assert_eq!(hop.blocks, 1 + children.map(|child| child.blocks).sum::<u32>());
                assert!(at + hop.blocks as usize <= tree.hops.len());
            }
        }
        let busy = graph.arcs().iter().zip(load).map(|(arc, load)| load / arc.rate as f64).fold(0.0, f64::max);
        assert!((busy / f64::from(scatter.chunks) - scatter.time).abs() < 1e-9 * scatter.time);
    }

    #[test]
    fn messages_are_cut_at_every_batch() {
        assert_eq!(batches(3, 6, 4).collect::<Vec<_>>(), [(3, 1), (4, 4), (8, 1)]);
        assert_eq!(batches(3, 6, 100).collect::<Vec<_>>(), [(3, 6)]);
    }

    /// On tori, the links carry only what they must, and are never idle before the end.
    #[test]
    fn tori_end_with_their_bound() {
        for dims in [&[8_u32, 4][..], &[5, 7], &[2, 4, 8], &[8, 8], &[16, 16], &[8, 8, 8], &[32, 32]] {
            let graph = torus(dims);
            let fabric = Fabric::new(graph.clone(), dims, 0.0);
            let scatter = fabric.scatter(1).unwrap();
            let bound = fabric.concurrent_flow().unwrap().time();
            assert!((scatter.time / bound - 1.0).abs() < 1e-9, "{dims:?} {} {bound}", scatter.time);
            let end = scatter.end(&graph, 16, 0.0).0;
            assert!(end < 1.01 * bound, "{dims:?} {end} {bound}");
        }
        // Without the symmetry.
        let graph = torus(&[8, 4]);
        let fabric = Fabric::new(graph.clone(), &[], 0.0);
        let scatter = fabric.scatter(4).unwrap();
        check(&graph, &scatter);
        assert!(scatter.time < 1.02 * fabric.concurrent_flow().unwrap().time());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn trees_come_near_the_bound(
            ranks in 2_u32..7,
            relays in 0_u32..3,
            cables in prop::collection::vec((0_u32..9, 0_u32..9, 1_u64..9), 1..20),
        ) {
            let nodes = ranks + relays;
            // A line, so that every rank is reached.
            let line = (0..nodes - 1).map(|n| (n, n + 1, 2));
            let cables = line.chain(cables.into_iter().map(|(a, b, rate)| (a % nodes, b % nodes, rate)));
            let arcs = cables.flat_map(|(a, b, rate)| [Arc { from: a, to: b, rate }, Arc { from: b, to: a, rate }]);
            let graph = Graph::new(ranks, nodes, arcs);
            let fabric = Fabric::new(graph.clone(), &[], 0.0);
            let flow = fabric.concurrent_flow().unwrap();
            // Messages on any ways come near the bound, and on the ways of the network they exist.
            let any = Grower::new(&graph, None, &flow.prices, flow.time(), Ways::Any).scatter(64).unwrap();
            check(&graph, &any);
            prop_assert!(any.time >= flow.time() * (1.0 - 1e-9));
            prop_assert!(any.time < 1.1 * flow.time(), "{} {}", any.time, flow.time());
            let shortest = fabric.scatter(3).unwrap();
            check(&graph, &shortest);
            prop_assert!(shortest.time >= flow.time() * (1.0 - 1e-9));
            let messages = shortest.timetable(&graph, 2, 0.0);
            prop_assert!(shortest.end(&graph, 2, 0.0).0 >= 3.0 * shortest.time * (1.0 - 1e-9));
            let blocks: u32 = messages.iter().map(|m| m.blocks).sum();
            let hops = (0..ranks).flat_map(|root| (0..3).map(move |chunk| (root, chunk)));
            let all: u32 = hops.flat_map(|(root, chunk)| shortest.hops(root, chunk)).map(|hop| hop.blocks).sum();
            prop_assert_eq!(blocks, all);
        }
    }
}
