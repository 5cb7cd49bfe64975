//! The network sizes up to which bounds and forests of a fabric are computed, and the representatives of roots.

use std::sync::Arc as Shared;

use unisono_base::narrow;

use super::{Fabric, NoForest, Roots, kept};
use crate::{
    Graph,
    cut::{self, Cut},
    symmetry::Symmetry,
};

/// The largest product of arcs and representative roots for which trees are computed. The limit of work refuses forests
/// of many chunks at far smaller sizes.
pub(super) const MOST_PACKED: u64 = 1 << 23;
/// The maximum number of ranks for which trees are computed, which takes time and memory for every pair of ranks.
pub(super) const MOST_DENSE: u32 = 1 << 10;
/// The maximum number of ranks for which packings of all roots are exact, and a plan tries all depths.
pub(super) const MOST_QUICK: u32 = 16;
/// The largest product of arcs and representative ranks for which cuts are exact, because they need a flow to each of
/// these ranks. In larger networks some of these flows are skipped, or only cuts around single ranks are used.
const MOST_CUT: u64 = 1 << 16;
/// The largest product of representative roots and arcs for which every plan tries a forest, if the pairs of ranks are
/// few too.
const MOST_CHEAP: usize = 28_000;
/// The work of growing a forest, divided by the work of repairing a forest after a failure; measured on 64 GPUs.
const REPAIRED: usize = 3;
/// The largest product of representative roots and pairs of ranks for which plans always try a forest of all roots.
const MOST_CHEAP_PAIRS: usize = 1 << 20;
/// [`MOST_CHEAP_PAIRS`] for a forest of one root.
const MOST_CHEAP_PAIRS_OF_ONE: usize = 1 << 14;
/// [`MOST_CHEAP_PAIRS`] for a forest of one root spread along the trees of all ranks.
const MOST_CHEAP_PAIRS_OF_SPREAD: usize = 1 << 16;
/// The largest product of representative roots and pairs of ranks for which every plan tries a forest of all roots of
/// one chunk.
const MOST_AFFORDABLE_PAIRS: usize = 1 << 24;
/// The maximum number of ranks whose distances are measured to estimate the distances of all pairs.
const SAMPLED: u32 = 16;
/// The maximum number of ranks for which the trees of one root are grown even if they could be spread along the trees
/// of all ranks.
const MOST_GROWN_OF_ONE: u32 = 64;
/// The maximum number of ranks for which trees of one root are spread along those of all ranks, if ranks are
/// equivalent.
const MOST_SPREAD: u32 = 512;

impl Fabric {
    /// Returns a cut that bounds the time of any forest. In small networks this is the best of all cuts, in larger
    /// networks the best of some cuts. In the largest networks, or for all roots if ranks see the network alike, it is
    /// the best cut around one rank.
    pub fn cut(&self, roots: Roots) -> Shared<Cut> {
        kept(&self.cuts, roots, || {
            let list = roots.list(self.graph.ranks());
            let alike = self.steps.is_some() && roots == Roots::All;
            // If all ranks see the network alike, a forest of many chunks attains the cut around one rank.
            if alike || self.graph.ranks() > MOST_DENSE {
                return Shared::new(cut::simple(&self.graph, &list));
            }
            let ends = match roots {
                Roots::All => Symmetry::find(&self.graph, &self.dims).representatives(),
                Roots::One(_) | Roots::Through(_) => (0..self.graph.ranks()).collect(),
            };
            // The search is limited to some ends, which still gives valid bounds.
            let few = MOST_CUT / (self.graph.arcs().len() as u64).max(1);
            let each = (ends.len() as u64).div_ceil(few.max(1));
            let ends: Vec<u32> = ends.into_iter().step_by(narrow(each)).collect();
            Shared::new(if few > 0 { cut::largest(&self.graph, &list, &ends) } else { cut::simple(&self.graph, &list) })
        })
    }

    /// Returns a cut that bounds the time of any scatter from `root`, or gather to it: the best of all cuts, in large
    /// networks that around the root.
    pub fn scatter_cut(&self, root: u32) -> Shared<Cut> {
        let is_exact = self.graph.arcs().len() as u64 <= MOST_CUT;
        kept(&self.scatter_cuts, root, || Shared::new(cut::scatter(&self.graph, root, is_exact)))
    }

    /// Returns whether links are expected to wait for buffer space while `messages` messages of `bytes` are under way.
    /// This happens if the messages exceed the places of a buffer (a packet of any length takes one place), and a full
    /// buffer holds fewer bytes than the slowest link sends until places become free.
    pub fn is_crowded(&self, messages: u64, bytes: u64) -> bool {
        // `WAYS` is fitted, not derived. Places for the data of 2 latencies already keep a channel busy; with a limit
        // of 8 latencies, the omitted forests are slower in packet simulations of rail clusters. The timetables of
        // schedules (crate `cost`) count places themselves, so this test only saves work: without it 3 of 168 choices
        // differ (`benches/networks.py --all`), by at most 0.06 %, and plans take 9 % longer.
        const WAYS: f64 = 8.0;
        let Some(slowest) = self.graph.arcs().iter().min_by_key(|arc| arc.rate) else { return false };
        let ends = (self.graph.place(slowest.from), self.graph.place(slowest.to));
        let latency_ns = self.hops_ns.get(&ends).copied().unwrap_or(self.hop_ns);
        let sent = WAYS * latency_ns * slowest.rate as f64 * self.graph.bytes_per_ns();
        messages > self.places && (self.places as f64) * (bytes as f64) < sent
    }

