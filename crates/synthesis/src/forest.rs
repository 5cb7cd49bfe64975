//! A forest of whole chunks: the block of every root is cut into equal chunks, and each travels on one tree.

use std::sync::Arc as Shared;

use rustc_hash::FxHashMap;
use unisono_base::{interrupt::poll, narrow};

use crate::{
    Graph,
    packing::{Edge, Tree},
    timetable::Jobs,
    translated::Translated,
};

/// One tree for each chunk of each root.
#[derive(Clone, Debug)]
pub struct Forest {
    /// Of the block of every root.
    pub chunks: u32,
    /// Edges from a root to the farthest rank, the most of all trees.
    pub depth: u32,
    /// The time in which the busiest arc carries its share of blocks of one unit.
    pub time: f64,
    /// Chunks that a rank sends, each to every rank below it, the most of all ranks.
    pub most_sends: u64,
    /// Where trees run backwards and sum up: operands that are added to sums one after the other, from the farthest rank to the
    /// root, the most of all trees. A rank adds what comes from below when all of it is there, the root each by itself.
    pub most_sums: u32,
    pub(crate) trees: Trees,
}

#[derive(Clone, Debug)]
pub(crate) enum Trees {
    /// Of each root, its chunks in order.
    Listed { roots: Vec<u32>, of: Vec<Vec<Shared<Tree>>> },
    /// Every root has the trees of rank 0, moved.
    Translated(Translated),
}

/// One message of a forest: a chunk of a root's block, from one rank to another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Message {
    /// In units of [`Forest::time`] for one chunk.
    pub begin: f64,
    pub root: u32,
    pub chunk: u32,
    pub edge: TreeEdge,
}

/// From one rank to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeEdge {
    pub from: u32,
    pub to: u32,
    /// The first and the last link on its way, as numbers that differ for different links of a rank.
    pub ends: [u32; 2],
}

/// When the messages of a forest begin, in the order of roots, chunks and edges, and when the last one is there. Where all roots are
/// alike, those of rank 0 alone.
#[derive(Debug)]
pub(crate) struct Times {
    begins: Vec<f64>,
    pub(crate) end: f64,
}

/// Messages of different trees over the same links are told apart where trees times ranks are at most that, since each class takes
/// time whenever one of its links is free.
const MOST_CLASSES: usize = 1 << 12;

/// [`Forest::most_sums`] of one tree; edges away from the root come after those nearer to it.
pub(crate) fn sums(root: u32, ranks: u32, edges: impl DoubleEndedIterator<Item = (u32, u32)> + Clone) -> u32 {
    let mut below = vec![0; ranks as usize];
    edges.clone().filter(|&(from, _)| from != root).for_each(|(from, _)| below[from as usize] += 1);
    let mut longest = vec![0; ranks as usize];
    for (from, to) in edges.rev() {
        let whole = below[to as usize] + longest[to as usize];
        longest[from as usize] = longest[from as usize].max(whole);
    }
    1 + longest[root as usize]
}

impl Forest {
    /// The trees of each root's chunks, with the time of the busiest arc.
    pub(crate) fn listed(ranks: u32, chunks: u32, roots: Vec<u32>, of: Vec<Vec<Shared<Tree>>>, time: f64) -> Self {
        let trees = || of.iter().flatten();
        let depth = trees().map(|tree| tree.depth).max().unwrap_or(0);
        let mut sends = vec![0_u64; ranks as usize];
        trees().flat_map(|tree| &tree.edges).for_each(|edge| sends[edge.from as usize] += 1);
        let most_sends = sends.into_iter().max().unwrap_or(0);
        let pairs = |tree: &Shared<Tree>| tree.edges.iter().map(|edge| (edge.from, edge.to)).collect::<Vec<_>>();
        let sums_of = |tree: &Shared<Tree>| sums(tree.root, ranks, pairs(tree).into_iter());
        let most_sums = trees().map(sums_of).max().unwrap_or(0);
        Self { chunks, depth, time, most_sends, most_sums, trees: Trees::Listed { roots, of } }
    }

    /// The edges of a chunk's tree. No edge comes before the one that reaches its start.
    pub fn edges(&self, root: u32, chunk: u32) -> Vec<TreeEdge> {
        match &self.trees {
            Trees::Listed { roots, of } => {
                let at = roots.binary_search(&root).expect("a root of the forest");
                let ends = |way: &[u32]| [way[0], way[way.len() - 1]];
                let edge = |edge: &Edge| TreeEdge { from: edge.from, to: edge.to, ends: ends(&edge.way) };
                of[at][chunk as usize].edges.iter().map(edge).collect()
            }
            Trees::Translated(trees) => trees.edges(root, chunk),
        }
    }

