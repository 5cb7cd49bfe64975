//! Forests of a fabric, found by linear programs or grown, with their timetables.

use std::sync::{Arc as Shared, PoisonError};

use unisono_base::limits;

use super::{Fabric, NoForest, Roots, kept, sizes::MOST_QUICK};
use crate::{
    Forest, Message,
    forest::{Times, Trees},
    growth::{self, Growth},
    listed::Listed,
    packing::{NoPacking, Packing, Tree, of_trees},
    recent,
    rounding::rounded,
    spread::{spread, spread_depth},
    symmetry::Symmetry,
};

/// Trees of one root in a packing over the trees of all ranks.
const SPREAD_SHARES: u32 = 1 << 9;

impl Fabric {
    /// A forest of whole chunks no deeper than `depth`.
    ///
    /// # Errors
    /// The ranks are too many or too far apart; the solver failed; the work is over a limit.
    pub fn forest(&self, roots: Roots, depth: Option<u32>, chunks: u32) -> Result<Shared<Forest>, NoForest> {
        let key = (roots, depth, chunks);
        let lock = || self.forests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = lock().get(&key) {
            return Ok(Shared::clone(found));
        }
        let forest = Shared::new(self.make(roots, depth, chunks)?);
        lock().insert(key, Shared::clone(&forest));
        Ok(forest)
    }

    /// Nanoseconds from the begin of a forest to its last message, by its timetable, where a chunk has so many bytes.
    ///
    /// # Errors
    /// As [`Fabric::forest`].
    pub fn end_ns(&self, roots: Roots, depth: Option<u32>, chunks: u32, bytes: u64) -> Result<f64, NoForest> {
        let times = self.times(roots, depth, chunks, bytes)?;
        Ok(times.end * bytes as f64 / self.graph.bytes_per_ns())
    }

    /// The messages of a forest in the order in which they begin, where a chunk has so many bytes.
    ///
    /// # Errors
    /// As [`Fabric::forest`].
    pub fn messages(
        &self,
        roots: Roots,
        depth: Option<u32>,
        chunks: u32,
        bytes: u64,
    ) -> Result<Vec<Message>, NoForest> {
        let times = self.times(roots, depth, chunks, bytes)?;
        Ok(self.forest(roots, depth, chunks)?.messages(self.graph.ranks(), &times))
    }

    fn times(&self, roots: Roots, depth: Option<u32>, chunks: u32, bytes: u64) -> Result<Shared<Times>, NoForest> {
        let forest = self.forest(roots, depth, chunks)?;
        let times = || Shared::new(forest.times(self.routed(), self.hop(bytes)));
        Ok(kept(&self.times, ((roots, depth, chunks), bytes), times))
    }

    /// Nanoseconds that the busiest link of a packing takes for blocks of so many bytes: no forest of that depth is found that ends
    /// earlier.
    ///
    /// # Errors
    /// As [`Fabric::forest`].
    pub fn fluid_ns(&self, roots: Roots, depth: u32, bytes: u64) -> Result<f64, NoForest> {
        Ok(self.packing(roots, Some(depth))?.time * bytes as f64 / self.graph.bytes_per_ns())
    }

    fn make(&self, roots: Roots, depth: Option<u32>, chunks: u32) -> Result<Forest, NoForest> {
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
        let grown = if self.grows() { Some(self.grown(roots, depth, chunks)?) } else { None };
        let grown = grown.map(|grown| listed(Shared::clone(self.symmetry(roots)), self.representatives(roots), grown));
        let grown = match grown {
            Some(grown) if roots == Roots::All || self.spreads() => return Ok(grown),
            grown => grown,
        };
        // Chunks may share the trees of a packing unequally. Where the trees of one root were grown, either may be better.
        let list = roots.list(self.graph.ranks());
        let (trees, time) = rounded(self.routed(), &*self.packing(roots, depth)?, &list, chunks);
        let none = || Shared::new(Symmetry::none(self.routed()));
        Ok(grown.filter(|grown| grown.time <= time).unwrap_or_else(|| listed(none(), list, Growth { trees, time })))
    }

    /// Trees of whole chunks of each root, and the time of the busiest arc. Many chunks share trees, as many times as all of these
    /// fit; others are grown for the chunks that are left.
    fn grown(&self, roots: Roots, depth: Option<u32>, chunks: u32) -> Result<Growth, NoForest> {
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
            let found = self.growth(roots, depth, trees)?;
            for (trees, own) in of.iter_mut().zip(&found.trees) {
                trees.extend(std::iter::repeat_n(own, times as usize).flatten().map(Shared::clone));
            }
        }
        let symmetry = self.symmetry(roots);
        let mut load = vec![0.0; symmetry.classes()];
        let edges = of.iter().flatten().flat_map(|tree| &tree.edges);
        edges.flat_map(|edge| &edge.way).for_each(|&arc| load[symmetry.class(arc) as usize] += 1.0);
        let busy = symmetry.rates(graph).into_iter().zip(load).map(|(rate, load)| load / rate);
        Ok(Growth { trees: of, time: busy.fold(0.0, f64::max) / f64::from(chunks) })
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
        self.forest(all, Some(self.usual_depth(all, least)), 1).ok()
    }

    /// Whether forests are grown, and not found by linear programs.
    pub(super) fn grows(&self) -> bool {
        self.graph.ranks() > MOST_QUICK
    }

    /// A time of packings that is near enough to the cut: whole chunks of many ranks are further from it anyway, and the last steps
    /// to it take longest.
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
            if self.grows() {
                return self.grown_packing(roots, depth).map(Shared::new);
            }
            let list = roots.list(ranks);
            // Measured: 45 rounds of pricing and of a program whose columns grow by the number of roots.
            admit(20_000, list.len(), ranks)?;
            recent::packing(graph, list, depth, self.enough(roots)).map_err(no_forest)
        })
    }

    /// Of many roots, trees with equal shares. The shares of one root's trees are quickly optimized.
    fn grown_packing(&self, roots: Roots, depth: Option<u32>) -> Result<Packing, NoForest> {
        match roots {
            Roots::All => Ok(self.growth(roots, depth, growth::SHARES)?.packing()),
            Roots::One(_) => {
                if let Some(spread) = self.spread(roots, depth, SPREAD_SHARES) {
                    return Ok(spread?.packing());
                }
                // Among many ranks, these only tell whether little depth is worth a forest.
                let shares = if self.spreads() { growth::SHARES } else { growth::MOST_SHARES };
                let grown = self.growth(roots, depth, shares)?;
                of_trees(self.packed(roots)?, &grown.trees[0]).map_err(no_forest)
            }
        }
    }

    fn growth(&self, roots: Roots, depth: Option<u32>, shares: u32) -> Result<Shared<Growth>, NoForest> {
        let graph = self.packed(roots)?;
        let list = self.representatives(roots);
        // Measured: 10 rounds in which every tree is grown again.
        admit(100 * u128::from(shares), list.len(), graph.ranks())?;
        recent::growth(graph, self.symmetry(roots), list, depth, shares, self.enough(roots)).map_err(no_forest)
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
