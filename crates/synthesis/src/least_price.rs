//! The exact price of the cheapest arborescence, for whole prices.
//!
//! As in Edmonds (1967), the price of the cheapest arc into each node is added to the result and subtracted from all
//! arcs into the node. Then each set of nodes that arcs of price 0 connect strongly becomes one node, because a path to
//! one node of the set reaches the others at no cost. This is repeated until the root reaches all nodes. The tree
//! itself is not computed, so one table suffices.

use unisono_base::{interrupt::poll, limits};

/// The price of an absent arc, above any price.
pub const NONE: u128 = u128::MAX;

/// Prices of all ordered pairs of nodes, row by row; [`NONE`] for absent arcs.
#[derive(Clone, Debug)]
pub struct Table {
    pub nodes: usize,
    of: Vec<u128>,
}

impl Table {
    /// Creates a table without arcs.
    pub fn new(nodes: usize) -> Self {
        Self { nodes, of: vec![NONE; nodes * nodes] }
    }

    /// Returns the bytes of a table and of all other memory of [`least_price`].
    pub(crate) fn bytes(nodes: usize) -> u128 {
        64 * (nodes as u128).pow(2)
    }

    pub fn get(&self, from: usize, to: usize) -> u128 {
        self.of[from * self.nodes + to]
    }

    /// Adds an arc; of parallel arcs, the cheapest counts.
    pub fn add(&mut self, from: usize, to: usize, price: u128) {
        let known = &mut self.of[from * self.nodes + to];
        *known = price.min(*known);
    }
}

/// Returns the price of the cheapest arborescence from a root; `None` if a node cannot be reached.
pub fn least_price(table: &Table, root: usize) -> Option<u128> {
    let (mut table, mut root, mut total) = (table.clone(), root, 0);
    loop {
        let n = table.nodes;
        limits::spend("the price of cheapest trees", 8 * (n * n) as u64);
        for to in (0..n).filter(|&to| to != root) {
            poll();
            let least = (0..n).filter(|&from| from != to).map(|from| table.get(from, to)).min().unwrap_or(NONE);
            if least == NONE {
                return None;
            }
            total += least;
            for price in table.of[to..].iter_mut().step_by(n).filter(|price| **price < NONE) {
                *price -= least;
            }
        }
        let row = |from| (0..n).filter(|&to| to != from && table.get(from, to) == 0).collect();
        let Components { of, count } = Components::of((0..n).map(row).collect());
        // Every node has an arc of price 0 into it, and no cycle exists, so the root reaches all nodes.
        if count == n {
            return Some(total);
        }
        let mut joined = Table::new(count);
        for from in 0..n {
            poll();
            for to in (0..n).filter(|&to| of[to] != of[from]) {
                joined.add(of[from], of[to], table.get(from, to));
            }
        }
        (table, root) = (joined, of[root]);
    }
}

/// The strongly connected components of a graph.
pub(crate) struct Components {
    /// The index of each node's component.
    pub(crate) of: Vec<usize>,
    pub(crate) count: usize,
}

impl Components {
    /// Finds the components by Tarjan's algorithm (1972). `next[n]` holds the nodes to which arcs lead from node n.
    pub(crate) fn of(next: Vec<Vec<usize>>) -> Self {
        const NEW: usize = usize::MAX;
        let n = next.len();
        let (mut order, mut low, mut found) = (vec![NEW; n], vec![NEW; n], Self { of: vec![NEW; n], count: 0 });
        let (mut open, mut seen) = (Vec::new(), 0);
        // The search path: nodes, each with the number of its arcs that were followed.
        let mut path: Vec<(usize, usize)> = Vec::new();
        for start in 0..n {
            if order[start] == NEW {
                path.push((start, 0));
            }
            while let Some((at, followed)) = path.pop() {
                poll();
                if followed == 0 {
                    (order[at], low[at]) = (seen, seen);
                    open.push(at);
                    seen += 1;
                } else {
                    let below = next[at][followed - 1];
                    // A node of a finished component is not on a cycle with `at`.
                    if found.of[below] == NEW {
                        low[at] = low[at].min(low[below]);
                    }
                }
                if let Some(&to) = next[at].get(followed) {
                    path.push((at, followed + 1));
                    if order[to] == NEW {
                        path.push((to, 0));
                    }
                    continue;
                }
                if low[at] == order[at] {
                    while let Some(member) = open.pop() {
                        found.of[member] = found.count;
                        if member == at {
                            break;
                        }
                    }
                    found.count += 1;
                }
            }
        }
        found
    }
}
