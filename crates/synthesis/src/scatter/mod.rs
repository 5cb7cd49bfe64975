//! All-to-alls: trees along which all ranks scatter their blocks at once, so that the busiest link ends early. The
//! trees of a single root form a scatter.
//!
//! The flow of one source is a mixture of flows along trees, because those are the vertices of its polyhedron. So the
//! time of whole chunks, each on one tree, approaches the least time as chunks become smaller. A message carries the
//! blocks of its receiver and of all ranks below the receiver in the tree. A tree grows rank by rank, in the order of
//! distances at the prices of the concurrent flow ([`crate::concurrent`]): each rank joins where the sum of link costs
//! is least. The cost of a link is its price times an exponential of its load. The trees are grown again one after
//! another, in rounds of steeper costs. For a single root, the price of an arc is the time of one unit on it.

pub(crate) mod grower;

use std::sync::Arc as Shared;

use rustc_hash::FxHashMap;
use unisono_base::{interrupt, narrow};

use self::grower::Grower;
use crate::{
    Fabric, Graph, NoForest, Roots, Runs, Ways,
    fabric::size,
    jobs::{Jobs, Work},
    packing::Edge,
    replay::HostWork,
    translated::Steps,
};

/// One message of a tree, from a rank to a child.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hop {
    pub edge: Edge,
    /// The number of blocks carried: those of the receiver and of its descendants.
    pub blocks: u32,
}

/// A message of a tree without its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passed {
    pub from: u32,
    pub to: u32,
    /// The first link of the path, as a number that differs for different links of the sender.
    pub link: u32,
    pub blocks: u32,
}

/// A tree of messages from a root to all ranks. The descendants of a hop's receiver are the receivers of the next
/// `blocks - 1` hops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScatterTree {
    pub root: u32,
    pub hops: Vec<Hop>,
}

/// One tree for each chunk of each root.
#[derive(Clone, Debug)]
pub struct Scatter {
    /// The ranks that send a block to every other rank.
    pub roots: Roots,
    /// The number of chunks into which each block is cut.
    pub chunks: u32,
    /// The maximum number of messages from a root to a rank.
    pub depth: u32,
    /// The busy time of the busiest arc, if each block has one unit.
    pub time: f64,
    /// The maximum number of chunks that a rank forwards and, as a root, packs, summed over all trees.
    pub most_held: u64,
    /// The maximum number of messages that a rank sends and receives in total, if each hop of a tree is one message.
    pub most_messages: u64,
    pub trees: Trees,
}

#[derive(Clone, Debug)]
pub enum Trees {
    /// The trees of all roots: those of the first root, one for each chunk, then those of the next root, and so on.
    RootTrees(Vec<Shared<ScatterTree>>),
    /// The trees of rank 0, one for each chunk. The trees of another root are their images.
    Moved { steps: Steps, of: Vec<Shared<ScatterTree>> },
}

/// One message: the blocks of some ranks, sent along one hop of a tree.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ScatterMessage {
    /// The start, as a multiple of the time of one block's chunk on an arc of rate 1.
    pub begin: f64,
    pub root: u32,
    pub chunk: u32,
    pub hop: u32,
    /// The index of the hop to the first rank whose block the message carries; blocks of the next hops follow.
    pub first: u32,
    pub blocks: u32,
}

/// The largest product of ranks and arcs for which every plan tries all-to-alls of a few chunks, unless the network
/// looks alike from all ranks.
const MOST_QUICK: u64 = 10_000;
/// The largest product of ranks and arcs for which every plan tries the trees of one root.
const MOST_QUICK_OF_ONE: u64 = 1 << 26;
/// With relays, the largest product of ranks and nodes for which plans always try trees of one root.
const MOST_QUICK_PAIRS: u64 = 1 << 21;
/// The largest product of nodes, chunks and roots whose trees are grown; one root suffices if the network looks alike
/// from all ranks.
const MOST_GROWN: u64 = 1 << 26;

