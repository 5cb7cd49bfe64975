//! Forests of one root among many ranks, composed of one tree of each rank.
//!
//! A chunk first goes to some rank, whose own tree distributes it: a broadcast as a scatter and an allgather, chunk by
//! chunk. All ranks then share the sending; in a single tree of small depth, few ranks send. The chunks of a group go
//! to different ranks: those for which the path to the rank and the rank's tree together cost least at the present
//! loads of the links.

use std::sync::Arc as Shared;

use unisono_base::narrow;

use crate::{
    Forest, Graph, Ways,
    arborescence::NONE,
    growth::Growth,
    loads::{Links, Loads},
    packing::{Edge, NoPacking, Tree},
    pricing::Pricing,
    symmetry::Symmetry,
};

/// The steepness of costs ([`Loads::steepness`]) in each round.
const STEEP: [f64; 4] = [6.0, 16.0, 32.0, 64.0];
/// The maximum number of messages on the path from the root to the rank whose tree distributes a chunk.
const MOST_MESSAGES: u32 = 2;
/// The maximum number of groups into which a round divides the chunks; all chunks of a group are placed at the same
/// costs.
const PARTS: usize = 48;

/// Returns the largest depth of trees composed of the trees of `over`.
pub(crate) fn relay_depth(over: &Forest) -> u32 {
    over.depth + MOST_MESSAGES
}

/// Returns trees for `chunks` chunks of `root`. `own` holds the tree of each rank; `enough` is a lower bound on the
/// time for a block of one unit.
///
/// # Errors
/// Returns an error if a rank cannot be reached.
pub(crate) fn relay(graph: &Graph, root: u32, own: &[Tree], chunks: u32, enough: f64) -> Result<Growth, NoPacking> {
    let enough = enough * f64::from(chunks);
    let mut pricing = Pricing::new(graph, Ways::Shortest, None);
    let still = Symmetry::none(graph);
    let mut loads = Loads::new(&Links { graph, symmetry: &still, late: &[] }, chunks, STEEP[0]);
    let mut trees: Vec<Option<Shared<Tree>>> = vec![None; chunks as usize];
    let mut best = (f64::INFINITY, trees.clone());
    let each = (chunks as usize).div_ceil(PARTS);
    for steepness in STEEP {
        loads.steepness = steepness;
        let target = loads.busiest();
        for first in (0..trees.len()).step_by(each) {
            let part = first..(first + each).min(trees.len());
            trees[part.clone()].iter().flatten().for_each(|tree| loads.add(tree, -1.0));
            let aim = if best.0.is_finite() { target } else { enough * part.end as f64 / trees.len() as f64 };
            let costs = loads.aim(aim);
            pricing.reprice(costs);
            let over = Approach::new(&pricing, graph.ranks(), root);
            let price = |rank: usize| {
                let own: f64 = own[rank].edges.iter().flat_map(|edge| &edge.way).map(|&arc| costs[arc as usize]).sum();
                over.price[rank] + own
            };
            let mut ranks: Vec<(f64, usize)> = (0..own.len()).map(|rank| (price(rank), rank)).collect();
            ranks.sort_by(|a, b| a.0.total_cmp(&b.0));
            for (tree, (_, rank)) in trees[part].iter_mut().zip(ranks.into_iter().cycle()) {
                let found = joined(root, over.to(narrow(rank), &pricing), &own[rank])?;
                loads.add(&found, 1.0);
                *tree = Some(Shared::new(found));
            }
        }
        let time = loads.busiest();
        if time < best.0 {
            best = (time, trees.clone());
        }
    }
    Ok(Growth { trees: vec![best.1.into_iter().flatten().collect()], time: best.0 / f64::from(chunks) })
}

/// The cheapest paths from the root to every rank, of at most [`MOST_MESSAGES`] messages.
struct Approach {
    price: Vec<f64>,
    /// For each number of messages, the sender of the last message to each rank; [`NONE`] if a path of fewer messages
    /// costs no more.
    from: Vec<Vec<usize>>,
}

impl Approach {
    fn new(pricing: &Pricing, ranks: u32, root: u32) -> Self {
        let (ranks, root) = (ranks as usize, root as usize);
        let mut price = vec![f64::INFINITY; ranks];
        price[root] = 0.0;
        let mut from = Vec::new();
        for _ in 0..MOST_MESSAGES {
            let before = price.clone();
            let mut last = vec![NONE; ranks];
            for at in (0..ranks).filter(|&at| before[at].is_finite()) {
                for to in 0..ranks {
                    let found = before[at] + pricing.price(at, to);
                    if found < price[to] {
                        (price[to], last[to]) = (found, at);
                    }
                }
            }
            from.push(last);
        }
        Self { price, from }
    }

    fn to(&self, rank: u32, pricing: &Pricing) -> Vec<Edge> {
        let (mut edges, mut at) = (Vec::new(), rank as usize);
        for last in self.from.iter().rev() {
            if last[at] != NONE {
                let (from, to) = (narrow(last[at]), narrow(at));
                edges.push(Edge { from, to, way: pricing.way(from, to) });
                at = last[at];
            }
        }
        edges.reverse();
        edges
    }
}

/// Appends the tree `own` of a rank to `edges`, the messages from the root to this rank. Messages to ranks that `edges`
/// already reaches are omitted.
fn joined(root: u32, mut edges: Vec<Edge>, own: &Tree) -> Result<Tree, NoPacking> {
    let ranks = own.edges.len() + 1;
    let mut depth = vec![u32::MAX; ranks];
    depth[root as usize] = 0;
    edges.iter().for_each(|edge| depth[edge.to as usize] = depth[edge.from as usize].saturating_add(1));
    for edge in &own.edges {
        if depth[edge.to as usize] == u32::MAX {
            depth[edge.to as usize] = depth[edge.from as usize].saturating_add(1);
            edges.push(edge.clone());
        }
    }
    let depth = depth.into_iter().max().unwrap_or(0);
    if depth == u32::MAX { Err(NoPacking::Unreachable) } else { Ok(Tree { root, edges, depth }) }
}
