//! Trees that are listed for some roots. The shifts of the network map these trees to the other roots.

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
pub(crate) struct RootTrees {
    pub symmetry: Shared<Symmetry>,
    /// The roots whose trees are listed, ascending: representatives of all roots.
    pub roots: Vec<u32>,
    /// For each of `roots`, the tree of each chunk.
    pub of: Vec<Vec<Shared<Tree>>>,
}

/// Two forests are equal if their trees are the same objects. Equal trees that are different objects do not suffice,
/// because chunks on the same object are timed alike.
impl PartialEq for RootTrees {
    fn eq(&self, other: &Self) -> bool {
        let is_same = |(a, b): (&Vec<Shared<Tree>>, &Vec<Shared<Tree>>)| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Shared::ptr_eq(a, b))
        };
        let trees = self.of.iter().zip(&other.of);
        self.roots == other.roots && self.symmetry == other.symmetry && trees.into_iter().all(is_same)
    }
}

/// The largest product of trees and ranks for which messages of different trees form different classes although they
/// use the same links. Each class costs time whenever one of its links becomes free.
const MOST_CLASSES: usize = 1 << 12;

/// The slack ([`Jobs::with_slack`]), in durations of a message. Measured in packet simulations of boxes of 8 to 16
/// GPUs: with 1 to 4, times of long blocks differ by at most 0.3 % from the timetable; with 0, by up to 2 %.
const SLACK: f64 = 2.0;

impl RootTrees {
    pub(crate) fn all(&self, ranks: u32) -> Vec<u32> {
        (0..ranks).filter(|&rank| self.place(rank).is_some()).collect()
    }

    /// Returns the index in `roots` of a root's representative, and the shift that moves its trees to the root; `None`
    /// for a rank that is not a root of the forest.
    pub(crate) fn place(&self, root: u32) -> Option<(usize, u32)> {
        let (home, shift) = self.symmetry.home(root);
        self.roots.binary_search(&home).ok().map(|at| (at, shift))
    }

    /// Returns the listed tree of a root's chunk, and the shift that moves the tree to the root.
    fn tree(&self, root: u32, chunk: u32) -> (&Tree, u32) {
        let (at, shift) = self.place(root).expect("a root of the forest");
        (&self.of[at][chunk as usize], shift)
    }

    pub(crate) fn edges(&self, root: u32, chunk: u32) -> Vec<TreeEdge> {
        let (tree, shift) = self.tree(root, chunk);
        let node = |node| self.symmetry.moved(node, shift);
        // Two arcs that leave the same rank, or enter it, are of different classes.
        let ends = |way: &[u32]| [way[0], way[way.len() - 1]].map(|arc| self.symmetry.class(arc));
        let edge = |edge: &Edge| TreeEdge { from: node(edge.from), to: node(edge.to), ends: ends(&edge.way) };
        tree.edges.iter().map(edge).collect()
    }

    /// Returns the tree of a chunk, with all nodes and arcs moved to the root.
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

    /// Returns the nodes on the path of each edge, ends included, as indices in the plane.
    pub(crate) fn ways(&self, graph: &Graph, root: u32, chunk: u32) -> Vec<Vec<u32>> {
        let (tree, shift) = self.tree(root, chunk);
        let way = |edge: &Edge| {
            let after = edge.way.iter().map(|&arc| graph.arcs()[arc as usize].to);
            let nodes = std::iter::once(edge.from).chain(after);
            nodes.map(|node| graph.place(self.symmetry.moved(node, shift))).collect()
        };
        tree.edges.iter().map(way).collect()
    }

    /// Returns the messages of the listed trees in the order of roots, chunks and edges, and the rates of their links.
    /// The images of a message load all links of a class equally, so one link represents each class. With `hosts`, each
    /// message follows its sum.
    pub(crate) fn jobs(
        &self,
        graph: &Graph,
        sending: Option<Sending>,
        mut hosts: Option<&mut Hosts>,
    ) -> (Jobs, Vec<f64>) {
        let mut jobs = Jobs::with_slack(SLACK);
        // If there are few trees, messages of different trees have different classes, even on the same links.
        let mut trees: Vec<*const Tree> = self.of.iter().flatten().map(Shared::as_ptr).collect();
        trees.sort_unstable();
        trees.dedup();
        let by_tree = trees.len() * graph.ranks() as usize <= MOST_CLASSES;
        let mut classes: FxHashMap<(Vec<u32>, Option<*const Tree>), u32> = FxHashMap::default();
        let mut brings = vec![None; graph.ranks() as usize];
        // For each tree, the number of its chunks and the number of chunks handled so far. Turns are needed only for a
        // single root: with many roots, the trees of other roots alternate.
        let mut chunks: FxHashMap<*const Tree, (u32, u32)> = FxHashMap::default();
        self.of.iter().flatten().for_each(|tree| chunks.entry(Shared::as_ptr(tree)).or_default().0 += 1);
        // One sender represents all ranks that shifts map to each other.
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
