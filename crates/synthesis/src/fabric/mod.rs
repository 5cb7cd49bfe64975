//! The network of a group of ranks, with the cuts and forests that were computed for it.

mod forests;

use std::sync::{Arc as Shared, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;
use unisono_base::{interrupt::poll, limits::OverLimit};
use unisono_machine::network::Switches;

use crate::{
    Forest, Graph, Scatter, concurrent,
    cut::{self, Cut},
    forest::Times,
    packing::Packing,
    partition::{self, Partition},
    spanning::{Role, SpanningTrees, spanning},
    translated::Steps,
};

/// The ranks whose blocks travel to all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Roots {
    All,
    One(u32),
}

impl Roots {
    pub fn list(self, ranks: u32) -> Vec<u32> {
        match self {
            Roots::All => (0..ranks).collect(),
            Roots::One(root) => vec![root],
        }
    }
}

/// The reason why there is no forest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoForest {
    Unreachable,
    Solver(String),
    TooLarge { ranks: u32, links: usize },
    OverLimit(OverLimit),
}

impl std::fmt::Display for NoForest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoForest::Unreachable => f.write_str("a rank is farther from a root than the depth allows"),
            NoForest::Solver(message) => write!(f, "the solver of linear programs failed: {message}"),
            NoForest::TooLarge { ranks, links } => write!(
                f,
                "the network has {links} links for {ranks} ranks; unless it looks alike from all ranks, forests are found where \
                 ranks times links are at most {MOST_PACKED}"
            ),
            NoForest::OverLimit(over) => over.fmt(f),
        }
    }
}

/// Ranks times arcs beyond which forests are found only where the network looks alike from all ranks.
const MOST_PACKED: u64 = 1 << 15;
/// Ranks for which packings of all roots are exact, and a plan tries all depths.
const MOST_QUICK: u32 = 16;
/// Ranks times arcs up to which cuts are exact, since they need a flow to every rank; beyond it only the cuts around single
/// ranks are known.
const MOST_CUT: u64 = 1 << 16;
/// Roots times arcs up to which any plan may consider a forest.
const MOST_CHEAP: u64 = 28_000;

/// A packing, or the reason why there is none.
type Packed = Result<Shared<Packing>, NoForest>;

/// Keys of forests: roots, the most depth, chunks, and the class of blocks ([`Fabric::class`]).
type Key = (Roots, Option<u32>, u32, Option<u32>);

/// Keys of trees over switches: the role of each node, the root, and the number of trees.
type SpanningKey = (Vec<Role>, Option<u32>, u32);

/// A graph with what is known of it. Answers are kept, since a plan asks for them again and again.
pub struct Fabric {
    graph: Graph,
    /// The part of it that messages between ranks use.
    routed: OnceLock<Graph>,
    /// Nanoseconds that a link adds to a message, on average and, where links differ, by its nodes in the plane.
    hop_ns: f64,
    hops_ns: FxHashMap<(u32, u32), f64>,
    /// Whether messages that leave a rank over different links do not wait for each other.
    sends_by_link: bool,
    /// Where all ranks see the same network.
    steps: Option<Steps>,
    cuts: Mutex<FxHashMap<Roots, Shared<Cut>>>,
    partition: OnceLock<Partition>,
    packings: Mutex<FxHashMap<(Roots, Option<u32>), Packed>>,
    forests: Mutex<FxHashMap<Key, Shared<Forest>>>,
    /// Of forests, by the bytes of a chunk.
    times: Mutex<FxHashMap<(Key, u64), Shared<Times>>>,
    flow: concurrent::Known,
    computing: Switches,
    spanning: Mutex<FxHashMap<SpanningKey, Option<Shared<SpanningTrees>>>>,
    scatters: Mutex<FxHashMap<u32, Shared<Scatter>>>,
}

impl std::fmt::Debug for Fabric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fabric").field("graph", &self.graph).finish_non_exhaustive()
    }
}

/// Ranks times arcs.
pub(crate) fn size(graph: &Graph) -> u64 {
    u64::from(graph.ranks()) * graph.arcs().len() as u64
}

fn kept<K: std::hash::Hash + Eq + Copy, V: Clone>(of: &Mutex<FxHashMap<K, V>>, key: K, make: impl FnOnce() -> V) -> V {
    let lock = || of.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lock().get(&key) {
        return found.clone();
    }
    let made = make();
    lock().insert(key, made.clone());
    made
}

impl Fabric {
    /// `dims` are the extents over which ranks are numbered, row-major, where they are known; a link adds `hop_ns` to a message.
    pub fn new(graph: Graph, dims: &[u32], hop_ns: f64) -> Self {
        let steps = Steps::find(&graph, dims);
        Self {
            graph,
            routed: OnceLock::new(),
            hop_ns,
            hops_ns: FxHashMap::default(),
            sends_by_link: false,
            steps,
            cuts: Mutex::default(),
            partition: OnceLock::new(),
            packings: Mutex::default(),
            forests: Mutex::default(),
            times: Mutex::default(),
            flow: concurrent::Known::default(),
            computing: Switches::default(),
            spanning: Mutex::default(),
            scatters: Mutex::default(),
        }
    }

