//! Forests of a fabric, found by linear programs or grown.

use std::sync::{Arc as Shared, PoisonError};

use unisono_base::{limits, narrow, rounded};

use super::{Fabric, NoForest, Roots, Runs, kept, sizes::MOST_QUICK};
use crate::{
    Forest, arrivals,
    forest::Trees,
    growth::{self, Growth, MOST_SHARES},
    listed::Listed,
    loads::Links,
    packing::{NoPacking, Packing, Tree, of_trees},
    recent, rounding,
    spread::{spread, spread_depth},
    symmetry::Symmetry,
};

/// Bytes of blocks whose forests regard no latencies.
const LONG: u64 = 1 << 32;
/// Trees of all roots times pairs of ranks up to which forests are grown in time.
const MOST_TIMED: u64 = 1 << 19;
/// Trees of one root in a packing over the trees of all ranks.
const SPREAD_SHARES: u32 = 1 << 9;

impl Fabric {
    /// A forest of whole chunks no deeper than `depth`, where a chunk has so many bytes.
    ///
    /// # Errors
    /// The ranks are too many or too far apart; the solver failed; the work is over a limit.
    pub fn forest(
        &self,
        roots: Roots,
        depth: Option<u32>,
        chunks: u32,
        bytes: u64,
    ) -> Result<Shared<Forest>, NoForest> {
        let class = self.class(roots, chunks, bytes);
        let key = (roots, depth, chunks, class);
        let lock = || self.forests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = lock().get(&key) {
            return Ok(Shared::clone(found));
        }
        let forest = Shared::new(self.make(roots, depth, chunks, class)?);
        lock().insert(key, Shared::clone(&forest));
        Ok(forest)
    }

