//! The sizes up to which bounds and forests of a fabric are found, and the roots that stand for others.

use std::sync::Arc as Shared;

use unisono_base::narrow;

use super::{Fabric, NoForest, Roots, kept};
use crate::{
    Graph,
    cut::{self, Cut},
    symmetry::Symmetry,
};

/// Roots whose trees are found times arcs, the most. Long before it, the limit of work refuses forests of many chunks.
pub(super) const MOST_PACKED: u64 = 1 << 23;
/// Ranks up to which trees are found, which takes time and memory for every pair of them.
pub(super) const MOST_DENSE: u32 = 1 << 10;
/// Ranks for which packings of all roots are exact, and a plan tries all depths.
pub(super) const MOST_QUICK: u32 = 16;
/// Unlike ranks times arcs up to which cuts are exact, since they need a flow to each of these ranks; beyond it only
/// the cuts around single ranks are known.
const MOST_CUT: u64 = 1 << 16;
/// Roots times arcs, and roots times pairs of ranks, up to which any plan may consider a forest. One root has more
/// trees.
const MOST_CHEAP: usize = 28_000;
const MOST_CHEAP_PAIRS: usize = 1 << 20;
const MOST_CHEAP_PAIRS_OF_ONE: usize = 1 << 14;
const MOST_CHEAP_PAIRS_OF_SPREAD: usize = 1 << 16;
/// Roots times pairs of ranks up to which any plan may consider a forest of one chunk.
const MOST_AFFORDABLE_PAIRS: usize = 1 << 24;
/// Ranks beyond which the trees of one root are not grown where ranks are alike, and the most for which they are spread
/// over those of all ranks.
const MOST_GROWN_OF_ONE: u32 = 64;
const MOST_SPREAD: u32 = 512;

impl Fabric {
    /// A cut that bounds the time of any forest: the best of all cuts among few ranks, else the best of those around
    /// one rank.
    pub fn cut(&self, roots: Roots) -> Shared<Cut> {
        kept(&self.cuts, roots, || {
            let list = roots.list(self.graph.ranks());
            let alike = self.steps.is_some() && roots == Roots::All;
            // Around one rank is best where the forest of many chunks attains it.
            if alike || self.graph.ranks() > MOST_DENSE {
                return Shared::new(cut::simple(&self.graph, &list));
            }
            let ends = match roots {
                Roots::All => Symmetry::find(&self.graph, &self.dims).representatives(),
                Roots::One(_) | Roots::Through(_) => (0..self.graph.ranks()).collect(),
            };
            // Cuts that lack only some of the ends are bounds, too.
            let few = MOST_CUT / (self.graph.arcs().len() as u64).max(1);
            let each = (ends.len() as u64).div_ceil(few.max(1));
            let ends: Vec<u32> = ends.into_iter().step_by(narrow(each)).collect();
            Shared::new(if few > 0 { cut::largest(&self.graph, &list, &ends) } else { cut::simple(&self.graph, &list) })
        })
    }

    /// Whether links wait for places in buffers where so many messages of so many bytes are under way: a packet takes a
    /// place, however short it is, and a buffer full of them holds fewer bytes than the slowest link sends until their
    /// places are free.
    pub fn is_crowded(&self, messages: u64, bytes: u64) -> bool {
        // Fitted, not derived: in two ways, a channel of so few places is busy. With four times that, what is left out
        // is slower by packets on boxes on rails. Timetables count places themselves, so this only saves work: without
        // it 3 of 168 choices differ (`benches/networks.py --all`), by at most 0.06 %, and plans take 9 % longer.
        const WAYS: f64 = 8.0;
        let Some(slowest) = self.graph.arcs().iter().min_by_key(|arc| arc.rate) else { return false };
        let ends = (self.graph.place(slowest.from), self.graph.place(slowest.to));
        let latency_ns = self.hops_ns.get(&ends).copied().unwrap_or(self.hop_ns);
        let sent = WAYS * latency_ns * slowest.rate as f64 * self.graph.bytes_per_ns();
        messages > self.places && (self.places as f64) * (bytes as f64) < sent
    }

    /// Whether a forest can be asked for without much work: one that any plan may consider.
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
        found * graph.arcs().len() <= MOST_CHEAP && found * ranks * ranks <= most
    }

    /// Whether a forest of one chunk of every root can be asked for without much work, where none of several chunks
    /// can.
    pub fn is_affordable(&self, roots: Roots) -> bool {
        let Ok(graph) = self.packed(roots) else { return false };
        let pairs = self.representatives(roots).len() * (graph.ranks() as usize).pow(2);
        roots == Roots::All && pairs <= MOST_AFFORDABLE_PAIRS
    }

    /// Whether the chunks of one root are spread over the trees that all ranks have.
    pub(super) fn spreads(&self) -> bool {
        let ranks = self.graph.ranks();
        let all = Roots::All;
        let is_between = ranks > MOST_GROWN_OF_ONE && ranks <= MOST_SPREAD;
        is_between && !self.is_alike(all) && self.is_cheap(all) && self.symmetry(all).shifts() > 1
    }

    /// The shifts of the part of the network that messages use, by which roots are moved.
    pub(super) fn symmetry(&self, roots: Roots) -> &Shared<Symmetry> {
        match roots {
            Roots::All => self.symmetry.get_or_init(|| Shared::new(Symmetry::find(self.routed(), &self.dims))),
            Roots::One(_) | Roots::Through(_) => self.still.get_or_init(|| Shared::new(Symmetry::none(self.routed()))),
        }
    }

    /// The number of roots whose trees are found; all others have the same trees, moved.
    pub fn unlike_roots(&self, roots: Roots) -> u32 {
        if self.is_alike(roots) { 1 } else { narrow(self.representatives(roots).len()) }
    }

    /// The roots whose trees are found; shifts map them to all others.
    pub(crate) fn representatives(&self, roots: Roots) -> Vec<u32> {
        match roots {
            Roots::All => self.symmetry(roots).representatives(),
            Roots::One(root) | Roots::Through(root) => vec![root],
        }
    }

    /// The graph of packings, where it is not too large for one.
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
