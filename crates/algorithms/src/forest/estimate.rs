//! The cost terms of a reduce over several trees, without its schedule.

use unisono_base::{Wavelets, interrupt::poll, narrow};
use unisono_lower::{Estimate, Phase, Sharper, Terms};

use super::{
    Tree, Ways,
    emit::{depth_cycles, loaded},
};
use crate::Case;

/// Returns the elementary steps of [`estimate`] for `trees` trees, measured on up to 757 x 996 PEs.
pub fn estimate_steps(case: &Case, trees: u32) -> u128 {
    const A_PE: u128 = 1000;
    A_PE * u128::from(trees) * u128::from(case.grid().count())
}

/// Returns the cycles that a chunk of a child takes at its parent; 1 for a chunk of one element. See [`estimate`].
fn chunk_cycles(chunk: u32, trees: u32) -> u32 {
    let more = u64::from(chunk.saturating_sub(1)) * u64::from(2 * trees - 1) / u64::from(trees);
    u32::try_from(more + 1).unwrap_or(u32::MAX)
}

/// Returns the idle cycles of the busiest datapath. The lanes of two trees have none. With more trees, the datapath has
/// no element for one cycle in one of three rounds of all trees. In simulations a round is one cycle longer in 1 of 2.9
/// to 3.3 rounds for four k-d trees on 16 x 16 and 32 x 32 PEs with 1024 to 4096 elements, in 1 of 2.4 to 3.0 for
/// quad-chain on 8 x 8 to 32 x 32 PEs, and never for two trees.
fn lost_turns(case: &Case, trees: &[Tree]) -> f64 {
    let rounds = loaded(case, trees).map(|(_, share)| share.len).max().unwrap_or(0);
    if trees.len() > 2 { f64::from(rounds) / 3.0 } else { 0.0 }
}

/// Returns the cost terms, with the time of the slowest path. The path with the most hops and the path with the most
/// messages may differ, so both are followed together. The time is that of the root's first element, plus the work of
/// the busiest PE on all other elements. If links carry more wavelets than this work, half of the excess counts, as in
/// simulations up to 256 x 256 PEs.
///
/// A PE with chunks of c elements receives c elements of each child except the last before it sends. Each chunk
/// occupies the datapath of the PE for c cycles, which the lanes of the other trees need too. With T trees, the other
/// lanes are assumed to get 1 - 1/T as many cycles, a factor fitted to simulations of two trees on 64 x 64 PEs. So each
/// level waits (c - 1) (2 - 1/T) cycles longer for such a child.
pub fn estimate(case: &Case, trees: &[Tree], chunk: u32) -> Estimate {
    let pes: usize = narrow(case.grid().count());
    let ways = Ways::of(case, trees);
    let (mut links, mut work, mut received, mut sent) = (vec![0; pes * 4], vec![0; pes], vec![0; pes], vec![0; pes]);
    let (mut first, mut distance, mut depth) = (0, 0, 0);
    let mut edge = 0;
    for (tree, share) in loaded(case, trees) {
        let wavelets = Wavelets::of(u64::from(share.len), case.collective.element_bytes()).0;
        let mut hops = vec![0; pes];
        for e in tree.edges() {
            poll();
            ways.links(edge, |l| {
                links[l] += wavelets;
                hops[e.from as usize] += 1;
            });
            sent[e.from as usize] += wavelets;
            received[e.to as usize] += wavelets;
            edge += 1;
        }
        let children = tree.children_by_arrival(case.grid(), depth_cycles(case));
        work.iter_mut().zip(&children).for_each(|(w, c)| *w += wavelets * (c.len() as u64).max(1));
        let waits = chunk_cycles(chunk.min(share.len), narrow(trees.len()));
        let (ready, far, deep) = tree.latency(&children, depth_cycles(case), |pe| hops[pe as usize], waits);
        (first, distance, depth) = (first.max(ready), distance.max(far), depth.max(deep));
    }
    let most = |of: &[u64]| of.iter().copied().max().unwrap_or(0) as f64;
    let terms = Terms {
        energy: links.iter().sum::<u64>() as f64,
        distance: f64::from(distance),
        depth: f64::from(depth),
        contention: most(&sent).max(most(&received)),
        links: links.iter().filter(|&&l| l > 0).count() as f64,
        max_link_load: most(&links),
        datapath: most(&work),
    };
    let busy = f64::midpoint(terms.datapath, terms.datapath.max(terms.max_link_load));
    let cycles = f64::from(first) - 1.0 + busy + lost_turns(case, trees);
    let sharper = (depth > 0).then(|| Sharper {
        cycles_beside_depth: cycles - case.depth_cycles() * terms.depth,
        why: "the time is that of the slowest single path; distance and depth are the largest of all paths, which no one path has both",
    });
    Estimate { phases: vec![Phase { sharper, ..Phase::new("reduce", terms) }] }
}
