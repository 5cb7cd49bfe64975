//! The links of a network that the messages of trees take.

use unisono_base::narrow;
use unisono_synthesis::{Fabric, Graph};

/// The links that the messages of the trees take on a network.
pub struct Ways<'a> {
    fabric: &'a Fabric,
    /// The links from the parent of each rank in each tree, and the least rate of one of them.
    of: Vec<Vec<(u32, u64)>>,
    /// Messages of a chunk on the busiest link, divided by its rate.
    busiest: f64,
}

impl<'a> Ways<'a> {
    /// Finds the paths; `None` if a rank cannot be reached.
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

    /// Returns the time for which one chunk of each tree occupies the busiest link.
    pub fn busiest_ns(&self, bytes: u64) -> f64 {
        self.busiest * bytes as f64 / self.fabric.graph().bytes_per_ns()
    }

    /// Returns the time of a message to a rank from its parent, without the work of hosts.
    pub fn message_ns(&self, tree: usize, rank: usize, bytes: u64) -> f64 {
        let per_unit = self.fabric.graph().bytes_per_ns();
        let (links, rate) = self.of[tree][rank];
        f64::from(links) * self.fabric.hop(1) / per_unit + bytes as f64 / (rate as f64 * per_unit)
    }
}

/// Returns the arcs of a shortest path between two ranks over relays.
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