    /// Estimates, from a sample of senders, the least time of all links for equal messages between all pairs of ranks,
    /// divided by the time of the ranks' own links. The result is below 1 if the network carries the messages of all
    /// pairs as fast as ranks send.
    pub fn stretch_of_pairs(&self) -> f64 {
        *self.stretch_of_pairs.get_or_init(|| {
            let (graph, ranks) = (&self.graph, self.graph.ranks());
            // If the network looks alike from all ranks, one sender is as good as many.
            let sampled = if self.steps.is_some() { 1 } else { SAMPLED };
            let senders: Vec<u32> = (0..ranks).step_by(narrow(ranks.div_ceil(sampled).max(1))).collect();
            let links: u64 = senders.iter().map(|&from| graph.links_to_ranks(from)).sum();
            let pairs = senders.len() as u64 * u64::from(ranks.saturating_sub(1));
            let rate = |is_counted: &dyn Fn(u32) -> bool| -> u64 {
                graph.arcs().iter().filter(|arc| is_counted(arc.from)).map(|arc| arc.rate).sum()
            };
            (links as f64 / pairs.max(1) as f64) * rate(&|from| from < ranks) as f64 / rate(&|_| true).max(1) as f64
        })
    }

    /// Returns whether a forest takes so little work that every plan tries it.
    pub fn is_cheap(&self, roots: Roots) -> bool {
        if self.is_alike(roots) {
            return true;
        }
        let Ok(graph) = self.packed(roots) else { return false };
        let (found, ranks) = (self.representatives(roots).len(), graph.ranks() as usize);
        let most = match roots {
            Roots::Through(_) if self.grows() => 0,
            Roots::One(_) | Roots::Through(_) if !self.spreads() => MOST_CHEAP_PAIRS_OF_ONE,
            Roots::One(_) | Roots::Through(_) => MOST_CHEAP_PAIRS_OF_SPREAD,
            Roots::All => MOST_CHEAP_PAIRS,
        };
        let repairs = if self.before.is_some() && roots == Roots::All { REPAIRED } else { 1 };
        found * graph.arcs().len() <= repairs * MOST_CHEAP && found * ranks * ranks <= most
    }

    /// Returns whether a forest of one chunk of every root takes little work, even if forests of several chunks take
    /// much.
    pub fn is_affordable(&self, roots: Roots) -> bool {
        let Ok(graph) = self.packed(roots) else { return false };
        let pairs = self.representatives(roots).len() * (graph.ranks() as usize).pow(2);
        roots == Roots::All && pairs <= MOST_AFFORDABLE_PAIRS
    }

    /// Returns whether the chunks of one root are spread along the trees of all ranks.
    pub(super) fn spreads(&self) -> bool {
        let ranks = self.graph.ranks();
        let all = Roots::All;
        let is_between = ranks > MOST_GROWN_OF_ONE && ranks <= MOST_SPREAD;
        is_between && !self.is_alike(all) && self.is_cheap(all) && self.symmetry(all).shifts() > 1
    }

    /// Returns the shifts of the routed graph that map roots to other roots.
    pub(super) fn symmetry(&self, roots: Roots) -> &Shared<Symmetry> {
        match roots {
            Roots::All => self.symmetry.get_or_init(|| Shared::new(Symmetry::find(self.routed(), &self.dims))),
            Roots::One(_) | Roots::Through(_) => self.still.get_or_init(|| Shared::new(Symmetry::none(self.routed()))),
        }
    }

    /// Returns the number of roots whose trees are computed; shifts map these trees to all other roots.
    pub fn unlike_roots(&self, roots: Roots) -> u32 {
        if self.is_alike(roots) { 1 } else { narrow(self.representatives(roots).len()) }
    }

    /// Returns the roots whose trees are computed; shifts map them to all other roots.
    pub(crate) fn representatives(&self, roots: Roots) -> Vec<u32> {
        match roots {
            Roots::All => self.symmetry(roots).representatives(),
            Roots::One(root) | Roots::Through(root) => vec![root],
        }
    }

    /// Returns the graph in which trees are computed ([`Fabric::routed`]), or an error if there are too many ranks, or
    /// too many arcs times roots.
    pub(super) fn packed(&self, roots: Roots) -> Result<&Graph, NoForest> {
        let (ranks, links) = (self.graph.ranks(), self.graph.arcs().len());
        let too_large = NoForest::TooLarge { ranks, links };
        if ranks > MOST_DENSE {
            return Err(too_large);
        }
        let graph = self.routed();
        let found = self.representatives(roots).len();
        if (found * graph.arcs().len()) as u64 <= MOST_PACKED { Ok(graph) } else { Err(too_large) }
    }
}
