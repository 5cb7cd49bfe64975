//! The network of a group of ranks, with the cuts and forests that were computed for it.

mod depths;
mod forests;
mod sizes;

use std::sync::{Arc as Shared, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;
use unisono_base::limits::OverLimit;

use unisono_machine::network::Switches;

use self::sizes::{MOST_DENSE, MOST_PACKED};
use crate::{
    Forest, Graph, Scatter, concurrent,
    cut::Cut,
    forest::Times,
    packing::Packing,
    partition::{self, Partition, Parts},
    replay::HostWork,
    spanning::{Role, SpanningTrees, spanning},
    symmetry::Symmetry,
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

/// The direction of the messages of a forest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Runs {
    /// Blocks travel from the roots to all ranks.
    Down,
    /// Sums are made on the way to the roots: the same trees backwards.
    Up,
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
                "the network has {links} links for {ranks} ranks; unless it looks alike from all ranks, forests are found for at \
                 most {MOST_DENSE} ranks where unlike ranks times links are at most {MOST_PACKED}"
            ),
            NoForest::OverLimit(over) => over.fmt(f),
        }
    }
}

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
    /// The send machines of each rank, and the bytes of a packet of all planes; `None` where each link has its own.
    machines: Option<(u32, u64)>,
    /// Nanoseconds in which a host adds a byte to a sum, and of its work on a message that it sends or receives.
    sum_ns_per_byte: f64,
    host_ns: f64,
    /// Packets that the buffer at the end of a link holds.
    places: u64,
    /// Where all ranks see the same network.
    steps: Option<Steps>,
    /// The extents over which ranks are numbered; the shifts of the routed part, and none.
    dims: Vec<u32>,
    symmetry: OnceLock<Shared<Symmetry>>,
    still: OnceLock<Shared<Symmetry>>,
    cuts: Mutex<FxHashMap<Roots, Shared<Cut>>>,
    parts: OnceLock<Vec<Parts>>,
    depths: Mutex<FxHashMap<Roots, Result<u32, NoForest>>>,
    packings: Mutex<FxHashMap<(Roots, Option<u32>), Packed>>,
    forests: Mutex<FxHashMap<Key, Shared<Forest>>>,
    /// Of forests, by the bytes of a chunk and the direction.
    times: Mutex<FxHashMap<(Key, u64, Runs), Shared<Times>>>,
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
    /// `dims` are the extents over which ranks are numbered, row-major, where they are known; a link adds `hop_ns` to a
    /// message.
    pub fn new(graph: Graph, dims: &[u32], hop_ns: f64) -> Self {
        let steps = Steps::find(&graph, dims);
        Self {
            graph,
            routed: OnceLock::new(),
            hop_ns,
            hops_ns: FxHashMap::default(),
            sends_by_link: false,
            machines: None,
            sum_ns_per_byte: 0.0,
            host_ns: 0.0,
            places: u64::MAX,
            steps,
            dims: dims.to_vec(),
            symmetry: OnceLock::new(),
            still: OnceLock::new(),
            cuts: Mutex::default(),
            parts: OnceLock::new(),
            depths: Mutex::default(),
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

    /// The same, where a rank sends at most so many messages at a time, in packets of so many bytes of all planes.
    #[must_use]
    pub fn with_machines(self, machines: u32, packet_bytes: u64) -> Self {
        Self { machines: Some((machines, packet_bytes)), ..self }
    }

    /// The same, where a host takes so long to add a byte to a sum, and for each message that it sends or receives.
    #[must_use]
    pub fn with_hosts(self, sum_ns_per_byte: f64, host_ns: f64) -> Self {
        Self { sum_ns_per_byte, host_ns, ..self }
    }

    /// The work of hosts on messages in units of those of so many bytes on a link of rate 1, where there is any.
    pub fn host_work(&self, bytes: u64) -> Option<HostWork> {
        let takes = self.host_ns * self.graph.bytes_per_ns() / bytes.max(1) as f64;
        (takes > 0.0).then_some(HostWork { takes, sends_by_link: self.sends_by_link })
    }

    /// The same, where the buffer at the end of a link holds so many packets, of whatever length.
    #[must_use]
    pub fn with_places(self, places: u64) -> Self {
        Self { places, ..self }
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

    /// Trees that join all ranks over switches, where every node has a role, with a root or rooted in their middle;
    /// `None` if some rank cannot be reached.
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

    /// The ranks in the parts that faster links than others join, down to single ranks.
    pub fn parts(&self) -> &[Parts] {
        let computes = |node| self.computing.class(self.graph.place(node)).is_some();
        self.parts.get_or_init(|| Parts::by_rates(&self.graph, computes))
    }

    /// Parts of the network that bound the time of any allreduce, where switches that compute leave any.
    pub fn partition(&self) -> Option<Partition> {
        partition::largest(self.parts())
    }

    /// Whether all ranks see the same network, so that forests are found by counting.
    pub fn is_alike(&self, roots: Roots) -> bool {
        self.alike(roots).is_some()
    }

    fn alike(&self, roots: Roots) -> Option<&Steps> {
        self.steps.as_ref().filter(|_| roots == Roots::All)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TreeEdge, cut};

    fn torus(dims: &[u32]) -> Fabric {
        Fabric::new(crate::concurrent::torus(dims), dims, 0.0)
    }

    /// Every chunk of every root reaches every rank, over links, in an order that can run; the busiest arc has the
    /// time.
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

    /// Every chunk of every root reaches every rank over links, and the busiest link has the time.
    fn check_ways(fabric: &Fabric, roots: Roots, forest: &Forest) {
        let graph = fabric.routed();
        let rates: std::collections::BTreeMap<(u32, u32), u64> =
            graph.arcs().iter().map(|arc| ((graph.place(arc.from), graph.place(arc.to)), arc.rate)).collect();
        let mut load = std::collections::BTreeMap::new();
        let mut sends = vec![0; graph.ranks() as usize];
        for root in roots.list(graph.ranks()) {
            for chunk in 0..forest.chunks {
                let mut reached = vec![false; graph.ranks() as usize];
                reached[root as usize] = true;
                let edges = forest.edges(root, chunk);
                for (edge, way) in edges.iter().zip(forest.ways(graph, root, chunk)) {
                    assert!(reached[edge.from as usize] && !reached[edge.to as usize]);
                    reached[edge.to as usize] = true;
                    sends[edge.from as usize] += 1;
                    assert_eq!((way.first(), way.last()), (Some(&edge.from), Some(&edge.to)));
                    way.windows(2).for_each(|link| *load.entry((link[0], link[1])).or_insert(0_u64) += 1);
                }
                assert!(reached.into_iter().all(|is| is));
            }
        }
        let busiest = load.iter().map(|(link, &n)| n as f64 / rates[link] as f64).fold(0.0, f64::max);
        assert!((busiest / f64::from(forest.chunks) - forest.time).abs() < 1e-9, "{busiest} {}", forest.time);
        assert_eq!(sends.into_iter().max(), Some(forest.most_sends));
    }

    #[test]
    fn short_blocks_regard_the_latencies_of_links() {
        let graph = crate::graph::cluster(2, 16);
        let slow = graph.arcs().iter().map(|arc| arc.rate).min();
        let latency = |arc: &crate::Arc| if Some(arc.rate) == slow { 2600.0 } else { 350.0 };
        let latencies: Vec<_> = graph.arcs().iter().map(|arc| ((arc.from, arc.to), latency(arc))).collect();
        for dims in [&[2, 16][..], &[]] {
            let fabric = Fabric::new(graph.clone(), dims, 800.0).with_latencies(latencies.iter().copied());
            let bound = fabric.cut(Roots::All).time();
            for (roots, block, chunks) in [(Roots::All, 512, 1), (Roots::All, 512, 4), (Roots::One(3), 4096, 16)] {
                let bytes = block / u64::from(chunks);
                let forest = fabric.forest(roots, None, chunks, bytes).unwrap();
                check_ways(&fabric, roots, &forest);
                assert!(roots != Roots::All || forest.time >= bound * (1.0 - 1e-9));
                let long = fabric.forest(roots, None, chunks, 1 << 40).unwrap();
                let end = |forest| fabric.times_of(forest, bytes, true, Runs::Down).end;
                assert!(end(&forest) <= end(&long), "{roots:?} {block} {} {}", end(&forest), end(&long));
            }
        }
    }

    #[test]
    fn forests_of_alike_boxes_come_near_the_cut() {
        for (boxes, each) in [(3, 4), (4, 8), (9, 4), (16, 8)] {
            let graph = crate::graph::cluster(boxes, each);
            let fabric = Fabric::new(graph.clone(), &[boxes, each], 0.0);
            assert_eq!(fabric.unlike_roots(Roots::All), 1);
            let all: Vec<u32> = (0..graph.ranks()).collect();
            let cut = fabric.cut(Roots::All);
            assert_eq!(cut.time(), if boxes < 10 { cut::largest(&graph, &all, &all).time() } else { cut.time() });
            for chunks in [1, 16] {
                let forest = fabric.forest(Roots::All, None, chunks, 1 << 20).unwrap();
                check_ways(&fabric, Roots::All, &forest);
                assert!(forest.time >= cut.time() * (1.0 - 1e-9));
                assert!(forest.time <= cut.time() * 1.15, "{boxes} {each} {chunks} {} {}", forest.time, cut.time());
            }
            if graph.ranks() <= 16 {
                check_ways(&fabric, Roots::One(1), &fabric.forest(Roots::One(1), None, 4, 1 << 20).unwrap());
            }
        }
    }

    #[test]
    fn chunks_of_one_root_are_spread_over_the_trees_of_all() {
        for (boxes, each) in [(20, 4), (16, 8)] {
            let fabric = Fabric::new(crate::graph::cluster(boxes, each), &[boxes, each], 0.0);
            for root in [0, 7] {
                let roots = Roots::One(root);
                let forest = fabric.forest(roots, Some(4), 512, 1 << 20).unwrap();
                check_ways(&fabric, roots, &forest);
                let cut = fabric.cut(roots).time();
                assert!(forest.depth <= 4 && forest.time >= cut * (1.0 - 1e-9));
                assert!(forest.time <= cut * 2.0, "{boxes} {each} {} {cut}", forest.time);
                // Less depth than the spread needs.
                let shallow = fabric.forest(roots, Some(2), 4, 1 << 20).unwrap();
                check_ways(&fabric, roots, &shallow);
                assert!(shallow.depth <= 2);
            }
        }
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