impl Scatter {
    /// Returns the messages of a tree without their paths, in the order of [`ScatterTree::hops`].
    pub fn hops(&self, root: u32, chunk: u32) -> Vec<Passed> {
        let passed =
            |Hop { edge, blocks }: &Hop| Passed { from: edge.from, to: edge.to, link: edge.way[0], blocks: *blocks };
        match &self.trees {
            Trees::RootTrees(of) => {
                of[(self.turn(root) * self.chunks + chunk) as usize].hops.iter().map(passed).collect()
            }
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

    /// Returns the index of a root in the list of roots.
    fn turn(&self, root: u32) -> u32 {
        if self.roots == Roots::All { root } else { 0 }
    }

    /// Returns the last arrival and the number of messages of the listed roots ([`Scatter::listed_roots`]). A chunk has
    /// one unit, a link has the latency `hop`, a message has at most `batch` blocks, and hosts do `work` for each.
    pub fn end(&self, graph: &Graph, batch: u32, hop: f64, runs: Runs, work: Option<HostWork>) -> (f64, u64) {
        let (jobs, rates) = self.jobs(graph, batch);
        let hops = vec![hop; rates.len()];
        let begins = begins(&jobs, &rates, &hops, runs);
        (jobs.end(&begins, (&rates, &hops), runs, work), jobs.count() as u64)
    }

    /// Returns the messages of all roots, of at most `batch` blocks, sorted by begin. A chunk has one unit, and a link
    /// has the latency `hop`. With [`Runs::Up`], the root gathers the blocks.
    pub fn timetable(&self, graph: &Graph, batch: u32, hop: f64, runs: Runs) -> Vec<ScatterMessage> {
        let (jobs, rates) = self.jobs(graph, batch);
        let begins = begins(&jobs, &rates, &vec![hop; rates.len()], runs);
        let (mut messages, mut begins) = (Vec::with_capacity(begins.len()), begins.into_iter());
        for (at, tree) in (0..).zip(self.listed()) {
            let (root, chunk) = (tree.root, at % self.chunks);
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

    /// Returns the number of roots whose messages [`Scatter::end`] counts: one if the network looks alike from all
    /// ranks.
    pub fn listed_roots(&self) -> u64 {
        self.listed().len() as u64 / u64::from(self.chunks)
    }

    /// Returns the trees of all roots or, for [`Trees::Moved`], of rank 0.
    fn listed(&self) -> &[Shared<ScatterTree>] {
        match &self.trees {
            Trees::RootTrees(of) | Trees::Moved { of, .. } => of,
        }
    }

    /// Returns the messages in the order of roots, chunks and hops, and the rates of their links; for [`Trees::Moved`],
    /// only those of rank 0. A message waits for the message that brings the same blocks to its sender.
    fn jobs(&self, graph: &Graph, batch: u32) -> (Jobs, Vec<f64>) {
        let mut jobs = Jobs::default();
        let (rates, steps) = match &self.trees {
            Trees::RootTrees(_) => (graph.arcs().iter().map(|arc| arc.rate as f64).collect(), None),
            Trees::Moved { steps, .. } => (steps.rates(), Some(steps)),
        };
        // Messages of one length over the same links form a class.
        let mut classes: FxHashMap<(&[u32], u32), u32> = FxHashMap::default();
        let mut step_classes: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        for tree in self.listed() {
            // For each rank, the first message to it, and the index of its batch in the tree.
            let mut brings: Vec<Option<(u32, u32)>> = vec![None; graph.ranks() as usize];
            for (hop, Hop { edge, blocks }) in (0..).zip(&tree.hops) {
                interrupt::poll();
                let mut begun = None;
                for (first, blocks) in batches(hop, *blocks, batch) {
                    let after = brings[edge.from as usize].map(|(job, place)| job + first / batch - place);
                    let mut new = |links: &[u32], ends| {
                        let class = jobs.class_of(links, f64::from(blocks));
                        jobs.worked_on(class, Work::Message(ends));
                        class
                    };
                    let class = match steps {
                        Some(steps) => {
                            let step = steps.step(edge.from, edge.to);
                            *step_classes.entry((step, blocks)).or_insert_with(|| new(&[step], [0, 0]))
                        }
                        None => {
                            let ends = [edge.from, edge.to];
                            *classes.entry((&edge.way, blocks)).or_insert_with(|| new(&edge.way, ends))
                        }
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

fn begins(jobs: &Jobs, rates: &[f64], hops: &[f64], runs: Runs) -> Vec<f64> {
    let down = jobs.begins(rates, hops);
    if runs == Runs::Down { down } else { jobs.begins_backwards(&down, rates, hops) }
}

/// Returns the messages of the hop with index `hop`, which carries `blocks` blocks: for each, the hop to the receiver
/// of its first block, and its number of blocks. The blocks of a tree, in the order of hops, are cut after every
/// `batch`.
pub fn batches(hop: u32, blocks: u32, batch: u32) -> impl Iterator<Item = (u32, u32)> {
    let end = hop + blocks;
    (hop / batch..=(end - 1) / batch).map(move |place| {
        let first = hop.max(place * batch);
        (first, end.min((place + 1) * batch) - first)
    })
}

impl Fabric {
    /// Returns whether every plan tries the trees of these roots.
    pub fn scatters_quickly(&self, roots: Roots) -> bool {
        let graph = self.graph();
        if roots == Roots::All {
            return self.steps().is_some() || size(graph) <= MOST_QUICK;
        }
        let pairs = u64::from(graph.ranks()) * u64::from(graph.nodes());
        size(graph) <= MOST_QUICK_OF_ONE && (graph.nodes() == graph.ranks() || pairs <= MOST_QUICK_PAIRS)
    }

    /// Returns the scatter of blocks of `bytes`, uncut, along the tree of the first arrivals from one root, and caches
    /// it.
    ///
    /// # Errors
    /// Returns an error if a rank cannot be reached.
    pub fn soonest_scatter(&self, root: u32, bytes: u64) -> Result<Shared<Scatter>, NoForest> {
        let lock = || self.known_scatters().lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (roots, graph) = (Roots::One(root), self.graph());
        if let Some(found) = lock().get(&(roots, 1, Some(bytes))) {
            return Ok(Shared::clone(found));
        }
        let (tree, _) = self.soonest(graph, &[root], None, bytes).ok_or(NoForest::Unreachable)?.swap_remove(0);
        let (prices, least) = of_one(graph, roots);
        let made = Grower::new(graph, None, &prices, least, Ways::Shortest).of_roots(roots).along(tree);
        let made = Shared::new(made);
        lock().insert((roots, 1, Some(bytes)), Shared::clone(&made));
        Ok(made)
    }

    /// Returns the trees of all chunks of the roots, and caches them.
    ///
    /// # Errors
    /// Returns an error if a rank cannot be reached, the network is too large or the solver fails.
    pub fn scatter(&self, roots: Roots, chunks: u32) -> Result<Shared<Scatter>, NoForest> {
        let lock = || self.known_scatters().lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(found) = lock().get(&(roots, chunks, None)) {
            return Ok(Shared::clone(found));
        }
        let graph = self.graph();
        let is_one = roots != Roots::All;
        let count = if is_one || self.steps().is_some() { 1 } else { u64::from(graph.ranks()) };
        let nodes = u64::from(graph.nodes());
        let found = count * nodes * u64::from(chunks);
        if found > MOST_GROWN {
            return Err(NoForest::TooMany { what: "roots times nodes times chunks", found, most: MOST_GROWN });
        }
        let grower = if is_one {
            let (prices, least) = of_one(graph, roots);
            Grower::new(graph, None, &prices, least, Ways::Shortest).of_roots(roots)
        } else {
            let flow = self.concurrent_flow()?;
            Grower::new(graph, self.steps(), &flow.prices, flow.time(), Ways::Shortest)
        };
        let made = Shared::new(grower.scatter(chunks)?);
        lock().insert((roots, chunks, None), Shared::clone(&made));
        Ok(made)
    }
}

/// Returns, for one root, the price of each arc (the time of one unit on it, 2^20 on the fastest arc), and a lower
/// bound on the time: all blocks leave the root.
fn of_one(graph: &Graph, roots: Roots) -> (Vec<u64>, f64) {
    const UNIT: u64 = 1 << 20;
    let arcs = graph.arcs();
    let fastest = arcs.iter().map(|arc| arc.rate).max().unwrap_or(1);
    let prices = arcs.iter().map(|arc| narrow(u128::from(UNIT) * u128::from(fastest) / u128::from(arc.rate))).collect();
    let root = roots.list(graph.ranks())[0];
    let leaving: u64 = graph.leaving(root).iter().map(|&arc| arcs[arc as usize].rate).sum();
    (prices, f64::from(graph.ranks() - 1) / leaving.max(1) as f64)
}
