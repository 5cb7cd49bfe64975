//! Grown forests: one tree for each share of each root's block, along links with little load.
//!
//! The cost of a link is an exponential of its load, so that a cheap tree avoids the busiest links (multiplicative
//! weights; Garg and Koenemann, 1998). The roots add trees alternately. Then every tree is grown again with the loads
//! of all other trees, in rounds of steeper costs. Shares are equal, so no rounding is needed. The time comes near the
//! bound of the cut long before a linear program with the same trees would be solved.

use std::sync::Arc as Shared;

use unisono_base::{narrow, rounded};

use crate::{
    Graph, Ways,
    loads::{Links, Loads},
    packing::{NoPacking, Packing, Tree},
    pricing::Pricing,
    symmetry::Symmetry,
};

/// The trees of each root, one for each share of its block, and the time of the busiest arc for blocks of one unit.
#[derive(Clone, Debug)]
pub struct Growth {
    pub trees: Vec<Vec<Shared<Tree>>>,
    pub time: f64,
}

impl Growth {
    /// Returns all trees with equal shares, sorted by root.
    pub fn packing(&self) -> Packing {
        let share = 1.0 / self.trees.first().map_or(1.0, |of| of.len() as f64);
        let trees = self.trees.iter().flatten().map(|tree| (Shared::clone(tree), share));
        Packing { trees: trees.collect(), time: self.time }
    }
}

/// The number of trees of each root in a packing of many roots.
pub(crate) const SHARES: u32 = 16;
/// The maximum number of trees of each root in a forest, if there are few ranks or one root.
pub(crate) const MOST_SHARES: u32 = 64;

/// Returns the maximum number of trees of each root in a forest. Further chunks reuse trees.
pub(crate) fn most_trees(ranks: u32, is_alone: bool) -> u32 {
    if is_thorough(ranks, is_alone) { MOST_SHARES } else { SHARES }
}

/// The maximum number of ranks for which better trees of many roots are worth their time, so that no exponent of
/// [`STEEP`] is skipped.
const FEW_RANKS: u32 = 32;
/// The maximum number of ranks for which the cheapest tree of any depth is shortened, whose work grows with the cube of
/// the ranks.
const MOST_SHORTENED: u32 = 128;
/// The steepness ([`Loads::steepness`]) while the first trees are grown.
const STEEP_AT_FIRST: f64 = 6.0;
/// The steepness in each later round.
const STEEP: [f64; 9] = [16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0, 192.0, 256.0];
/// The number of first trees that are grown at the same costs. Trees of a single root compete for the same edges, so
/// costs are updated after each tree.
const SAME_COSTS: usize = 8;
/// In later rounds, `STALE` / steepness trees are grown at the same costs.
const STALE: f64 = 64.0;
/// The relative difference up to which costs count as equal.
const CLOSE: f64 = 1e-9;
/// The growth ends if the time fell by less than this fraction in [`SLOW_ROUNDS`] rounds.
const SLOW: f64 = 1e-3;
const SLOW_ROUNDS: usize = 3;

/// Returns whether better trees are worth the time to find them.
fn is_thorough(ranks: u32, is_alone: bool) -> bool {
    ranks <= FEW_RANKS || is_alone
}

/// Known trees: for each root, the tree of each share, or `None` if that tree is to be grown.
pub type Known = Vec<Vec<Option<Shared<Tree>>>>;