    /// The nodes that the messages of a chunk's tree pass, ends included, in the order of [`Forest::edges`]. `graph` is
    /// [`crate::Fabric::routed`], and nodes have their numbers in the plane.
    pub fn ways(&self, graph: &Graph, root: u32, chunk: u32) -> Vec<Vec<u32>> {
        let node = |node: u32| graph.place(node);
        match &self.trees {
            Trees::Listed { roots, of } => {
                let at = roots.binary_search(&root).expect("a root of the forest");
                let ends =
                    |edge: &Edge| edge.way.iter().map(|&arc| node(graph.arcs()[arc as usize].to)).collect::<Vec<_>>();
                let way = |edge: &Edge| [vec![node(edge.from)], ends(edge)].concat();
                of[at][chunk as usize].edges.iter().map(way).collect()
            }
            Trees::Translated(trees) => {
                trees.edges(root, chunk).iter().map(|edge| vec![node(edge.from), node(edge.to)]).collect()
            }
        }
    }

    /// Of all messages, where a chunk is one unit and an arc adds `hop` to its messages.
    pub(crate) fn times(&self, graph: &Graph, hop: impl Fn(u32) -> f64) -> Times {
        let (jobs, rates) = self.jobs(graph);
        let hops: Vec<f64> = (0..narrow(rates.len())).map(hop).collect();
        let (begins, end) = jobs.begins(&rates, &hops);
        Times { begins, end }
    }

    /// The messages of all roots in the order in which they begin.
    pub(crate) fn messages(&self, ranks: u32, times: &Times) -> Vec<Message> {
        let roots: Vec<u32> = match &self.trees {
            Trees::Listed { roots, .. } => roots.clone(),
            Trees::Translated(_) => (0..ranks).collect(),
        };
        let mut messages = Vec::with_capacity(roots.len() * self.chunks as usize * (ranks as usize - 1));
        let mut at = 0;
        for root in roots {
            if matches!(self.trees, Trees::Translated(_)) {
                // Every root has the times of rank 0.
                at = 0;
            }
            for chunk in 0..self.chunks {
                for edge in self.edges(root, chunk) {
                    poll();
                    messages.push(Message { begin: times.begins[at], root, chunk, edge });
                    at += 1;
                }
            }
        }
        messages.sort_by(|a, b| a.begin.total_cmp(&b.begin));
        messages
    }

    /// The messages in the order of roots, chunks and edges, and the rates of their links; of alike roots those of rank 0.
    fn jobs(&self, graph: &Graph) -> (Jobs, Vec<f64>) {
        match &self.trees {
            Trees::Listed { roots, of } => {
                let mut jobs = Jobs::default();
                // Messages over the same links; of few trees, those that the same messages follow.
                let mut trees: Vec<*const Tree> = of.iter().flatten().map(Shared::as_ptr).collect();
                trees.sort_unstable();
                trees.dedup();
                let by_tree = trees.len() * graph.ranks() as usize <= MOST_CLASSES;
                let mut classes: FxHashMap<(&[u32], Option<*const Tree>), u32> = FxHashMap::default();
                let mut brings = vec![None; graph.ranks() as usize];
                // The chunks of each tree, and those that came already. Among many roots there are always other trees to send on.
                let mut chunks: FxHashMap<*const Tree, (u32, u32)> = FxHashMap::default();
                of.iter().flatten().for_each(|tree| chunks.entry(Shared::as_ptr(tree)).or_default().0 += 1);
                for tree in of.iter().flatten() {
                    let (count, before) = chunks.get_mut(&Shared::as_ptr(tree)).expect("a tree that was counted");
                    let turn = if roots.len() == 1 { (f64::from(*before) + 0.5) / f64::from(*count) } else { 0.0 };
                    *before += 1;
                    brings[tree.root as usize] = None;
                    for edge in &tree.edges {
                        let key = (&edge.way[..], by_tree.then_some(Shared::as_ptr(tree)));
                        let class = *classes.entry(key).or_insert_with(|| jobs.class(&edge.way));
                        brings[edge.to as usize] = Some(jobs.add_in_turn(brings[edge.from as usize], class, turn));
                    }
                }
                (jobs, graph.arcs().iter().map(|arc| arc.rate as f64).collect())
            }
            Trees::Translated(trees) => trees.jobs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_follow_each_other_up_a_tree() {
        // The root has two branches: rank 1 with ranks 3 and 4 below it, of which 4 has rank 5; and rank 2 alone.
        let edges = [(0, 1), (0, 2), (1, 3), (1, 4), (4, 5)];
        // Rank 4 adds one operand, rank 1 two, and the root one after the last message.
        assert_eq!(sums(0, 6, edges.into_iter()), 4);
        assert_eq!(sums(0, 3, [(0, 1), (0, 2)].into_iter()), 1);
    }
}