    pub(crate) fn steps(&self) -> Option<&Steps> {
        self.steps.as_ref()
    }

    /// By their chunks.
    pub(crate) fn known_scatters(&self) -> &Mutex<FxHashMap<u32, Shared<Scatter>>> {
        &self.scatters
    }

    pub(crate) fn known_flow(&self) -> &concurrent::Known {
        &self.flow
    }

    /// The same, where every link of a rank sends messages by itself.
    #[must_use]
    pub fn sending_by_link(self, sends_by_link: bool) -> Self {
        Self { sends_by_link, ..self }
    }

    /// The same, where links add different times to a message: nodes of the plane, and nanoseconds.
    #[must_use]
    pub fn with_latencies(self, links: impl IntoIterator<Item = ((u32, u32), f64)>) -> Self {
        Self { hops_ns: links.into_iter().collect(), ..self }
    }

    pub fn sends_by_link(&self) -> bool {
        self.sends_by_link
    }

    /// The same, with switches that compute.
    #[must_use]
    pub fn computing(self, computing: Switches) -> Self {
        Self { computing, ..self }
    }

    /// The computing of the switches, by nodes of the plane ([`Graph::place`]).
    pub fn switches(&self) -> &Switches {
        &self.computing
    }

    /// Trees that join all ranks over switches, where every node has a role, with a root or rooted in their middle; `None` if some
    /// rank cannot be reached.
    pub fn spanning(&self, roles: &[Role], root: Option<u32>, count: u32) -> Option<Shared<SpanningTrees>> {
        let key = (roles.to_vec(), root, count);
        let lock = || self.spanning.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = lock().get(&key) {
            return found.clone();
        }
        let found = spanning(&self.graph, roles, root, count).map(Shared::new);
        lock().insert(key, found.clone());
        found
    }

    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The arcs and relays that forests use; arcs of their edges are those of this graph.
    pub fn routed(&self) -> &Graph {
        self.routed.get_or_init(|| self.graph.routed())
    }

    /// The time that a link adds to a message of so many bytes, in units of the message on a link of rate 1.
    pub fn hop(&self, bytes: u64) -> f64 {
        self.hop_ns * self.graph.bytes_per_ns() / bytes.max(1) as f64
    }

    /// A cut that bounds the time of any forest: the best of all cuts among few ranks, else the best of those around one rank.
    pub fn cut(&self, roots: Roots) -> Shared<Cut> {
        kept(&self.cuts, roots, || {
            let list = roots.list(self.graph.ranks());
            let alike = self.steps.is_some() && roots == Roots::All;
            // Around one rank is best where the forest of many chunks attains it.
            let exact = size(&self.graph) <= MOST_CUT && !alike;
            Shared::new(if exact { cut::largest(&self.graph, &list) } else { cut::simple(&self.graph, &list) })
        })
    }

    /// Parts of the network that bound the time of any allreduce.
    pub fn partition(&self) -> Partition {
        *self.partition.get_or_init(|| partition::largest(&self.graph))
    }

    /// Whether a forest can be asked for without much work: one that any plan may consider.
    pub fn is_cheap(&self, roots: Roots) -> bool {
        let cheap = |graph: &Graph| (roots.list(graph.ranks()).len() * graph.arcs().len()) as u64 <= MOST_CHEAP;
        self.is_alike(roots) || self.packed().is_ok_and(cheap)
    }

    /// The graph of packings, where it is not too large for one.
    fn packed(&self) -> Result<&Graph, NoForest> {
        let ranks = u64::from(self.graph.ranks());
        // A graph that joins all ranks has at least so many arcs.
        let graph = if ranks * ranks.saturating_sub(1) <= MOST_PACKED { self.routed() } else { &self.graph };
        if size(graph) <= MOST_PACKED {
            return Ok(graph);
        }
        Err(NoForest::TooLarge { ranks: graph.ranks(), links: graph.arcs().len() })
    }

    /// Whether all ranks see the same network, so that forests are found by counting.
    pub fn is_alike(&self, roots: Roots) -> bool {
        self.alike(roots).is_some()
    }

    fn alike(&self, roots: Roots) -> Option<&Steps> {
        self.steps.as_ref().filter(|_| roots == Roots::All)
    }

    /// The least depth of any forest.
    ///
    /// # Errors
    /// A rank is not connected, or there are too many.
    pub fn least_depth(&self, roots: Roots) -> Result<u32, NoForest> {
        if let Some(steps) = self.alike(roots) {
            return Ok(steps.depth());
        }
        let graph = self.packed()?;
        let pairs: Vec<Vec<bool>> = (0..graph.ranks()).map(|rank| graph.reached(rank)).collect();
        let mut most = 0;
        for root in roots.list(graph.ranks()) {
            let mut depth = vec![u32::MAX; pairs.len()];
            depth[root as usize] = 0;
            let (mut queue, mut k) = (vec![root as usize], 0);
            while let Some(&at) = queue.get(k) {
                poll();
                k += 1;
                for to in 0..depth.len() {
                    if pairs[at][to] && depth[to] == u32::MAX {
                        depth[to] = depth[at] + 1;
                        queue.push(to);
                    }
                }
            }
            most = most.max(depth.into_iter().max().unwrap_or(0));
        }
        if most == u32::MAX { Err(NoForest::Unreachable) } else { Ok(most) }
    }

