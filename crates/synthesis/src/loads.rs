//! The loads that chosen trees put on links, and the cost of one more tree on each link.

use unisono_base::interrupt;

use crate::{Graph, packing::Tree, symmetry::Symmetry};

/// The largest exponent in a cost, so that costs stay finite.
const MOST_EXPONENT: f64 = 200.0;

/// The network in which trees are grown.
pub struct Links<'a> {
    pub graph: &'a Graph,
    pub symmetry: &'a Symmetry,
    /// For each arc, the busy time that represents its additional latency, for blocks of one unit; empty if no latency
    /// is added.
    pub late: &'a [f64],
}

/// Trees on classes of arcs. The cost of a link is an exponential of its load (multiplicative weights; Garg and
/// Koenemann, 1998).
pub(crate) struct Loads<'a> {
    symmetry: &'a Symmetry,
    /// For each class, a rate: the rate of an arc, divided by the load on the arc of all images of one arc of a listed
    /// tree ([`Symmetry::rates`]).
    rates: Vec<f64>,
    /// For each class, the busy time that represents the additional latency of an arc ([`Links::late`]).
    late: Vec<f64>,
    /// The number of arcs of listed trees in each class.
    load: Vec<f64>,
    cost: Vec<f64>,
    /// A factor in the exponents of costs. The cost of a link that is busy until the target is e^steepness times the
    /// cost of an unused link.
    pub steepness: f64,
    target: f64,
}

impl<'a> Loads<'a> {
    /// Starts without trees. The additional times, given for a whole block, are scaled to blocks of `shares` units.
    pub(crate) fn new(links: &Links<'a>, shares: u32, steepness: f64) -> Self {
        let Links { graph, symmetry, late } = *links;
        let load = vec![0.0; symmetry.classes()];
        let cost = vec![0.0; graph.arcs().len()];
        let late = symmetry.largest(late).into_iter().map(|late| late * f64::from(shares)).collect();
        Self { symmetry, rates: symmetry.rates(graph), late, load, cost, steepness, target: 1.0 }
    }

    pub(crate) fn add(&mut self, tree: &Tree, trees: f64) {
        let arcs = tree.edges.iter().flat_map(|edge| &edge.way);
        arcs.for_each(|&arc| self.load[self.symmetry.class(arc) as usize] += trees);
    }

    fn busy(&self, class: usize, more: f64) -> f64 {
        (self.load[class] + more) / self.rates[class] + self.late[class]
    }

    pub(crate) fn classes(&self) -> usize {
        self.load.len()
    }

    /// Adds `messages` messages to each of the given classes.
    pub(crate) fn carry(&mut self, classes: &[u32], messages: f64) {
        classes.iter().for_each(|&class| self.load[class as usize] += messages);
    }

    /// Returns the busiest arc's time, with additional times, if each tree carries one unit.
    pub(crate) fn busiest(&self) -> f64 {
        self.used().map(|class| self.busy(class, 0.0)).fold(0.0, f64::max)
    }

    /// Returns the busiest arc's time, without additional times, if each tree carries one unit.
    pub(crate) fn fluid(&self) -> f64 {
        self.used().map(|class| self.load[class] / self.rates[class]).fold(0.0, f64::max)
    }

    fn used(&self) -> impl Iterator<Item = usize> {
        (0..self.load.len()).filter(|&class| self.load[class] > 0.0)
    }

    /// Returns the cost of one more tree on an arc of a class.
    pub(crate) fn cost(&self, class: usize) -> f64 {
        let exponent = self.steepness * (self.busy(class, 1.0) / self.target - 1.0);
        exponent.min(MOST_EXPONENT).exp() / self.rates[class]
    }

    pub(crate) fn cost_of(&self, tree: &Tree) -> f64 {
        tree.edges.iter().flat_map(|edge| &edge.way).map(|&arc| self.cost(self.symmetry.class(arc) as usize)).sum()
    }

    /// Computes the costs of all arcs at the present loads. The costs are relative to the larger of `target` and the
    /// busiest arc's time.
    pub(crate) fn aim(&mut self, target: f64) -> &[f64] {
        interrupt::check();
        self.target = self.busiest().max(target);
        let costs: Vec<f64> = (0..self.load.len()).map(|class| self.cost(class)).collect();
        for (arc, cost) in (0..).zip(&mut self.cost) {
            *cost = costs[self.symmetry.class(arc) as usize];
        }
        &self.cost
    }
}
