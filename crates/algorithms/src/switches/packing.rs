//! Spanning trees that share edges as little as possible, found as disjoint forests in several copies of a graph.
//!
//! `k` spanning trees that use no edge more than `load` times exist if `load` copies of the graph together have `k`
//! spanning trees that share no edge (Nash-Williams and Tutte, 1961). Augmenting paths of the matroid union find these
//! trees: Roskind and Tarjan, "A note on finding minimum-cost edge-disjoint spanning trees", 1985.

use std::collections::VecDeque;

use unisono_base::narrow;

/// Spanning trees of a graph, and the most trees that share an edge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packed {
    /// The most trees that use one edge.
    pub load: u32,
    /// The indices of the edges of each tree.
    pub trees: Vec<Vec<usize>>,
}

/// Returns one spanning tree for each of `roots`, with the least load. A tree is as shallow from its root as the edges
/// that other trees leave allow. `None` if the graph is not connected.
pub fn pack(vertices: usize, edges: &[(u32, u32)], roots: &[u32]) -> Option<Packed> {
    let trees = roots.len();
    let needed = trees * vertices.saturating_sub(1);
    let least = narrow::<u32>(needed.div_ceil(edges.len().max(1)).max(1));
    // The load is at most the number of trees, which it is if all trees are equal.
    (least..=narrow::<u32>(trees).max(1)).find_map(|load| {
        let mut forests = Forests::new(vertices, edges, trees, load as usize);
        for (tree, &root) in roots.iter().enumerate() {
            forests.spread(tree, root);
        }
        (forests.complete() == needed).then(|| Packed { load, trees: forests.into_trees() })
    })
}

struct Forests<'a> {
    edges: &'a [(u32, u32)],
    load: usize,
    /// The forest that uses each copy of an edge; `None` for an unused copy. Copy `c` belongs to edge `c / load`.
    owner: Vec<Option<usize>>,
    /// By forest and vertex, the copies that the forest uses at the vertex.
    at: Vec<Vec<Vec<usize>>>,
    /// The edges of the graph at each vertex.
    of_vertex: Vec<Vec<usize>>,
}

impl<'a> Forests<'a> {
    fn new(vertices: usize, edges: &'a [(u32, u32)], forests: usize, load: usize) -> Self {
        let mut of_vertex = vec![Vec::new(); vertices];
        for (edge, &(a, b)) in edges.iter().enumerate() {
            of_vertex[a as usize].push(edge);
            of_vertex[b as usize].push(edge);
        }
        let owner = vec![None; edges.len() * load];
        Self { edges, load, owner, at: vec![vec![Vec::new(); vertices]; forests], of_vertex }
    }

    fn ends(&self, copy: usize) -> (u32, u32) {
        self.edges[copy / self.load]
    }

    fn put(&mut self, copy: usize, forest: usize) {
        let (a, b) = self.ends(copy);
        if let Some(old) = self.owner[copy].replace(forest) {
            for v in [a, b] {
                self.at[old][v as usize].retain(|&c| c != copy);
            }
        }
        for v in [a, b] {
            self.at[forest][v as usize].push(copy);
        }
    }

    /// Grows a forest from its root, breadth first, over copies that no forest uses.
    fn spread(&mut self, forest: usize, root: u32) {
        let mut seen = vec![false; self.of_vertex.len()];
        let mut waiting = VecDeque::from([root]);
        if let Some(seen) = seen.get_mut(root as usize) {
            *seen = true;
        }
        while let Some(v) = waiting.pop_front() {
            for edge in self.of_vertex.get(v as usize).cloned().unwrap_or_default() {
                let (a, b) = self.edges[edge];
                let there = if a == v { b } else { a };
                let free = (edge * self.load..(edge + 1) * self.load).find(|&copy| self.owner[copy].is_none());
                if let Some(copy) = free.filter(|_| !seen[there as usize]) {
                    seen[there as usize] = true;
                    self.put(copy, forest);
                    waiting.push_back(there);
                }
            }
        }
    }

    /// Adds every further copy for which other forests can exchange copies. Returns the number of copies in use.
    fn complete(&mut self) -> usize {
        for copy in 0..self.owner.len() {
            if self.owner[copy].is_none() {
                self.augment(copy);
            }
        }
        self.owner.iter().flatten().count()
    }

    fn augment(&mut self, new: usize) {
        let mut from = vec![usize::MAX; self.owner.len()];
        from[new] = new;
        let mut waiting = VecDeque::from([new]);
        while let Some(copy) = waiting.pop_front() {
            for forest in 0..self.at.len() {
                if self.owner[copy] == Some(forest) {
                    continue;
                }
                let Some(circle) = self.way(forest, self.ends(copy)) else {
                    return self.shift(copy, forest, &from, new);
                };
                for other in circle {
                    if from[other] == usize::MAX {
                        from[other] = copy;
                        waiting.push_back(other);
                    }
                }
            }
        }
    }

    /// Moves `copy` to `forest`, then the copy that replaces it to the forest that `copy` left, and so on until the
    /// copy `new` is in use.
    fn shift(&mut self, mut copy: usize, mut forest: usize, from: &[usize], new: usize) {
        loop {
            let old = self.owner[copy];
            self.put(copy, forest);
            match old {
                Some(old) if copy != new => {
                    forest = old;
                    copy = from[copy];
                }
                _ => return,
            }
        }
    }

    /// Returns the copies of edges on the path between two vertices in a forest; `None` if the forest does not join
    /// them.
    fn way(&self, forest: usize, (a, b): (u32, u32)) -> Option<Vec<usize>> {
        let mut came = vec![usize::MAX; self.of_vertex.len()];
        let mut waiting = vec![a];
        while let Some(v) = waiting.pop() {
            for &copy in &self.at[forest][v as usize] {
                let (x, y) = self.ends(copy);
                let there = if x == v { y } else { x };
                if there == a || came[there as usize] != usize::MAX {
                    continue;
                }
                came[there as usize] = copy;
                if there == b {
                    let mut way = Vec::new();
                    let mut at = b;
                    while at != a {
                        let copy = came[at as usize];
                        way.push(copy);
                        let (x, y) = self.ends(copy);
                        at = if x == at { y } else { x };
                    }
                    return Some(way);
                }
                waiting.push(there);
            }
        }
        None
    }

    fn into_trees(self) -> Vec<Vec<usize>> {
        let mut trees = vec![Vec::new(); self.at.len()];
        for (copy, owner) in self.owner.iter().enumerate() {
            if let Some(tree) = owner {
                trees[*tree].push(copy / self.load);
            }
        }
        trees
    }
}
