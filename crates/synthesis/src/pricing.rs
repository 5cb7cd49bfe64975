//! Cheap trees at given prices of arcs.

use unisono_base::{interrupt::poll, narrow};

use crate::{
    Graph, Way, Ways,
    arborescence::{ArcWeights, NONE, cheapest, depths, improve, price_of, shallow, shortened},
    packing::{Edge, NoPacking, Tree},
};

/// Finds trees whose edges are the cheapest paths between ranks at the present prices.
pub(crate) struct Pricing<'a> {
    graph: &'a Graph,
    allowed: Ways,
    depth: Option<u32>,
    /// If only shortest paths are allowed, the arcs on the shortest paths from each rank ([`Graph::fan`]); otherwise
    /// empty.
    fans: Vec<Vec<u32>>,
    /// For each rank, the last arc of the cheapest path to each node, or [`NO_ARC`].
    by: Vec<Vec<u32>>,
    /// The price of the cheapest path between each pair of ranks.
    prices: ArcWeights,
    /// Scratch space: the price of each node from the present rank.
    price: Vec<f64>,
}

const NO_ARC: u32 = u32::MAX;

impl<'a> Pricing<'a> {
    pub(crate) fn new(graph: &'a Graph, allowed: Ways, depth: Option<u32>) -> Self {
        let ranks = graph.ranks() as usize;
        let fans = match allowed {
            Ways::Any => Vec::new(),
            Ways::Shortest => (0..graph.ranks()).map(|from| graph.fan(from)).collect(),
        };
        let nodes = graph.nodes() as usize;
        let by = vec![vec![NO_ARC; nodes]; ranks];
        Self { graph, allowed, depth, fans, by, prices: ArcWeights::new(ranks), price: vec![0.0; nodes] }
    }

    pub(crate) fn reprice(&mut self, prices: &[f64]) {
        for from in 0..self.graph.ranks() {
            poll();
            let (price, by) = (&mut self.price, &mut self.by[from as usize]);
            match self.allowed {
                Ways::Any => self.graph.ways(from, prices, price, by),
                Ways::Shortest => {
                    price.fill(f64::INFINITY);
                    price[from as usize] = 0.0;
                    for &arc in &self.fans[from as usize] {
                        let ends = self.graph.arcs()[arc as usize];
                        let found = price[ends.from as usize] + prices[arc as usize];
                        if found < price[ends.to as usize] {
                            (price[ends.to as usize], by[ends.to as usize]) = (found, arc);
                        }
                    }
                }
            }
            for to in (0..self.graph.ranks()).filter(|&to| to != from) {
                self.prices.set(from as usize, to as usize, self.price[to as usize]);
            }
        }
    }

    /// Returns a cheap tree within the depth. If `before`, a tree of the same root, is given, the price is at most the
    /// price of `before`. `thorough` finds cheaper trees and takes longer.
    pub(crate) fn shallow(&self, root: u32, before: Option<&Tree>, thorough: bool) -> Result<Tree, NoPacking> {
        let (prices, at, most) = (&self.prices, root as usize, self.depth.unwrap_or(u32::MAX));
        let mut found = shallow(prices, at, most).ok_or(NoPacking::Unreachable)?;
        let improved = before.map(|before| {
            let mut parent = vec![NONE; self.by.len()];
            before.edges.iter().for_each(|edge| parent[edge.to as usize] = edge.from as usize);
            improve(prices, at, most, &mut parent);
            parent
        });
        let shortened = thorough.then(|| shortened(prices, at, most)).flatten();
        for other in [improved, shortened].into_iter().flatten() {
            if price_of(prices, &other) < price_of(prices, &found) {
                found = other;
            }
        }
        Ok(self.over(root, &found))
    }

    /// Returns a cheap tree within the depth, and the price of the cheapest tree of any depth, a lower bound.
    pub(crate) fn tree(&self, root: u32) -> Result<(Tree, f64), NoPacking> {
        let at = root as usize;
        let parent = cheapest(&self.prices, at).ok_or(NoPacking::Unreachable)?;
        let least = price_of(&self.prices, &parent);
        let is_deep = |most| depths(&parent, at).iter().any(|&d| d > most);
        let tree =
            if self.depth.is_some_and(is_deep) { self.shallow(root, None, true)? } else { self.over(root, &parent) };
        Ok((tree, least))
    }

    fn over(&self, root: u32, parent: &[usize]) -> Tree {
        let depth = depths(parent, root as usize);
        let mut order: Vec<usize> = (0..parent.len()).filter(|&rank| parent[rank] != NONE).collect();
        order.sort_by_key(|&rank| depth[rank]);
        let edge = |to: usize| {
            let (from, to) = (narrow(parent[to]), narrow(to));
            Edge { from, to, way: self.way(from, to) }
        };
        let edges = order.into_iter().map(edge).collect();
        Tree { root, edges, depth: depth.into_iter().max().unwrap_or(0) }
    }

    pub(crate) fn price(&self, from: usize, to: usize) -> f64 {
        self.prices.get(from, to)
    }

    pub(crate) fn way(&self, from: u32, to: u32) -> Way {
        let (mut way, mut at) = (Vec::new(), to);
        while at != from {
            let arc = self.by[from as usize][at as usize];
            way.push(arc);
            at = self.graph.arcs()[arc as usize].from;
        }
        way.reverse();
        way
    }
}
