//! The trees of the first arrivals in a fabric.

use super::{Fabric, Roots};
use crate::{
    Graph,
    packing::Tree,
    soonest::{Soonest, Speeds},
};

/// The maximum number of ranks for which the tree of every root is grown to find the root whose tree ends first.
const MOST_ROOTS: u32 = 64;

impl Fabric {
    /// Returns whether some message of no bytes arrives sooner over another rank than directly, because links have
    /// different latencies. Returns false for many ranks.
    pub fn relays_sooner(&self) -> bool {
        const SOONER: f64 = 0.95;
        let found = || {
            let n = self.graph.ranks() as usize;
            let graph = self.packed(Roots::All).ok().filter(|_| n <= MOST_ROOTS as usize)?;
            let speeds = self.speeds(graph, 0);
            let direct = Soonest::new(graph, &speeds).direct_ns();
            let mut least = direct.clone();
            for over in 0..n {
                for (from, to) in (0..n).flat_map(|from| (0..n).map(move |to| (from, to))) {
                    least[from * n + to] = least[from * n + to].min(least[from * n + over] + least[over * n + to]);
                }
            }
            Some(direct.iter().zip(least).any(|(direct, least)| direct.is_finite() && least < SOONER * direct))
        };
        !self.hops_ns.is_empty() && *self.relays_sooner.get_or_init(|| found() == Some(true))
    }

    fn speeds(&self, graph: &Graph, bytes: u64) -> Speeds {
        let sent = (bytes + self.header_bytes) as f64 / self.graph.bytes_per_ns();
        Speeds {
            latency_ns: self.latencies_ns(graph),
            takes_ns: graph.arcs().iter().map(|arc| sent / arc.rate as f64).collect(),
            host_ns: self.host_ns,
            sends_by_link: self.sends_by_link,
        }
    }

    /// Returns the trees of the first arrivals in `graph`, for a chunk of `bytes`, with at most `depth` edges on a
    /// path, each with its last arrival in ns; `None` if a rank remains out of reach.
    pub(crate) fn soonest(
        &self,
        graph: &Graph,
        roots: &[u32],
        depth: Option<u32>,
        bytes: u64,
    ) -> Option<Vec<(Tree, f64)>> {
        let speeds = self.speeds(graph, bytes);
        let soonest = Soonest::new(graph, &speeds);
        roots.iter().map(|&root| soonest.tree(root, depth)).collect()
    }

    /// Returns the depth of the trees of the first arrivals for blocks of `bytes` in one chunk; `None` if latencies are
    /// ignored ([`Fabric::class`]).
    pub fn soonest_depth(&self, roots: Roots, bytes: u64) -> Option<u32> {
        let class = self.class(roots, 1, bytes)?;
        let found = self.soonest(self.packed(roots).ok()?, &self.representatives(roots), None, 1 << class)?;
        found.iter().map(|(tree, _)| tree.depth).max()
    }

    /// Returns the rank whose tree of the first arrivals ends first, for a vector of `bytes`. `None` for many ranks.
    pub fn middle(&self, bytes: u64) -> Option<Roots> {
        if self.graph.ranks() > MOST_ROOTS {
            return None;
        }
        let graph = self.packed(Roots::All).ok()?;
        let found = self.soonest(graph, &self.representatives(Roots::All), None, bytes)?;
        let first = found.into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(Roots::Through(first.0.root))
    }
}