/// Grows `shares` trees for each root, with at most `depth` edges on a path from the root, if given. Shifts of the
/// graph map each tree to further roots, so `roots` are representatives. The growth begins with the trees in `known`,
/// which may be empty. The growth ends after a number of rounds; earlier if the time hardly falls, or once the time for
/// blocks of one unit is at most the larger of `enough` and the least time of whole trees.
///
/// # Errors
/// Returns an error if a rank cannot be reached within the depth.
pub fn grow(
    links: &Links,
    roots: &[u32],
    ways: Ways,
    depth: Option<u32>,
    shares: u32,
    enough: f64,
    known: &Known,
) -> Result<Growth, NoPacking> {
    let Links { graph, symmetry, .. } = *links;
    let count = roots.len() * shares as usize;
    let enough = least_whole(graph, symmetry, roots, shares).max(enough * f64::from(shares));
    let mut pricing = Pricing::new(graph, ways, depth);
    let mut loads = Loads::new(links, shares, STEEP_AT_FIRST);
    let is_alone = roots.len() == 1 && symmetry.shifts() == 1;
    let shortens = is_thorough(graph.ranks(), is_alone) && graph.ranks() <= MOST_SHORTENED;
    let same = |trees: usize| if is_alone { 1 } else { trees };
    let root = |at: usize| roots[at % roots.len()];
    let known_tree = |at: usize| known.get(at % roots.len())?.get(at / roots.len())?.clone();
    let known: Vec<Option<Shared<Tree>>> = (0..count).map(known_tree).collect();
    known.iter().flatten().for_each(|tree| loads.add(tree, 1.0));
    let open: Vec<usize> = (0..count).filter(|&at| known[at].is_none()).collect();
    let kept = count - open.len();
    // Beside known trees, few trees are grown, and the known loads differ from link to link.
    let same_at_first = if kept > 0 { 1 } else { same(SAME_COSTS) };
    let mut grown = Vec::with_capacity(open.len());
    for (n, &at) in open.iter().enumerate() {
        if n % same_at_first == 0 {
            // The least time of the trees so far, including the next tree of each root.
            let rounds = ((kept + n) / roots.len() + 1) as f64;
            pricing.reprice(loads.aim(enough / f64::from(shares) * rounds));
        }
        let tree = pricing.shallow(root(at), None, shortens)?;
        loads.add(&tree, 1.0);
        grown.push(Shared::new(tree));
    }
    let mut rest = grown.into_iter();
    let mut trees: Vec<Shared<Tree>> = known.into_iter().filter_map(|tree| tree.or_else(|| rest.next())).collect();
    let mut best = (loads.busiest(), loads.fluid(), trees.clone());
    let mut times = vec![best.0];
    // With shifts, there are few trees, each with large loads. Therefore no round is skipped.
    let each = if graph.ranks() <= FEW_RANKS || symmetry.shifts() > 1 { 1 } else { 2 };
    for steepness in STEEP.into_iter().step_by(each) {
        if best.0 <= enough || times.iter().rev().nth(SLOW_ROUNDS).is_some_and(|before| best.0 > before * (1.0 - SLOW))
        {
            break;
        }
        loads.steepness = steepness;
        let target = loads.busiest();
        let stale = same(narrow(rounded((STALE / steepness).max(1.0))));
        for (at, tree) in trees.iter_mut().enumerate() {
            loads.add(tree, -1.0);
            if at % stale == 0 {
                pricing.reprice(loads.aim(target));
            }
            let found = pricing.shallow(root(at), Some(tree), shortens)?;
            if loads.cost_of(&found) < loads.cost_of(tree) * (1.0 - CLOSE) {
                *tree = Shared::new(found);
            }
            loads.add(tree, 1.0);
        }
        let time = loads.busiest();
        if time < best.0 {
            best = (time, loads.fluid(), trees.clone());
        }
        times.push(best.0);
    }
    let (_, time, trees) = best;
    let of_root = |at: usize| trees.iter().skip(at).step_by(roots.len()).map(Shared::clone).collect();
    Ok(Growth { trees: (0..roots.len()).map(of_root).collect(), time: time / f64::from(shares) })
}

/// Returns a lower bound on the time: each root has `shares` whole trees. All trees enter every rank except their root,
/// and with a single root, all trees leave the root.
fn least_whole(graph: &Graph, symmetry: &Symmetry, roots: &[u32], shares: u32) -> f64 {
    let ranks = graph.ranks() as usize;
    let count = roots.len() as u64 * u64::from(symmetry.shifts());
    let (mut enters, mut leaves) = (vec![Vec::new(); ranks], Vec::new());
    for arc in graph.arcs() {
        if let Some(enters) = enters.get_mut(arc.to as usize) {
            enters.push(arc.rate);
        }
        if count == 1 && roots == [arc.from] {
            leaves.push(arc.rate);
        }
    }
    let mut trees = vec![count * u64::from(shares); ranks];
    let own = (0..graph.ranks()).filter(|&rank| roots.contains(&symmetry.home(rank).0));
    own.for_each(|root| trees[root as usize] -= u64::from(shares));
    let entering = enters.iter().zip(&trees).map(|(rates, &trees)| time_of_whole(rates, trees));
    entering.fold(if count == 1 { time_of_whole(&leaves, u64::from(shares)) } else { 0.0 }, f64::max)
}

/// Returns the least time in which arcs of the given rates carry `units` units, each unit on one arc; 0 without arcs.
pub fn time_of_whole(rates: &[u64], units: u64) -> f64 {
    let total: u64 = rates.iter().sum();
    if total == 0 {
        return 0.0;
    }
    let mut carried: Vec<u64> =
        rates.iter().map(|&rate| narrow(u128::from(units) * u128::from(rate) / u128::from(total))).collect();
    let end = |at: usize, units: u64| units as f64 / rates[at] as f64;
    for _ in carried.iter().sum()..units {
        let next = (0..rates.len())
            .filter(|&at| rates[at] > 0)
            .min_by(|&a, &b| end(a, carried[a] + 1).total_cmp(&end(b, carried[b] + 1)));
        next.into_iter().for_each(|at| carried[at] += 1);
    }
    (0..rates.len()).map(|at| end(at, carried[at])).fold(0.0, f64::max)
}
