//! The tree of "Accelerating Allreduce with in-network reduction on Intel PIUMA": dimension-ordered shortest paths
//! between nodes, and shortest paths inside nodes. The root of the tree is in the node of the collective's root. If the
//! collective has no root, the root of the tree is in a node near the middle ([`root_of`]).

use unisono_collective::{Collective, Kind};
use unisono_lower::switches::Embedding;
use unisono_machine::in_network::LevelOf;

use super::{
    Site,
    grow::{Plan, Root, TreeSlice, grow},
    ways::{Ways, ways},
};

struct Shortest<'a> {
    site: &'a Site,
    root_node: u32,
    root: Root,
    /// The paths inside a node to each of its switches, computed when they are first needed.
    known: Vec<Option<Ways>>,
}

impl Plan for Shortest<'_> {
    fn leave(&self, node: u32) -> Option<(usize, u32)> {
        let layout = &*self.site.layout;
        let wanted = |dim| layout.coordinate(self.root_node, dim);
        let dim = (0..layout.dims().len()).find(|&dim| layout.coordinate(node, dim) != wanted(dim))?;
        Some((dim, wanted(dim)))
    }

    fn inside(&mut self, to: u32) -> &Ways {
        self.known[to as usize].get_or_insert_with(|| ways(&self.site.machine, &self.site.layout, to, |_, _| true))
    }

    fn root(&self) -> Root {
        self.root
    }
}

pub fn shortest(site: &Site, c: &Collective, part: TreeSlice) -> Embedding {
    let (root_node, root) = root_of(site, c);
    let known = vec![None; site.layout.locals() as usize];
    grow(site, c, part, &mut Shortest { site, root_node, root, known })
}

/// Returns the node of the root, and its switch if the collective has a root.
pub fn root_of(site: &Site, c: &Collective) -> (u32, Root) {
    if matches!(c.kind, Kind::Broadcast | Kind::Reduce) {
        let switch = site.cores[c.root as usize];
        return (site.layout.node_of(switch), Root::At(switch));
    }
    (middle(site, &site.nodes()), Root::Best)
}

/// The most nodes whose eccentricities are compared. If there are more nodes, nearly all have the same eccentricity, so
/// the node nearest to the middle is taken.
const MOST_COMPARED: usize = 4096;

/// Returns the participating node of least eccentricity, and of equal ones the node nearest to the middle of the grid.
///
/// The distance to the middle is the sum of the distances along all dimensions. If all nodes take part, or more than
/// [`MOST_COMPARED`] nodes, eccentricities are not compared.
fn middle(site: &Site, nodes: &[u32]) -> u32 {
    let layout = &*site.layout;
    let dims = layout.dims();
    let off = |node: u32| -> u32 {
        dims.iter().enumerate().map(|(dim, size)| layout.coordinate(node, dim).abs_diff(size / 2)).sum()
    };
    // The latency of the path between two nodes: one link for each dimension in which they differ.
    let latency = |a: u32, b: u32| -> f64 {
        let apart = |dim| layout.coordinate(a, dim).abs_diff(layout.coordinate(b, dim));
        let links = (0..dims.len()).map(apart).filter(|&distance| distance > 0);
        links.map(|distance| site.machine.latency_ns(LevelOf::Node { distance })).sum()
    };
    let eccentricity = |node: u32| nodes.iter().map(|&other| latency(node, other)).fold(0.0, f64::max);
    // If all nodes of a HyperX take part, the node in the middle has the least eccentricity, even if latency grows with
    // distance.
    if nodes.len() == layout.nodes() as usize || nodes.len() > MOST_COMPARED {
        return nodes.iter().copied().min_by_key(|&node| (off(node), node)).unwrap_or(0);
    }
    let order = |&(node, far): &(u32, f64), &(other, than): &(u32, f64)| {
        far.total_cmp(&than).then((off(node), node).cmp(&(off(other), other)))
    };
    nodes.iter().map(|&node| (node, eccentricity(node))).min_by(order).map_or(0, |(node, _)| node)
}
