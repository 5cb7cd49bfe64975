//! Rounding of shares to whole chunks: each root assigns each chunk to one tree, so that the busiest arc ends early.

use std::sync::Arc as Shared;

use unisono_base::interrupt::poll;

use crate::{
    Graph,
    packing::{Packing, Tree},
};

/// The maximum number of rounds of [`Choice::exchange`] at each steepness.
const MOST_ROUNDS: usize = 60;

/// Returns the tree of each chunk of each root, and the time of the busiest arc for blocks of one unit. `back` is the
/// opposite of each arc, if trees are used in both directions.
pub(crate) fn rounded(
    graph: &Graph,
    packing: &Packing,
    roots: &[u32],
    (chunks, back): (u32, Option<&[u32]>),
) -> (Vec<Vec<Shared<Tree>>>, f64) {
    let mut choice = Choice::new(graph, packing, roots, (chunks, back));
    choice.fill();
    // With a steep cost, only the busiest arc counts. A flatter cost first leads the search to a good start.
    for steepness in [24, 96, 384] {
        choice.steepen(steepness);
        for _ in 0..MOST_ROUNDS {
            poll();
            if !choice.exchange() {
                break;
            }
        }
    }
    let time = choice.time() / f64::from(chunks);
    let trees = choice.counts.iter().zip(&choice.options).map(|(counts, options)| {
        let repeated = counts.iter().zip(options);
        repeated.flat_map(|(&n, option)| std::iter::repeat_n(Shared::clone(&option.tree), n as usize)).collect()
    });
    (trees.collect(), time)
}

/// A tree that a root may use.
struct Choosable {
    tree: Shared<Tree>,
    /// The chunks of the root's block that the packing assigns to the tree; not a whole number.
    wanted: f64,
    /// The arcs that a chunk on the tree loads, opposite arcs included, one entry for each use.
    arcs: Vec<u32>,
}

struct Choice<'a> {
    graph: &'a Graph,
    chunks: u32,
    /// The trees that each root may use.
    options: Vec<Vec<Choosable>>,
    /// The number of chunks on each tree of each root.
    counts: Vec<Vec<u32>>,
    /// The number of chunks on each arc.
    load: Vec<f64>,
    /// The cost of a further chunk on each arc.
    cost: Vec<f64>,
    /// The time of the packing's busiest arc if each chunk has one unit. Costs divide busy times by this time.
    scale: f64,
    steepness: i32,
}

impl<'a> Choice<'a> {
    fn new(graph: &'a Graph, packing: &Packing, roots: &[u32], (chunks, back): (u32, Option<&[u32]>)) -> Self {
        let options: Vec<Vec<Choosable>> = roots
            .iter()
            .map(|&root| {
                let own = packing.trees.iter().filter(|(tree, _)| tree.root == root);
                own.map(|(tree, share)| Choosable {
                    tree: Shared::clone(tree),
                    wanted: share * f64::from(chunks),
                    arcs: {
                        let arcs = tree.edges.iter().flat_map(|edge| &edge.way);
                        arcs.flat_map(|&arc| [Some(arc), back.map(|back| back[arc as usize])]).flatten().collect()
                    },
                })
                .collect()
            })
            .collect();
        let counts = options.iter().map(|trees| vec![0; trees.len()]).collect();
        let scale = (packing.time * f64::from(chunks)).max(f64::MIN_POSITIVE);
        let none = vec![0.0; graph.arcs().len()];
        let mut choice = Self { graph, chunks, options, counts, load: none.clone(), cost: none, scale, steepness: 0 };
        choice.steepen(24);
        choice
    }

    /// Sets the exponent of costs and recomputes the costs.
    fn steepen(&mut self, steepness: i32) {
        self.steepness = steepness;
        self.cost = (0..unisono_base::narrow(self.load.len())).map(|arc| self.cost_of(arc)).collect();
    }

    fn cost_of(&self, arc: u32) -> f64 {
        (self.busy(arc, 1.0) / self.scale).powi(self.steepness)
    }

    fn add(&mut self, root: usize, option: usize, chunks: f64) {
        for at in 0..self.options[root][option].arcs.len() {
            let arc = self.options[root][option].arcs[at];
            self.load[arc as usize] += chunks;
            self.cost[arc as usize] = self.cost_of(arc);
        }
    }

    fn busy(&self, arc: u32, more: f64) -> f64 {
        (self.load[arc as usize] + more) / self.graph.arcs()[arc as usize].rate as f64
    }

    fn cost(&self, option: &Choosable) -> f64 {
        option.arcs.iter().map(|&arc| self.cost[arc as usize]).sum()
    }

    fn time(&self) -> f64 {
        (0..).zip(&self.load).map(|(arc, _)| self.busy(arc, 0.0)).fold(0.0, f64::max)
    }

    /// Assigns to each tree the integer part of its share in chunks, then each remaining chunk to its root's cheapest
    /// tree.
    fn fill(&mut self) {
        for root in 0..self.options.len() {
            for option in 0..self.options[root].len() {
                let whole = (self.options[root][option].wanted + 1e-6).floor();
                self.counts[root][option] = unisono_base::narrow(unisono_base::rounded(whole));
                self.add(root, option, whole);
            }
        }
        // Roots take turns, so that no root gets all cheap trees.
        for round in (0..self.chunks).rev() {
            for root in 0..self.options.len() {
                let left = self.chunks - self.counts[root].iter().sum::<u32>();
                if left > round {
                    let best = self.cheapest(root).0;
                    self.counts[root][best] += 1;
                    self.add(root, best, 1.0);
                }
            }
        }
    }

    fn cheapest(&self, root: usize) -> (usize, f64) {
        let costs = self.options[root].iter().map(|option| self.cost(option)).enumerate();
        costs.min_by(|a, b| a.1.total_cmp(&b.1)).expect("every root has a tree")
    }

    /// Assigns one chunk of each tree of each root again. Returns whether any chunk changed its tree.
    fn exchange(&mut self) -> bool {
        let mut moved = false;
        for root in 0..self.options.len() {
            poll();
            for option in 0..self.options[root].len() {
                if self.counts[root][option] == 0 {
                    continue;
                }
                self.counts[root][option] -= 1;
                self.add(root, option, -1.0);
                let stay = self.cost(&self.options[root][option]);
                let (best, cost) = self.cheapest(root);
                let to = if cost < stay * (1.0 - 1e-9) { best } else { option };
                moved |= to != option;
                self.counts[root][to] += 1;
                self.add(root, to, 1.0);
            }
        }
        moved
    }
}