    /// The class of blocks for which the latencies of links matter in the choice of trees: the logarithm of their
    /// bytes. None where links have the same latency, and for blocks so long that the differences are small beside the
    /// time of any forest: growing the trees once, not twice and then in time, takes half as long.
    pub(super) fn class(&self, roots: Roots, chunks: u32, bytes: u64) -> Option<u32> {
        const SMALL: f64 = 1e-3;
        const LEAST: f64 = 16.0;
        // Chunks of one root that are spread over the trees of all ranks regard no latencies.
        let is_spread = roots != Roots::All && self.spreads();
        if self.hops_ns.is_empty()
            || !self.grows()
            || matches!(roots, Roots::Through(_))
            || self.is_alike(roots)
            || is_spread
        {
            return None;
        }
        let all = self.latencies_ns(self.packed(roots).ok()?);
        let (least, most) = all.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), &ns| (low.min(ns), high.max(ns)));
        let longest = (most - least) * self.graph.bytes_per_ns() / (SMALL * self.cut(roots).time());
        let block = bytes as f64 * f64::from(chunks);
        (longest > block.max(LEAST)).then(|| narrow(rounded(block.max(LEAST).log2().round())))
    }

    /// Of each arc, the time of its latency beyond the least of all, in units of the time of blocks of a class. It is
    /// limited to a part of the time of any forest, since beyond that all other arcs would seem to be free.
    fn late(&self, roots: Roots, class: u32) -> Result<Vec<f64>, NoForest> {
        const MOST: f64 = 1.0 / 3.0;
        let most = MOST * self.cut(roots).time();
        let all = self.latencies_ns(self.packed(roots)?);
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let unit = self.graph.bytes_per_ns() / f64::from(class).exp2();
        Ok(all.into_iter().map(|latency| ((latency - least) * unit).min(most)).collect())
    }

    /// Nanoseconds that the busiest link of a packing takes for blocks of so many bytes: no forest of that depth is
    /// found that ends earlier.
    ///
    /// # Errors
    /// As [`Fabric::forest`].
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
            Forest::listed(self.graph.ranks(), chunks, Listed { symmetry, roots, of: trees }, time)
        };
        let of_grown = |grown| listed(Shared::clone(self.symmetry(roots)), self.representatives(roots), grown);
        if let Some(class) = class {
            // Short blocks: the forest whose messages end first, of those that do and do not regard latencies.
            let late = of_grown(self.grown(roots, depth, chunks, &self.late(roots, class)?)?);
            let other = self.make(roots, depth, chunks, None)?;
            let end = |forest: &Forest| self.times_of(forest, (1 << class) / u64::from(chunks), true, Runs::Down).end;
            let mut best = if end(&late) < end(&other) { late } else { other };
            if roots == Roots::All {
                let timed = self.timed(depth, chunks, class, (&best, end(&best)))?;
                best = timed.filter(|timed| end(timed) < end(&best)).unwrap_or(best);
            }
            return Ok(best);
        }
        let grows = self.grows() && !matches!(roots, Roots::Through(_));
        let grown = if grows { Some(self.grown(roots, depth, chunks, &[])?) } else { None };
        let grown = grown.map(of_grown);
        let grown = match grown {
            Some(grown) if roots == Roots::All || self.spreads() => return Ok(grown),
            grown => grown,
        };
        // Chunks may share the trees of a packing unequally. Where the trees of one root were grown, either may be
        // better.
        let list = roots.list(self.graph.ranks());
        let back = self.back(roots);
        let (trees, time) =
            rounding::rounded(self.routed(), &*self.packing(roots, depth)?, &list, (chunks, back.as_deref()));
        let none = || Shared::new(Symmetry::none(self.routed()));
        Ok(grown.filter(|grown| grown.time <= time).unwrap_or_else(|| listed(none(), list, Growth { trees, time })))
    }

    /// A forest of all roots that is grown in time, where blocks are those of a class, `known` ends at `end`, and the
    /// work is not much. Beyond that, several chunks have each tree of a forest of fewer chunks.
    fn timed(
        &self,
        depth: Option<u32>,
        chunks: u32,
        class: u32,
        (known, end): (&Forest, f64),
    ) -> Result<Option<Forest>, NoForest> {
        let (roots, graph) = (Roots::All, self.packed(Roots::All)?);
        let (list, ranks) = (self.representatives(roots), graph.ranks());
        let each = list.len() as u64 * u64::from(ranks).pow(2);
        let most = narrow::<u32>((MOST_TIMED / each).min(u64::from(MOST_SHARES)));
        let Some(fewer) = (1..=chunks.min(most)).rev().find(|fewer| chunks.is_multiple_of(*fewer)) else {
            return Ok(None);
        };
        let trees = if fewer < chunks {
            let forest = self.forest(roots, depth, fewer, (1 << class) / u64::from(fewer))?;
            let Trees::Listed(Listed { of, .. }) = &forest.trees else { return Ok(None) };
            let times = (chunks / fewer) as usize;
            let repeated =
                |own: &Vec<Shared<Tree>>| std::iter::repeat_n(own, times).flatten().map(Shared::clone).collect();
            of.iter().map(repeated).collect()
        } else {
            let Trees::Listed(Listed { of, .. }) = &known.trees else { return Ok(None) };
            admit(20 * u128::from(chunks), list.len(), ranks)?;
            let unit = self.graph.bytes_per_ns() * f64::from(chunks) / f64::from(class).exp2();
            let hops: Vec<f64> = self.latencies_ns(graph).into_iter().map(|ns| ns * unit).collect();
            let links = Links { graph, symmetry: self.symmetry(roots), late: &[] };
            arrivals::grow(&links, &hops, &list, depth, of, end)
        };
        let symmetry = Shared::clone(self.symmetry(roots));
        let time = self.busiest(roots, &trees) / f64::from(chunks);
        Ok(Some(Forest::listed(ranks, chunks, Listed { symmetry, roots: list, of: trees }, time)))
    }

    /// The time of the busiest link, where each tree carries one unit.
    fn busiest(&self, roots: Roots, trees: &[Vec<Shared<Tree>>]) -> f64 {
        let symmetry = self.symmetry(roots);
        let mut load = vec![0.0; symmetry.classes()];
        let edges = trees.iter().flatten().flat_map(|tree| &tree.edges);
        edges.flat_map(|edge| &edge.way).for_each(|&arc| load[symmetry.class(arc) as usize] += 1.0);
        let busy = symmetry.rates(self.routed()).into_iter().zip(load).map(|(rate, load)| load / rate);
        busy.fold(0.0, f64::max)
    }

    /// Trees of whole chunks of each root, and the time of the busiest arc. Many chunks share trees, as many times as
    /// all of these fit; others are grown for the chunks that are left.
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
        let time = self.busiest(roots, &of) / f64::from(chunks);
        Ok(Growth { trees: of, time })
    }

    /// Trees of one root over those that all ranks have, where there are such and they are no deeper than `depth`.
    fn spread(&self, roots: Roots, depth: Option<u32>, chunks: u32) -> Option<Result<Growth, NoForest>> {
        let Roots::One(root) = roots else { return None };
        let over = self.spread_over(roots).filter(|over| depth.is_none_or(|most| most >= spread_depth(over)))?;
        let Trees::Listed(listed) = &over.trees else { return None };
        let graph = self.routed();
        let own: Vec<Tree> = (0..self.graph.ranks()).map(|rank| listed.moved(graph, rank, 0)).collect();
        Some(spread(graph, root, &own, chunks, self.cut(roots).time()).map_err(no_forest))
    }

    /// The forest of one chunk of each rank, over which the chunks of one root are spread where many ranks are alike.
    pub(super) fn spread_over(&self, roots: Roots) -> Option<Shared<Forest>> {
        let all = Roots::All;
        if roots == all || !self.spreads() {
            return None;
        }
        let least = self.least_depth(all).ok()?;
        self.forest(all, Some(self.usual_depth(all, least)), 1, LONG).ok()
    }

    /// Whether forests are grown, and not found by linear programs.
    pub(super) fn grows(&self) -> bool {
        self.graph.ranks() > MOST_QUICK
    }

    /// A time of packings that is near enough to the cut: whole chunks of many ranks are further from it anyway, and
    /// the last steps to it take longest.
    fn enough(&self, roots: Roots) -> f64 {
        let near = match self.graph.ranks() {
            0..=MOST_QUICK => 1.0,
            17..=32 => 1.002,
            _ => 1.015,
        };
        near * self.cut(roots).time()
    }

    /// The packing of a forest of many chunks.
    ///
    /// # Errors
    /// As [`Fabric::forest`].
    pub fn packing(&self, roots: Roots, depth: Option<u32>) -> Result<Shared<Packing>, NoForest> {
        let graph = self.packed(roots)?;
        let ranks = graph.ranks();
        kept(&self.packings, (roots, depth), || {
            if self.grows() && !matches!(roots, Roots::Through(_)) {
                return self.grown_packing(roots, depth).map(Shared::new);
            }
            let list = roots.list(ranks);
            // Measured: 45 rounds of pricing and of a program whose columns grow by the number of roots.
            admit(20_000, list.len(), ranks)?;
            // No cut is known that trees attain which run both ways.
            let back = self.back(roots);
            let enough = if back.is_some() { 0.0 } else { self.enough(roots) };
            recent::packing(graph, list, depth, (enough, back)).map_err(no_forest)
        })
    }

    /// Of many roots, trees with equal shares. The shares of one root's trees are quickly optimized.
    fn grown_packing(&self, roots: Roots, depth: Option<u32>) -> Result<Packing, NoForest> {
        match roots {
            Roots::All => {
                // Where forests take long, that of one chunk tells which depth is worth it.
                let shares = if self.is_cheap(roots) { growth::SHARES } else { 1 };
                Ok(self.growth(roots, depth, shares, &[])?.packing())
            }
            Roots::One(_) | Roots::Through(_) => {
                if let Some(spread) = self.spread(roots, depth, SPREAD_SHARES) {
                    return Ok(spread?.packing());
                }
                // Among many ranks, these only tell whether little depth is worth a forest.
                let shares = if self.spreads() { growth::SHARES } else { growth::MOST_SHARES };
                let grown = self.growth(roots, depth, shares, &[])?;
                of_trees(self.packed(roots)?, &grown.trees[0]).map_err(no_forest)
            }
        }
    }

    fn growth(&self, roots: Roots, depth: Option<u32>, shares: u32, late: &[f64]) -> Result<Shared<Growth>, NoForest> {
        let graph = self.packed(roots)?;
        let list = self.representatives(roots);
        // Measured: 10 rounds in which every tree is grown again.
        admit(100 * u128::from(shares), list.len(), graph.ranks())?;
        recent::growth(graph, self.symmetry(roots), list, depth, shares, self.enough(roots), late).map_err(no_forest)
    }
}

/// Admits work of so many steps for each root and pair of ranks.
fn admit(each: u128, roots: usize, ranks: u32) -> Result<(), NoForest> {
    let work = each * roots as u128 * u128::from(ranks).pow(2);
    limits::admit("the packing of a forest", 0, work).map_err(NoForest::OverLimit)
}

fn no_forest(reason: NoPacking) -> NoForest {
    match reason {
        NoPacking::Unreachable => NoForest::Unreachable,
        NoPacking::Solver(message) => NoForest::Solver(message),
    }
}
