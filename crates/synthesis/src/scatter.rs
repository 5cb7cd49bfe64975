//! Trees along which all ranks scatter their blocks at once, so that the busiest link ends early: an all-to-all.
//!
//! The flow of one source is a mixture of flows along trees, because those are the vertices of its polyhedron; so whole chunks that
//! each travel along one tree come as near to the least time as chunks are small. A message from a rank carries the blocks of all
//! ranks at and below the next one. A tree grows rank by rank, in the order of distances at the prices of the concurrent flow
//! ([`crate::concurrent`]): every rank is joined where the sum of the links' costs is least. A link costs its price, times a
//! power of e that grows with its load. The trees of all ranks are grown again in turn, with steeper costs each time.

use std::sync::Arc as Shared;

use unisono_base::{interrupt, narrow};

use crate::{
    Fabric, Graph, NoForest, Ways,
    concurrent::{Entering, Search},
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

/// Ranks times nodes, chunks and rounds that are grown at most.
const MOST_GROWN: u64 = 1 << 26;
/// The steepness of costs in each round.
const STEEPNESS: [f64; 20] = [
    4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 40.0, 48.0, 64.0, 64.0, 80.0, 96.0, 128.0, 128.0, 160.0, 192.0, 256.0, 256.0,
    384.0, 512.0,
];
/// A time this near to the bound is good enough.
const NEAR: f64 = 1.001;

impl Scatter {
    /// The messages of a tree without their ways, in the same order as [`ScatterTree::hops`].
    pub fn hops(&self, root: u32, chunk: u32) -> Vec<Passed> {
        let passed = |Hop { edge, blocks }: &Hop| Passed { from: edge.from, to: edge.to, blocks: *blocks };
        match &self.trees {
            Trees::Listed(of) => of[(root * self.chunks + chunk) as usize].hops.iter().map(passed).collect(),
            Trees::Moved { steps, of } => {
                let moved = |h: &Hop| Passed {
                    from: steps.moved(h.edge.from, root),
                    to: steps.moved(h.edge.to, root),
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
        let count = jobs.list.len() as u64;
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
        for tree in self.listed() {
            // The first message to each rank, and its place among the batches of the tree.
            let mut brings: Vec<Option<(u32, u32)>> = vec![None; graph.ranks() as usize];
            for (hop, Hop { edge, blocks }) in (0..).zip(&tree.hops) {
                interrupt::poll();
                let mut begun = None;
                for (first, blocks) in batches(hop, *blocks, batch) {
                    let after = brings[edge.from as usize].map(|(job, place)| job + first / batch - place);
                    let units = f64::from(blocks);
                    let job = match steps {
                        Some(steps) => jobs.add_units(after, [steps.step(edge.from, edge.to)], units),
                        None => jobs.add_units(after, edge.way.iter().copied(), units),
                    };
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
    /// Time of one unit that trees aim at, and that no trees reach.
    least: f64,
    target: f64,
    chunks: u32,
    /// Nodes from each root in the order of their distance.
    orders: Vec<Vec<u32>>,
    /// Of nodes at each distance, how many each step reaches: all shortest paths to a node take the same steps, in unlike orders.
    reached: Vec<Vec<u32>>,
    /// Links from each rank to each node, where messages take the ways with the fewest links.
    links: Option<Vec<u16>>,
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
        let roots = if steps.is_some() { 1 } else { graph.ranks() };
        let orders = (0..roots).map(|root| {
            interrupt::check();
            search.run(graph, prices, root);
            search.order.clone()
        });
        let orders = orders.collect();
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
            least,
            target: 1.0,
            chunks: 1,
            orders,
            reached: Vec::new(),
            links,
        }
    }

    fn scatter(mut self, chunks: u32) -> Result<Scatter, NoForest> {
        let roots = narrow::<u32>(self.orders.len());
        let count = (roots * chunks) as usize;
        self.chunks = chunks;
        let least = self.least * f64::from(chunks);
        self.target = least;
        let mut trees: Vec<Option<Shared<ScatterTree>>> = vec![None; count];
        let mut best: Option<(f64, Vec<Option<Shared<ScatterTree>>>)> = None;
        for steepness in STEEPNESS {
            self.steepness = steepness;
            self.reached =
                vec![vec![0; self.rates.len()]; if self.steps.is_some() { self.graph.ranks() as usize } else { 0 }];
            // Chunks are the outer loop, so that roots take turns.
            for chunk in 0..chunks {
                for root in 0..roots {
                    interrupt::check();
                    let at = (root * chunks + chunk) as usize;
                    if let Some(tree) = trees[at].take() {
                        self.add(&tree, -1.0);
                    }
                    (0..self.cost.len()).for_each(|slot| self.reprice(slot));
                    trees[at] = Some(Shared::new(self.grow(root)?));
                }
            }
            let time = self.time();
            if best.as_ref().is_none_or(|best| time < best.0) {
                best = Some((time, trees.clone()));
            }
            // Loads cannot be told apart far from the target.
            self.target = best.as_ref().map_or(least, |best| best.0.min(time)).max(least);
            if self.target <= least * NEAR {
                break;
            }
        }
        let (time, trees) = best.expect("a round");
        let trees: Vec<Shared<ScatterTree>> = trees.into_iter().flatten().collect();
        Ok(self.finish(time / f64::from(chunks), trees))
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

    fn add(&mut self, tree: &ScatterTree, sign: f64) {
        for Hop { edge, blocks } in &tree.hops {
            for &arc in &edge.way {
                self.load[self.slot[arc as usize] as usize] += sign * f64::from(*blocks);
            }
        }
    }

    fn reprice(&mut self, slot: usize) {
        let busy = (self.load[slot] + 1.0) / (self.rates[slot] * self.target);
        self.cost[slot] = self.prices[slot] * (self.steepness * (busy - 1.0)).min(MOST_EXPONENT).exp();
    }

    /// Whether a message from a rank may have gone so many links when it comes to a node.
    fn is_way(&self, from: u32, to: u32, links: u16) -> bool {
        let nodes = self.graph.nodes() as usize;
        self.links.as_ref().is_none_or(|of| of[from as usize * nodes + to as usize] == links)
    }

    /// A tree of a root, whose load is added.
    fn grow(&mut self, root: u32) -> Result<ScatterTree, NoForest> {
        let (graph, nodes) = (self.graph, self.graph.nodes() as usize);
        // The arc that brings each node its blocks, the last rank before it, and the links from there.
        let (mut by, mut last, mut links) = (vec![NONE; nodes], vec![NONE; nodes], vec![0_u16; nodes]);
        last[root as usize] = root;
        let order = std::mem::take(&mut self.orders[root as usize]);
        let mut left = Vec::new();
        let alike = self.steps.is_some();
        for &at in &order[1..] {
            interrupt::poll();
            let mut best = (f64::INFINITY, NONE);
            let mut fewest = u32::MAX;
            for &arc in self.entering.of(at) {
                let from = graph.arcs()[arc as usize].from;
                let before = from as usize;
                if last[before] == NONE || (from >= graph.ranks() && !self.is_way(last[before], at, links[before] + 1))
                {
                    continue;
                }
                let slot = self.slot[arc as usize] as usize;
                let (mut cost, mut up) = (self.cost[slot], before);
                while by[up] != NONE && cost < best.0 * (1.0 + SAME) {
                    cost += self.cost[self.slot[by[up] as usize] as usize];
                    up = graph.arcs()[by[up] as usize].from as usize;
                }
                let reached = if alike { self.reached[usize::from(links[before])][slot] } else { 0 };
                if cost < best.0 * (1.0 - SAME) || (cost < best.0 * (1.0 + SAME) && reached < fewest) {
                    (best, fewest) = ((cost, arc), reached);
                }
            }
            let is_rank = at < graph.ranks();
            if best.1 == NONE {
                if is_rank {
                    left.push(at);
                }
                continue;
            }
            by[at as usize] = best.1;
            let before = graph.arcs()[best.1 as usize].from as usize;
            if is_rank {
                last[at as usize] = at;
                if alike {
                    // Every rank is a link away from the next, and the number of links is the distance from the root.
                    links[at as usize] = links[before] + 1;
                    self.reached[usize::from(links[before])][self.slot[best.1 as usize] as usize] += 1;
                }
                let mut up = at as usize;
                while by[up] != NONE {
                    let slot = self.slot[by[up] as usize] as usize;
                    self.load[slot] += 1.0;
                    self.reprice(slot);
                    up = graph.arcs()[by[up] as usize].from as usize;
                }
            } else {
                (last[at as usize], links[at as usize]) = (last[before], links[before] + 1);
            }
        }
        self.orders[root as usize] = order;
        let mut edges: Vec<Option<Edge>> = (0..graph.ranks())
            .map(|rank| {
                let (mut way, mut at) = (Vec::new(), rank);
                while by[at as usize] != NONE && (way.is_empty() || at >= graph.ranks()) {
                    way.push(by[at as usize]);
                    at = graph.arcs()[by[at as usize] as usize].from;
                }
                way.reverse();
                (!way.is_empty()).then_some(Edge { from: at, to: rank, way })
            })
            .collect();
        self.join(&mut edges, &left)?;
        Ok(preorder(root, edges))
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
            let mut up = to;
            while let Some(edge) = &edges[up as usize] {
                for &arc in &edge.way {
                    let slot = self.slot[arc as usize] as usize;
                    self.load[slot] += 1.0;
                    self.reprice(slot);
                }
                up = edge.from;
            }
            for other in &mut near {
                *other = (*other).min((far(to, other.2), to, other.2));
            }
        }
        self.links = Some(links);
        Ok(())
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
    use super::*;

    #[test]
    fn try_tori() {
        for dims in [&[4_u32, 4][..], &[8, 4], &[5, 7], &[2, 4, 8], &[8, 8], &[16, 16], &[8, 8, 8], &[32, 32]] {
            let graph = crate::concurrent::torus(dims);
            for alike in [true, false] {
                let fabric = Fabric::new(graph.clone(), if alike { dims } else { &[] }, 0.0);
                let bound = fabric.concurrent_flow().unwrap().time();
                for chunks in [1, 4] {
                    if !alike && graph.ranks() * chunks > 100 {
                        continue;
                    }
                    let begin = std::time::Instant::now();
                    let scatter = fabric.scatter(chunks).unwrap();
                    let grown = begin.elapsed();
                    eprintln!(
                        "{dims:?} {alike} {chunks}: {:.4} depth {} {grown:?}",
                        scatter.time / bound,
                        scatter.depth
                    );
                    for batch in [4, 16, 64, 1024] {
                        let begin = std::time::Instant::now();
                        let (end, count) = scatter.end(&graph, batch, 0.0);
                        let each = count as f64
                            / f64::from((graph.ranks() - 1) * chunks)
                            / if alike { 1.0 } else { f64::from(graph.ranks()) };
                        eprintln!("   {batch} {:.4} {each:.2} {:?}", end / bound / f64::from(chunks), begin.elapsed());
                    }
                }
            }
        }
    }
}
