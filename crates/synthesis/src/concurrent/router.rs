//! Shortest paths from a source at given prices, and the loads that they put on arcs.

use std::{cmp::Reverse, collections::BinaryHeap};

use unisono_base::{interrupt, narrow};

use crate::{Graph, NoForest};

/// The cheapest paths from one node to all (Dijkstra, 1959), with the fewest arcs among equally cheap paths.
pub(crate) struct Search {
    pub(crate) price: Vec<u64>,
    hops: Vec<u32>,
    /// The nodes that are reached, sorted by price.
    pub(crate) order: Vec<u32>,
    done: Vec<bool>,
    open: BinaryHeap<Reverse<(u64, u32, u32)>>,
}

impl Search {
    pub(crate) fn new(graph: &Graph) -> Self {
        let nodes = graph.nodes() as usize;
        Self {
            price: vec![u64::MAX; nodes],
            hops: vec![0; nodes],
            order: Vec::with_capacity(nodes),
            done: vec![false; nodes],
            open: BinaryHeap::new(),
        }
    }

    pub(crate) fn run(&mut self, graph: &Graph, prices: &[u64], from: u32) {
        self.price.fill(u64::MAX);
        self.done.fill(false);
        self.order.clear();
        (self.price[from as usize], self.hops[from as usize]) = (0, 0);
        self.open.push(Reverse((0, 0, from)));
        while let Some(Reverse((price, hops, at))) = self.open.pop() {
            if std::mem::replace(&mut self.done[at as usize], true) {
                continue;
            }
            self.order.push(at);
            for &arc in graph.leaving(at) {
                let to = graph.arcs()[arc as usize].to as usize;
                let found = (price + prices[arc as usize], hops + 1);
                if !self.done[to] && found < (self.price[to], self.hops[to]) {
                    (self.price[to], self.hops[to]) = found;
                    self.open.push(Reverse((found.0, found.1, narrow(to))));
                }
            }
        }
    }
}

pub(crate) struct Entering {
    first: Vec<u32>,
    arcs: Vec<u32>,
}

impl Entering {
    pub(crate) fn new(graph: &Graph) -> Self {
        let mut first = vec![0_u32; graph.nodes() as usize + 1];
        graph.arcs().iter().for_each(|arc| first[arc.to as usize + 1] += 1);
        for node in 1..first.len() {
            first[node] += first[node - 1];
        }
        let (mut next, mut arcs) = (first.clone(), vec![0; graph.arcs().len()]);
        for (at, arc) in (0..).zip(graph.arcs()) {
            arcs[next[arc.to as usize] as usize] = at;
            next[arc.to as usize] += 1;
        }
        Self { first, arcs }
    }

    pub(crate) fn of(&self, node: u32) -> &[u32] {
        &self.arcs[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }
}

/// A computation of the loads that shortest paths at given prices put on arcs.
pub struct Router<'a> {
    pub(super) graph: &'a Graph,
    pub(super) entering: Entering,
    search: Search,
    /// The units that pass through or end at each node, for the present source.
    through: Vec<f64>,
}

impl<'a> Router<'a> {
    pub fn new(graph: &'a Graph) -> Self {
        let through = vec![0.0; graph.nodes() as usize];
        Self { graph, entering: Entering::new(graph), search: Search::new(graph), through }
    }

    /// Sends a unit from a rank to each other rank along the cheapest paths; among these, along the paths with the
    /// fewest arcs. If several such arcs lead to a node, the unit is split in proportion to their rates. Calls `add`
    /// with each used arc and its load. Returns the sum of distances, or an error if a rank cannot be reached.
    pub(super) fn route(&mut self, prices: &[u64], from: u32, mut add: impl FnMut(u32, f64)) -> Result<u64, NoForest> {
        interrupt::check();
        let Self { graph, entering, search, through } = self;
        search.run(graph, prices, from);
        let ranks = graph.ranks() as usize;
        let mut sum = 0;
        for (rank, &price) in search.price[..ranks].iter().enumerate() {
            sum += (price != u64::MAX).then_some(price).ok_or(NoForest::Unreachable)?;
            through[rank] = 1.0;
        }
        through[ranks..].fill(0.0);
        through[from as usize] = 0.0;
        for &at in search.order.iter().skip(1).rev() {
            let units = through[at as usize];
            if units == 0.0 {
                continue;
            }
            let here = (search.price[at as usize], search.hops[at as usize]);
            let brings = |arc: &&u32| {
                let before = graph.arcs()[**arc as usize].from as usize;
                search.done[before] && (search.price[before] + prices[**arc as usize], search.hops[before] + 1) == here
            };
            let rate = |arc: &u32| graph.arcs()[*arc as usize].rate as f64;
            let rates: f64 = entering.of(at).iter().filter(brings).map(rate).sum();
            for arc in entering.of(at).iter().filter(brings) {
                let share = units * rate(arc) / rates;
                add(*arc, share);
                through[graph.arcs()[*arc as usize].from as usize] += share;
            }
        }
        Ok(sum)
    }
}
