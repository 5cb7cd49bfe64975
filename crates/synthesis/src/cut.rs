//! The cut that gives the least time of a forest.
//!
//! Let S be a set of nodes that does not contain all ranks. The block of every root in S leaves S at least once, so for
//! blocks of one unit the time is at least
//!
//!   (roots in S) / (rate of all arcs that leave S).
//!
//! Forests in which relays only forward attain the largest of these ratios: Edmonds (1973), and for relays Bang-Jensen,
//! Frank and Jackson (1995). The ratio is found as in ForestColl (Zhao et al., arXiv 2402.06787), but by Dinkelbach's
//! method (1967): given the ratio of the best cut so far, a flow to each rank either shows that no cut is better or
//! yields a better one. All numbers are integers, so the result is exact. In a scatter, the blocks of ranks outside a
//! set with the root leave this set, and flows attain the largest ratio.

use crate::{Graph, flow::Flow};

/// A set of nodes that bounds the time of a forest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// True for the nodes in the set.
    pub inside: Vec<bool>,
    /// The number of roots in the set; for a scatter, of ranks outside.
    pub blocks: u64,
    /// The rate of all arcs that leave the set; 0 if none does.
    pub rate: u64,
}

impl Cut {
    pub fn of(graph: &Graph, roots: &[u32], inside: Vec<bool>) -> Self {
        let blocks = roots.iter().filter(|&&root| inside[root as usize]).count() as u64;
        let leaves = |arc: &&crate::Arc| inside[arc.from as usize] && !inside[arc.to as usize];
        let rate = graph.arcs().iter().filter(leaves).map(|arc| arc.rate).sum();
        Self { inside, blocks, rate }
    }

    /// Returns the least time that the cut allows for blocks of one unit.
    pub fn time(&self) -> f64 {
        if self.blocks == 0 { 0.0 } else { self.blocks as f64 / self.rate as f64 }
    }

    pub fn exceeds(&self, other: &Cut) -> bool {
        u128::from(self.blocks) * u128::from(other.rate) > u128::from(other.blocks) * u128::from(self.rate)
    }
}

/// Returns the cut with the longest time for blocks of one unit at each of `roots`. Candidates are all cuts that leave
/// one of `ends` outside, and the cuts around single ranks. The result is the maximum over all cuts if `ends` are all
/// ranks, or representatives under the symmetries of the graph that preserve the roots.
pub fn largest(graph: &Graph, roots: &[u32], ends: &[u32]) -> Cut {
    let mut best = simple(graph, roots);
    if roots.is_empty() || graph.ranks() < 2 {
        return best;
    }
    let nodes = graph.nodes() as usize;
    let mut end = 0;
    let mut unchanged = 0;
    // Tries the ends cyclically, until a full cycle finds no better cut.
    while unchanged < ends.len() && best.rate > 0 {
        let (blocks, rate) = (u128::from(best.blocks), u128::from(best.rate));
        let mut flow = Flow::new(nodes + 1);
        for &root in roots {
            flow.arc(nodes, root as usize, rate);
        }
        for arc in graph.arcs() {
            flow.arc(arc.from as usize, arc.to as usize, blocks * u128::from(arc.rate));
        }
        // The flow network depends only on the ratio, so it is reused for several ends.
        loop {
            let all = rate * roots.len() as u128;
            let found = if flow.largest(nodes, ends[end] as usize) < all {
                let mut inside = flow.side(nodes);
                inside.truncate(nodes);
                Some(Cut::of(graph, roots, inside))
            } else {
                None
            };
            let better = found.filter(|cut| cut.exceeds(&best));
            end = (end + 1) % ends.len();
            unchanged = if better.is_some() { 0 } else { unchanged + 1 };
            if let Some(cut) = better {
                best = cut;
                break;
            }
            if unchanged == ends.len() {
                break;
            }
        }
    }
    best
}

/// Returns the cut with the longest time of a scatter, in which a block of one unit goes from `root` to each rank:
/// `blocks` counts the ranks outside the set, which contains the root. A gather takes as long on reversed links.
pub fn scatter(graph: &Graph, root: u32, is_exact: bool) -> Cut {
    let nodes = graph.nodes() as usize;
    let others: Vec<u32> = (0..graph.ranks()).filter(|&rank| rank != root).collect();
    let around = |inside: Vec<bool>| {
        let blocks = others.iter().filter(|&&rank| !inside[rank as usize]).count() as u64;
        Cut { blocks, ..Cut::of(graph, &[], inside) }
    };
    let mut best = around((0..nodes).map(|node| node == root as usize).collect());
    while is_exact && best.blocks > 0 && best.rate > 0 {
        let (blocks, rate) = (u128::from(best.blocks), u128::from(best.rate));
        let mut flow = Flow::new(nodes + 1);
        for &rank in &others {
            flow.arc(rank as usize, nodes, rate);
        }
        for arc in graph.arcs() {
            flow.arc(arc.from as usize, arc.to as usize, blocks * u128::from(arc.rate));
        }
        if flow.largest(root as usize, nodes) == rate * others.len() as u128 {
            break;
        }
        let mut inside = flow.side(root as usize);
        inside.truncate(nodes);
        best = around(inside);
    }
    best
}

/// Returns the cut with the longest time around one rank. Its set is that rank alone, or all nodes except that rank.
pub fn simple(graph: &Graph, roots: &[u32]) -> Cut {
    let nodes = graph.nodes() as usize;
    let (mut enters, mut leaves) = (vec![0; nodes], vec![0; nodes]);
    for arc in graph.arcs() {
        leaves[arc.from as usize] += arc.rate;
        enters[arc.to as usize] += arc.rate;
    }
    let mut is_root = vec![false; nodes];
    roots.iter().for_each(|&root| is_root[root as usize] = true);
    let mut best = Cut { inside: vec![false; nodes], blocks: 0, rate: 1 };
    if graph.ranks() < 2 {
        return best;
    }
    let all = roots.len() as u64;
    for rank in 0..graph.ranks() as usize {
        for (alone, blocks, rate) in
            [(false, all - u64::from(is_root[rank]), enters[rank]), (true, u64::from(is_root[rank]), leaves[rank])]
        {
            let cut = Cut { inside: Vec::new(), blocks, rate };
            if cut.exceeds(&best) {
                let inside = (0..nodes).map(|n| (n == rank) == alone).collect();
                best = Cut { inside, ..cut };
            }
        }
    }
    best
}