    /// The limit on the depth where none is given: the first of [`Fabric::ladder`] at which the time is near the cut.
    pub fn usual_depth(&self, roots: Roots, least: u32) -> u32 {
        *self.ladder(roots, least).last().expect("the least depth")
    }

    /// Limits on the depth that are worth a forest in a plan: the least, and larger ones that bring the time nearer to the cut;
    /// of many ranks only the largest of these.
    pub fn depths(&self, roots: Roots, least: u32) -> Vec<u32> {
        let mut depths = self.ladder(roots, least);
        if self.graph.ranks() > MOST_QUICK && depths.len() > 2 {
            depths.drain(1..depths.len() - 1);
        }
        depths
    }

    /// The least depth and 1, 3, 7, ... more until the time is near the cut, or was no less than at the depth before; where forests are
    /// found quickly, 1, 2, 3, 4, 6, ... more.
    fn ladder(&self, roots: Roots, least: u32) -> Vec<u32> {
        const NEAR: f64 = 1.02;
        let mut depths = vec![least];
        if self.alike(roots).is_some() {
            return depths;
        }
        let bound = self.cut(roots).time();
        // No tree is deeper than all other ranks in a row.
        let deepest = self.graph.ranks() - 1;
        let (mut more, mut last) = (1, f64::INFINITY);
        while let Some(&depth) = depths.last()
            && depth < deepest
            && let Ok(packing) = self.packing(roots, Some(depth))
            && packing.time > bound * NEAR
        {
            if packing.time > last / NEAR {
                depths.pop();
                break;
            }
            last = packing.time;
            depths.push(least.saturating_add(more).min(deepest));
            more = if self.grows() { more + (more / 2).max(1) } else { 2 * more + 1 };
        }
        depths
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TreeEdge;

    fn torus(dims: &[u32]) -> Fabric {
        Fabric::new(crate::concurrent::torus(dims), dims, 0.0)
    }

    /// Every chunk of every root reaches every rank, over links, in an order that can run; the busiest arc has the time.
    fn check(fabric: &Fabric, forest: &Forest, chunks: u32) {
        let graph = fabric.graph();
        let ranks = graph.ranks();
        let mut load = std::collections::BTreeMap::new();
        for root in 0..ranks {
            for chunk in 0..chunks {
                let mut depth = vec![u32::MAX; ranks as usize];
                depth[root as usize] = 0;
                for TreeEdge { from, to, .. } in forest.edges(root, chunk) {
                    assert!(depth[from as usize] != u32::MAX && depth[to as usize] == u32::MAX);
                    depth[to as usize] = depth[from as usize] + 1;
                    *load.entry((from, to)).or_insert(0) += 1;
                }
                assert!(depth.into_iter().all(|d| d <= forest.depth));
            }
        }
        let rate = |from, to| {
            let arc = graph.leaving(from).iter().find(|&&arc| graph.arcs()[arc as usize].to == to);
            graph.arcs()[*arc.expect("a link") as usize].rate as f64
        };
        let busiest = load.into_iter().map(|((from, to), n)| f64::from(n) / rate(from, to)).fold(0.0, f64::max);
        assert!((busiest / f64::from(chunks) - forest.time).abs() < 1e-9, "{busiest} {}", forest.time);
    }

    fn ranks(fabric: &Fabric) -> u32 {
        fabric.graph().ranks()
    }

    #[test]
    fn tori_reach_their_cut_at_their_diameter() {
        for (dims, chunks) in
            [(&[4_u32, 4][..], 4), (&[4, 8], 4), (&[5, 7], 4), (&[3, 3, 3], 6), (&[2, 4, 8], 8), (&[9], 2)]
        {
            let fabric = torus(dims);
            let forest = fabric.forest(Roots::All, None, chunks, 1 << 20).unwrap();
            let bound = fabric.cut(Roots::All).time();
            assert!(forest.time >= bound * (1.0 - 1e-12));
            assert!(forest.time <= bound * 1.05, "{dims:?} {} {bound}", forest.time);
            assert_eq!(Ok(forest.depth), fabric.least_depth(Roots::All));
            check(&fabric, &forest, chunks);
            // The same without the symmetry.
            if ranks(&fabric) > 16 {
                continue;
            }
            let plain = Fabric::new(fabric.graph().clone(), &[], 0.0);
            let bound = plain.cut(Roots::All).time();
            let listed = plain.forest(Roots::All, Some(forest.depth), chunks, 1 << 20).unwrap();
            check(&plain, &listed, chunks);
            assert!(listed.time >= bound * (1.0 - 1e-9));
        }
    }
}
