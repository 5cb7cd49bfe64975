//! The paths of the messages of trees over the links of a network, for their times.

use unisono_base::narrow;
use unisono_synthesis::{Fabric, Graph};

/// The links that the messages of each tree cross on a network.
pub struct Ways<'a> {
    fabric: &'a Fabric,
    /// For each tree and rank, the number of links from the rank's parent, and the least rate of these links.
    of: Vec<Vec<(u32, u64)>>,
    /// On the busiest link, the number of messages of one chunk of each tree, divided by the link's rate.
    busiest: f64,
}

impl<'a> Ways<'a> {
    /// Finds the paths; `None` if some rank cannot be reached from its parent.
    pub fn new(fabric: &'a Fabric, parents: &[Vec<u32>]) -> Option<Self> {
        let graph = fabric.graph();
        let mut on_arcs = vec![0_u32; graph.arcs().len()];
        let mut of = Vec::with_capacity(parents.len());
        for tree in parents {
            let mut links = vec![(0, u64::MAX); tree.len()];
            for (rank, &parent) in (0..).zip(tree).filter(|&(rank, &parent)| parent != rank) {
                let way = way(graph, parent, rank)?;
                way.iter().for_each(|&arc| on_arcs[arc as usize] += 1);
                let rate = way.iter().map(|&arc| graph.arcs()[arc as usize].rate).min()?;
                links[rank as usize] = (narrow(way.len()), rate);
            }
            of.push(links);
        }
        let loads = graph.arcs().iter().zip(on_arcs).map(|(arc, count)| f64::from(count) / arc.rate as f64);
        Some(Self { fabric, of, busiest: loads.fold(0.0, f64::max) })
    }

    /// Returns the ns for which one chunk of each tree occupies the busiest link.
    pub fn busiest_ns(&self, bytes: u64) -> f64 {
        self.busiest * bytes as f64 / self.fabric.graph().bytes_per_ns()
    }

    /// Returns the ns of a message from a rank's parent to the rank, without the work of hosts.
    pub fn message_ns(&self, tree: usize, rank: usize, bytes: u64) -> f64 {
        let per_unit = self.fabric.graph().bytes_per_ns();
        let (links, rate) = self.of[tree][rank];
        f64::from(links) * self.fabric.hop(1) / per_unit + bytes as f64 / (rate as f64 * per_unit)
    }
}

/// Returns the arcs of a shortest path between two ranks over nodes that are not ranks, if there is one.
fn way(graph: &Graph, from: u32, to: u32) -> Option<Vec<u32>> {
    let mut reached: Vec<(u32, Vec<u32>)> = vec![(from, Vec::new())];
    let mut met = std::collections::BTreeSet::from([from]);
    while !reached.is_empty() {
        let mut next = Vec::new();
        for (node, way) in &reached {
            for &arc in graph.leaving(*node) {
                let at = graph.arcs()[arc as usize].to;
                let longer = || way.iter().copied().chain([arc]).collect::<Vec<u32>>();
                if at == to {
                    return Some(longer());
                }
                if at >= graph.ranks() && met.insert(at) {
                    next.push((at, longer()));
                }
            }
        }
        reached = next;
    }
    None
}
