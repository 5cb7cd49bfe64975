//! The forests of a fabric. Linear programs find them, or they are grown tree by tree.

use std::{iter, sync::Arc as Shared};

use unisono_base::{limits, narrow, rounded};

use super::{Fabric, NoForest, Roots, Runs, kept, kept_unless, sizes::MOST_QUICK};
use crate::{
    Forest,
    forest::Trees,
    growth::{self, Growth, Known, MOST_SHARES},
    loads::Links,
    packing::{NoPacking, Packing, Tree, of_trees},
    relaying::{relay, relay_depth},
    root_trees::RootTrees,
    rounding,
    symmetry::Symmetry,
    tree_cache,
};

/// A chunk size in bytes at which the choice of trees ignores latencies.
pub(super) const LONG: u64 = 1 << 32;
/// The largest product of the number of trees of all representative roots and the number of pairs of ranks for which
/// [`crate::arrivals::grow`] is used.
const MOST_TIMED: u64 = 1 << 19;
/// The number of trees of one root in a packing composed of the trees of all ranks.
const SPREAD_SHARES: u32 = 1 << 9;

impl Fabric {
    /// Returns a forest of whole chunks with at most `depth` edges on a path. A chunk has `bytes` bytes.
    ///
    /// # Errors
    /// Returns an error if the ranks are too many or too far apart, the solver fails, or the work exceeds a limit.
    pub fn forest(
        &self,
        roots: Roots,
        depth: Option<u32>,
        chunks: u32,
        bytes: u64,
    ) -> Result<Shared<Forest>, NoForest> {
        let class = self.class(roots, chunks, bytes);
        let make = || Ok(Shared::new(self.make(roots, depth, chunks, class)?));
        kept_unless(&self.forests, (roots, depth, chunks, class), make)
    }

