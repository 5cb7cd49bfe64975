//! Trees that are listed for some roots; the others have them moved by the shifts of the network.

use std::sync::Arc as Shared;

use rustc_hash::FxHashMap;

use crate::{
    Arc, Graph, TreeEdge,
    jobs::{Jobs, Sending, Work},
    packing::{Edge, Tree},
    sums::{Hosts, Sum},
    symmetry::Symmetry,
};

/// One tree for each chunk of each root.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub symmetry: Shared<Symmetry>,
    /// Those that have trees of their own, in order: representatives of all roots.
    pub roots: Vec<u32>,
    /// Of each of them, its chunks in order.
    pub of: Vec<Vec<Shared<Tree>>>,
}

/// Messages of different trees over the same links are told apart where trees times ranks are at most that, since each
/// class takes time whenever one of its links is free.
const MOST_CLASSES: usize = 1 << 12;

/// Lengths of a message for which data waits. Measured by packets on boxes of 8 to 16 GPUs: with 1 to 4, long blocks
/// are within 0.3 % of the timetable, and up to 2 % from it without.
const SLACK: f64 = 2.0;

impl Listed {
    /// All roots, in order.
    pub(crate) fn all(&self, ranks: u32) -> Vec<u32> {
        (0..ranks).filter(|&rank| self.place(rank).is_some()).collect()
    }

    /// The place of a root's representative in the list, and the shift that moves its trees to the root.
    pub(crate) fn place(&self, root: u32) -> Option<(usize, u32)> {
        let (home, shift) = self.symmetry.home(root);
        self.roots.binary_search(&home).ok().map(|at| (at, shift))
    }

    /// The tree of a chunk as it is listed, and the shift that moves it to the root.
    fn tree(&self, root: u32, chunk: u32) -> (&Tree, u32) {
        let (at, shift) = self.place(root).expect("a root of the forest");
        (&self.of[at][chunk as usize], shift)
    }

    pub(crate) fn edges(&self, root: u32, chunk: u32) -> Vec<TreeEdge> {
        let (tree, shift) = self.tree(root, chunk);
        let node = |node| self.symmetry.moved(node, shift);
        // Arcs that leave or reach the same rank are of different classes.
        let ends = |way: &[u32]| [way[0], way[way.len() - 1]].map(|arc| self.symmetry.class(arc));
        let edge = |edge: &Edge| TreeEdge { from: node(edge.from), to: node(edge.to), ends: ends(&edge.way) };
        tree.edges.iter().map(edge).collect()
    }

    /// The tree of a chunk with its arcs.
    pub(crate) fn moved(&self, graph: &Graph, root: u32, chunk: u32) -> Tree {
        let (tree, shift) = self.tree(root, chunk);
        let node = |node| self.symmetry.moved(node, shift);
        let arc = |&arc: &u32| {
            let Arc { from, to, .. } = graph.arcs()[arc as usize];
            let (from, to) = (node(from), node(to));
            let leaving = graph.leaving(from).iter();
            *leaving.clone().find(|&&arc| graph.arcs()[arc as usize].to == to).expect("a shift keeps arcs")
        };
        let edge =
            |edge: &Edge| Edge { from: node(edge.from), to: node(edge.to), way: edge.way.iter().map(arc).collect() };
        Tree { root, edges: tree.edges.iter().map(edge).collect(), depth: tree.depth }
    }

    /// The nodes that each edge passes, ends included.
    pub(crate) fn ways(&self, graph: &Graph, root: u32, chunk: u32) -> Vec<Vec<u32>> {
        let (tree, shift) = self.tree(root, chunk);
        let way = |edge: &Edge| {
            let after = edge.way.iter().map(|&arc| graph.arcs()[arc as usize].to);
            let nodes = std::iter::once(edge.from).chain(after);
            nodes.map(|node| graph.place(self.symmetry.moved(node, shift))).collect()
        };
        tree.edges.iter().map(way).collect()
    }

    /// The messages of the listed trees in the order of roots, chunks and edges, and the rates of their links. The
    /// images of a message load all links of a class alike, so a class stands for a link. With `hosts`, the sum of each
    /// message comes before it.
    pub(crate) fn jobs(
        &self,
        graph: &Graph,
        sending: Option<Sending>,
        mut hosts: Option<&mut Hosts>,
    ) -> (Jobs, Vec<f64>) {
        let mut jobs = Jobs::with_slack(SLACK);
        // Messages over the same links; of few trees, those that the same messages follow.
        let mut trees: Vec<*const Tree> = self.of.iter().flatten().map(Shared::as_ptr).collect();
        trees.sort_unstable();
        trees.dedup();
        let by_tree = trees.len() * graph.ranks() as usize <= MOST_CLASSES;
        let mut classes: FxHashMap<(Vec<u32>, Option<*const Tree>), u32> = FxHashMap::default();
        let mut brings = vec![None; graph.ranks() as usize];
        // The chunks of each tree, and those that came already. Among many roots there are always other trees to send
        // on.
        let mut chunks: FxHashMap<*const Tree, (u32, u32)> = FxHashMap::default();
        self.of.iter().flatten().for_each(|tree| chunks.entry(Shared::as_ptr(tree)).or_default().0 += 1);
        // Of ranks that shifts map onto each other, one stands for all.
        let mut senders: FxHashMap<u32, u32> = FxHashMap::default();
        let is_alone = self.roots.len() == 1 && self.symmetry.shifts() == 1;
        for tree in self.of.iter().flatten() {
            let (count, before) = chunks.get_mut(&Shared::as_ptr(tree)).expect("a tree that was counted");
            let turn = if is_alone { (f64::from(*before) + 0.5) / f64::from(*count) } else { 0.0 };
            *before += 1;
            brings[tree.root as usize] = None;
            if let Some(hosts) = &mut hosts {
                hosts.tree(tree.edges.iter().map(|edge| edge.from));
            }
            for edge in &tree.edges {
                let links: Vec<u32> = edge.way.iter().map(|&arc| self.symmetry.class(arc)).collect();
                let key = (links, by_tree.then_some(Shared::as_ptr(tree)));
                let class = match classes.get(&key) {
                    Some(&class) => class,
                    None => {
                        let class = jobs.class(&key.0);
                        let ends = [edge.from, edge.to].map(|rank| self.symmetry.home(rank).0);
                        jobs.worked_on(class, Work::Message(ends));
                        let few = |sending: &Sending| (sending.machines as usize) < graph.leaving(edge.from).len();
                        if let Some(Sending { machines, held }) = sending.filter(few) {
                            let home = self.symmetry.home(edge.from).0;
                            let sender = *senders.entry(home).or_insert_with(|| jobs.sender(machines));
                            jobs.sent_by(class, sender, held);
                        }
                        classes.insert(key, class);
                        class
                    }
                };
                let mut after = brings[edge.from as usize];
                if let Some(hosts) = &mut hosts {
                    let (rank, host) = (edge.from, self.symmetry.home(edge.from).0);
                    let sum = Sum { rank, host, at_root: rank == tree.root, class, after, turn };
                    after = Some(hosts.sum(&mut jobs, &sum));
                }
                let job = jobs.add_in_turn(after, class, turn);
                brings[edge.to as usize] = Some(job);
                if let Some(hosts) = &mut hosts {
                    hosts.messages.push(job);
                }
            }
        }
        (jobs, self.symmetry.rates(graph))
    }
}