    /// Returns the class of blocks for which latencies of links influence the choice of trees: the rounded logarithm of
    /// their bytes to base 2. Returns `None` if latencies are ignored:
    /// * for allreduces of several chunks through one root;
    /// * for forests that are spread from one root or are found by counting;
    /// * for one root and few ranks, if no message arrives sooner over another rank;
    /// * if all links have the same latency;
    /// * for long blocks, whose time hardly depends on the differences of latencies.
    ///
    /// Ignoring latencies saves work: trees are grown once, instead of twice and a third time by arrival times.
    pub(super) fn class(&self, roots: Roots, chunks: u32, bytes: u64) -> Option<u32> {
        const SMALL: f64 = 1e-3;
        const LEAST: f64 = 16.0;
        // Chunks of one root that are spread along the trees of all ranks ignore latencies.
        let is_spread = roots != Roots::All && self.spreads();
        let block = bytes as f64 * f64::from(chunks);
        let class = || narrow(rounded(block.max(LEAST).log2().round()));
        if matches!(roots, Roots::Through(_)) {
            return (chunks == 1).then(class);
        }
        let is_ignored = !self.grows_for(roots) && !self.relays_sooner();
        if self.hops_ns.is_empty() || is_ignored || self.is_alike(roots) || is_spread {
            return None;
        }
        let all = self.latencies_ns(self.packed(roots).ok()?);
        let (least, most) = all.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), &ns| (low.min(ns), high.max(ns)));
        let longest = (most - least) * self.graph.bytes_per_ns() / (SMALL * self.cut(roots).time());
        (longest > block.max(LEAST)).then(class)
    }

    /// Returns for each arc by how much its latency exceeds the least latency. The unit is the time of a block of the
    /// class on an arc of rate 1. The result is limited to a third of the least time of a forest; larger values would
    /// make all other arcs seem free.
    pub(super) fn late(&self, roots: Roots, class: u32) -> Result<Vec<f64>, NoForest> {
        const MOST: f64 = 1.0 / 3.0;
        let most = MOST * self.cut(roots).time();
        let all = self.latencies_ns(self.packed(roots)?);
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let unit = self.graph.bytes_per_ns() / f64::from(class).exp2();
        Ok(all.into_iter().map(|latency| ((latency - least) * unit).min(most)).collect())
    }

    /// Returns the time of the busiest link in [`Fabric::packing`] for blocks of `bytes`, in nanoseconds: an estimate
    /// of the least time of forests of this depth, without latencies.
    ///
    /// # Errors
    /// Returns the errors of [`Fabric::forest`].
    pub fn fluid_ns(&self, roots: Roots, depth: u32, bytes: u64) -> Result<f64, NoForest> {
        Ok(self.packing(roots, Some(depth))?.time * bytes as f64 / self.graph.bytes_per_ns())
    }

    fn make(&self, roots: Roots, depth: Option<u32>, chunks: u32, class: Option<u32>) -> Result<Forest, NoForest> {
        if let Some(steps) = self.alike(roots) {
            return if depth.is_some_and(|most| most < steps.depth()) {
                Err(NoForest::Unreachable)
            } else {
                Ok(steps.forest(chunks))
            };
        }
        let listed = |symmetry, roots, Growth { trees, time }| {
            Forest::listed(self.graph.ranks(), chunks, RootTrees { symmetry, roots, of: trees }, time)
        };
        let of_grown = |grown| listed(Shared::clone(self.symmetry(roots)), self.representatives(roots), grown);
        if roots == Roots::All
            && let Some(repaired) = self.repaired(depth, chunks, class)?
        {
            return Ok(of_grown(repaired));
        }
        if let Some(class) = class {
            // For short blocks, the forest that ends first is chosen among three: grown with latencies, grown without
            // latencies, and grown by the first arrivals of a root's messages.
            let ended = |forest: Forest| {
                let end = self.times_of(&forest, (1 << class) / u64::from(chunks), true, Runs::Down).end;
                (forest, end)
            };
            let first = self.first_arrivals(roots, depth, chunks, class)?;
            if let (Roots::Through(_), Some(first)) = (roots, &first) {
                return Ok(first.clone());
            }
            let mut best = ended(self.make(roots, depth, chunks, None)?);
            if self.grows_for(roots) {
                let late = ended(of_grown(self.grown(roots, depth, chunks, &self.late(roots, class)?)?));
                best = if late.1 < best.1 { late } else { best };
            }
            if roots == Roots::All {
                let timed = self.timed(depth, chunks, class, (&best.0, best.1))?.map(ended);
                best = timed.filter(|timed| timed.1 < best.1).unwrap_or(best);
            }
            return Ok(first.map(ended).filter(|first| first.1 < best.1).unwrap_or(best).0);
        }
        let grown = if self.grows_for(roots) { Some(of_grown(self.grown(roots, depth, chunks, &[])?)) } else { None };
        let grown = match grown {
            Some(grown) if roots == Roots::All && self.grows() || self.spreads() => return Ok(grown),
            grown => grown,
        };
        // A packing may give unequal shares to the trees of a root. Either the packing or the grown forest may be
        // better.
        let list = roots.list(self.graph.ranks());
        let back = self.back(roots);
        let (trees, time) =
            rounding::rounded(self.routed(), &*self.packing(roots, depth)?, &list, (chunks, back.as_deref()));
        let none = || Shared::new(Symmetry::none(self.routed()));
        let packed = listed(none(), list, Growth { trees, time });
        let Some(grown) = grown else { return Ok(packed) };
        let end = |forest: &Forest| match roots {
            // The trees of a packing load the links evenly in total, but not at every time.
            Roots::All => self.times_of(forest, LONG / u64::from(chunks), true, Runs::Down).end,
            _ => forest.time,
        };
        Ok(if end(&grown) <= end(&packed) { grown } else { packed })
    }

    /// Returns the forest of the trees of first arrivals, in which all chunks of a root use one tree. `None` if a rank
    /// remains out of reach; if no message arrives sooner over another rank; or for all roots of many ranks, whose
    /// messages delay each other.
    fn first_arrivals(
        &self,
        roots: Roots,
        depth: Option<u32>,
        chunks: u32,
        class: u32,
    ) -> Result<Option<Forest>, NoForest> {
        let is_through = matches!(roots, Roots::Through(_));
        if !is_through && (!self.relays_sooner() || roots == Roots::All && self.grows()) {
            return Ok(None);
        }
        let (graph, list) = (self.packed(roots)?, self.representatives(roots));
        let Some(found) = self.soonest(graph, &list, depth, (1 << class) / u64::from(chunks)) else { return Ok(None) };
        let of: Vec<Vec<Shared<Tree>>> =
            found.into_iter().map(|(tree, _)| iter::repeat_n(Shared::new(tree), chunks as usize).collect()).collect();
        let symmetry = Shared::clone(self.symmetry(roots));
        let time = self.busiest(&symmetry, &of) / f64::from(chunks);
        let trees = RootTrees { symmetry, roots: list, of };
        Ok(Some(Forest::listed(self.graph.ranks(), chunks, trees, time)))
    }

    /// Returns a forest of all roots from [`crate::arrivals::grow`], for blocks of a class; `None` if the growth takes
    /// too much work, or trees are not listed by root. `known` is a forest that ends at `end`. If there are many
    /// chunks, several chunks use each tree of a forest of fewer chunks.
    fn timed(
        &self,
        depth: Option<u32>,
        chunks: u32,
        class: u32,
        (known, end): (&Forest, f64),
    ) -> Result<Option<Forest>, NoForest> {
        let graph = self.packed(Roots::All)?;
        let ranks = graph.ranks();
        let each = self.representatives(Roots::All).len() as u64 * u64::from(ranks).pow(2);
        let most = narrow::<u32>((MOST_TIMED / each).min(u64::from(MOST_SHARES)));
        let Some(fewer) = (1..=chunks.min(most)).rev().find(|fewer| chunks.is_multiple_of(*fewer)) else {
            return Ok(None);
        };
        let trees = if fewer < chunks {
            let forest = self.forest(Roots::All, depth, fewer, (1 << class) / u64::from(fewer))?;
            let Trees::RootTrees(found) = &forest.trees else { return Ok(None) };
            let times = (chunks / fewer) as usize;
            let repeated =
                |own: &Vec<Shared<Tree>>| std::iter::repeat_n(own, times).flatten().map(Shared::clone).collect();
            RootTrees { of: found.of.iter().map(repeated).collect(), ..found.clone() }
        } else {
            let Trees::RootTrees(found) = &known.trees else { return Ok(None) };
            admit(20 * u128::from(chunks), found.roots.len(), ranks)?;
            let unit = self.graph.bytes_per_ns() * f64::from(chunks) / f64::from(class).exp2();
            let hops: Vec<f64> = self.latencies_ns(graph).into_iter().map(|ns| ns * unit).collect();
            let links = Links { graph, symmetry: &found.symmetry, late: &[] };
            RootTrees { of: tree_cache::in_time(&links, &hops, &found.roots, depth, &found.of, end), ..found.clone() }
        };
        let time = self.busiest(&trees.symmetry, &trees.of) / f64::from(chunks);
        Ok(Some(Forest::listed(ranks, chunks, trees, time)))
    }

    /// Returns the time of the busiest link if each tree, and each image of a tree under the shifts, carries one unit.
    fn busiest(&self, symmetry: &Symmetry, trees: &[Vec<Shared<Tree>>]) -> f64 {
        let mut load = vec![0.0; symmetry.classes()];
        let edges = trees.iter().flatten().flat_map(|tree| &tree.edges);
        edges.flat_map(|edge| &edge.way).for_each(|&arc| load[symmetry.class(arc) as usize] += 1.0);
        let busy = symmetry.rates(self.routed()).into_iter().zip(load).map(|(rate, load)| load / rate);
        busy.fold(0.0, f64::max)
    }

    /// Returns the tree of each chunk of each root, and the time of the busiest arc. If there are many chunks, equal
    /// numbers of chunks use each tree of a full set, and a smaller set is grown for the remaining chunks.
    fn grown(&self, roots: Roots, depth: Option<u32>, chunks: u32, late: &[f64]) -> Result<Growth, NoForest> {
        let graph = self.packed(roots)?;
        if let Some(spread) = self.spread(roots, depth, chunks) {
            return spread;
        }
        let mut of = vec![Vec::with_capacity(chunks as usize); self.representatives(roots).len()];
        let most = growth::most_trees(graph.ranks(), roots != Roots::All);
        for (trees, times) in [(most, chunks / most), (chunks % most, 1)] {
            if trees == 0 || times == 0 {
                continue;
            }
            let found = self.growth(roots, depth, trees, late)?;
            for (trees, own) in of.iter_mut().zip(&found.trees) {
                trees.extend(std::iter::repeat_n(own, times as usize).flatten().map(Shared::clone));
            }
        }
        let time = self.busiest(self.symmetry(roots), &of) / f64::from(chunks);
        Ok(Growth { trees: of, time })
    }

    /// Returns trees of one root composed of those of all ranks, if they exist and are no deeper than `depth`.
    fn spread(&self, roots: Roots, depth: Option<u32>, chunks: u32) -> Option<Result<Growth, NoForest>> {
        let Roots::One(root) = roots else { return None };
        let over = self.spread_over(roots).filter(|over| depth.is_none_or(|most| most >= relay_depth(over)))?;
        let Trees::RootTrees(listed) = &over.trees else { return None };
        let graph = self.routed();
        let own: Vec<Tree> = (0..self.graph.ranks()).map(|rank| listed.moved(graph, rank, 0)).collect();
        Some(relay(graph, root, &own, chunks, self.cut(roots).time()).map_err(NoForest::from))
    }

    /// Returns the forest of all ranks whose trees distribute the chunks of one root ([`crate::relaying`]), with one
    /// chunk for each rank. `None` if the chunks of these roots are not distributed in this way, or if there is no such
    /// forest.
    pub(super) fn spread_over(&self, roots: Roots) -> Option<Shared<Forest>> {
        let all = Roots::All;
        if roots == all || !self.spreads() {
            return None;
        }
        let least = self.least_depth(all).ok()?;
        self.forest(all, Some(self.usual_depth(all, least)), 1, LONG).ok()
    }

    /// Returns whether forests of these roots are grown, alone or beside those of linear programs.
    fn grows_for(&self, roots: Roots) -> bool {
        roots == Roots::All || self.grows() && !matches!(roots, Roots::Through(_))
    }

    /// Returns whether forests are grown instead of found by linear programs.
    pub(super) fn grows(&self) -> bool {
        self.graph.ranks() > MOST_QUICK
    }

    /// Returns the time for blocks of one unit at which the search for trees may end: the bound of the cut. For many
    /// ranks the time is slightly longer, because the last improvements take longest, and a forest of whole chunks
    /// exceeds the bound by more than this addition.
    pub(super) fn enough(&self, roots: Roots) -> f64 {
        let near = match self.graph.ranks() {
            0..=MOST_QUICK => 1.0,
            17..=32 => 1.002,
            _ => 1.015,
        };
        near * self.cut(roots).time()
    }

    /// Returns the packing that approximates a forest of many chunks.
    ///
    /// # Errors
    /// Returns the errors of [`Fabric::forest`].
    pub fn packing(&self, roots: Roots, depth: Option<u32>) -> Result<Shared<Packing>, NoForest> {
        let graph = self.packed(roots)?;
        let ranks = graph.ranks();
        kept(&self.packings, (roots, depth), || {
            if self.grows() && self.grows_for(roots) {
                return self.grown_packing(roots, depth).map(Shared::new);
            }
            let list = roots.list(ranks);
            // The number of steps was measured. There are about 45 rounds, each with a search for trees and a linear
            // program that gains a column for each root.
            admit(20_000, list.len(), ranks)?;
            // No bound is known that trees used in both directions always attain.
            let back = self.back(roots);
            let enough = if back.is_some() { 0.0 } else { self.enough(roots) };
            tree_cache::packing(graph, list, depth, (enough, back)).map_err(NoForest::from)
        })
    }

    /// Grows a packing: trees with equal shares for all roots, or with optimized shares for one root.
    fn grown_packing(&self, roots: Roots, depth: Option<u32>) -> Result<Packing, NoForest> {
        match roots {
            Roots::All => {
                // If forests take long, a forest of one chunk is enough to choose the depth.
                let shares = if self.is_cheap(roots) { growth::SHARES } else { 1 };
                if let Some(repaired) = self.repaired(depth, shares, None)? {
                    return Ok(repaired.packing());
                }
                Ok(self.growth(roots, depth, shares, &[])?.packing())
            }
            Roots::One(_) | Roots::Through(_) => {
                if let Some(spread) = self.spread(roots, depth, SPREAD_SHARES) {
                    return Ok(spread?.packing());
                }
                // If trees are spread, this packing is only used to decide whether a small depth is tried.
                let shares = if self.spreads() { growth::SHARES } else { growth::MOST_SHARES };
                let grown = self.growth(roots, depth, shares, &[])?;
                of_trees(self.packed(roots)?, &grown.trees[0]).map_err(NoForest::from)
            }
        }
    }

    fn growth(&self, roots: Roots, depth: Option<u32>, shares: u32, late: &[f64]) -> Result<Shared<Growth>, NoForest> {
        let graph = self.packed(roots)?;
        let list = self.representatives(roots);
        admit_growth(shares, list.len(), graph.ranks())?;
        let links = Links { graph, symmetry: self.symmetry(roots), late };
        tree_cache::growth(&links, list, depth, shares, self.enough(roots), Known::new()).map_err(NoForest::from)
    }
}

/// Returns an error if the growth of `shares` trees of each root exceeds the limit of work. The number of steps was
/// measured: there are about 10 rounds, in each of which every tree is grown again.
pub(super) fn admit_growth(shares: u32, roots: usize, ranks: u32) -> Result<(), NoForest> {
    admit(100 * u128::from(shares), roots, ranks)
}

/// Returns an error if `each` steps for each root and pair of ranks exceed the limit of work.
fn admit(each: u128, roots: usize, ranks: u32) -> Result<(), NoForest> {
    let work = each * roots as u128 * u128::from(ranks).pow(2);
    limits::admit("the packing of a forest", 0, work).map_err(NoForest::OverLimit)
}

impl From<NoPacking> for NoForest {
    fn from(reason: NoPacking) -> Self {
        match reason {
            NoPacking::Unreachable => Self::Unreachable,
            NoPacking::Solver(message) => Self::Solver(message),
        }
    }
}
