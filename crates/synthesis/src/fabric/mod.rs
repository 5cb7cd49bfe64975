//! The network of a group of ranks, with a cache of its cuts, forests and other results.

mod before;
mod depths;
mod forests;
mod sizes;
mod soonest;
mod through;
mod timetables;

use std::sync::{Arc as Shared, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;
use unisono_base::limits::OverLimit;

use unisono_machine::network::Switches;

use self::{
    before::Before,
    sizes::{MOST_DENSE, MOST_PACKED},
};
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

/// The roots of a collective. All ranks receive the blocks of the roots; in a reduction, the contributions of all ranks
/// to a root's block are summed at the root.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Roots {
    All,
    One(u32),
    /// The vectors of all ranks are summed at one rank, and the sum spreads from this rank, chunk by chunk. The trees
    /// run up and down at the same time, so each tree loads both directions of its links.
    Through(u32),
}

impl Roots {
    pub fn list(self, ranks: u32) -> Vec<u32> {
        match self {
            Roots::All => (0..ranks).collect(),
            Roots::One(root) | Roots::Through(root) => vec![root],
        }
    }
}

/// The direction of the messages of a forest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Runs {
    /// Blocks travel from the roots to all ranks.
    Down,
    /// Sums are computed on the paths to the roots: the same trees backwards.
    Up,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoForest {
    Unreachable,
    Solver(String),
    TooLarge {
        ranks: u32,
        links: usize,
    },
    /// A search for an all-to-all or a scatter would take too long.
    TooMany {
        what: &'static str,
        found: u64,
        most: u64,
    },
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
            NoForest::TooMany { what, found, most } => write!(f, "{what} are {found}; accepted are at most {most}"),
            NoForest::OverLimit(over) => over.fmt(f),
        }
    }
}

type Packed = Result<Shared<Packing>, NoForest>;

/// The key of a forest: roots, limit on the depth, number of chunks, and the class of blocks ([`Fabric::class`]).
type Key = (Roots, Option<u32>, u32, Option<u32>);

/// The key of a scatter: roots, number of chunks, and for the tree of the first arrivals, the bytes of a block.
type ScatterKey = (Roots, u32, Option<u64>);

/// The key of trees through switches: the role of each node, the root, and the number of trees.
type SpanningKey = (Vec<Role>, Option<u32>, u32);

/// A graph with a cache of the results that a plan requests many times.
pub struct Fabric {
    graph: Graph,
    /// The arcs and relays that messages between ranks use ([`Graph::routed`]).
    routed: OnceLock<Graph>,
    /// The fabric of [`Graph::near`].
    near: OnceLock<Option<Box<Fabric>>>,
    /// The mean latency of a link, in nanoseconds.
    hop_ns: f64,
    /// The latency in nanoseconds of the link from one node of the plane to another; links without an entry have the
    /// mean latency.
    hops_ns: FxHashMap<(u32, u32), f64>,
    /// True if messages that a rank sends on different links do not wait for each other.
    sends_by_link: bool,
    /// The number of send machines of each rank, and the sum over all planes of the bytes of a packet; `None` if each
    /// link has its own machine.
    machines: Option<(u32, u64)>,
    /// The time in which a host adds a byte to a sum, in nanoseconds.
    sum_ns_per_byte: f64,
    /// The time of a host to send or receive a message, in nanoseconds.
    host_ns: f64,
    /// The bytes of a message besides its data, on all planes together.
    header_bytes: u64,
    /// The number of packets that fit into the buffer at the end of a link.
    places: u64,
    /// The steps of a network that looks alike from all ranks; `None` for other networks.
    steps: Option<Steps>,
    /// The extents of the coordinates by which ranks are numbered.
    dims: Vec<u32>,
    /// The shifts of the routed graph.
    symmetry: OnceLock<Shared<Symmetry>>,
    /// The identity as the only shift of the routed graph, for forests of a single root.
    still: OnceLock<Shared<Symmetry>>,
    cuts: Cache<Roots, Shared<Cut>>,
    /// The cuts of scatters, by the root.
    scatter_cuts: Cache<u32, Shared<Cut>>,
    parts: OnceLock<Vec<Parts>>,
    /// The result of [`Fabric::relays_sooner`].
    relays_sooner: OnceLock<bool>,
    /// The result of [`Fabric::stretch_of_pairs`].
    stretch_of_pairs: OnceLock<f64>,
    depths: Cache<Roots, Result<u32, NoForest>>,
    packings: Cache<(Roots, Option<u32>), Packed>,
    forests: Cache<Key, Shared<Forest>>,
    /// The times of forests, by the bytes of a chunk and the direction.
    times: Cache<(Key, u64, Runs), Shared<Times>>,
    flow: concurrent::Known,
    computing: Switches,
    /// The network before its failures.
    before: Option<Box<Before>>,
    spanning: Mutex<FxHashMap<SpanningKey, Option<Shared<SpanningTrees>>>>,
    scatters: Mutex<FxHashMap<ScatterKey, Shared<Scatter>>>,
}

impl std::fmt::Debug for Fabric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fabric").field("graph", &self.graph).finish_non_exhaustive()
    }
}

pub(crate) fn size(graph: &Graph) -> u64 {
    u64::from(graph.ranks()) * graph.arcs().len() as u64
}

/// Results by key. Each result has its own lock, so that a thread waits for a result that another thread computes.
type Cache<K, V> = Mutex<FxHashMap<K, Shared<Mutex<Option<V>>>>>;

fn kept<K: std::hash::Hash + Eq + Copy, V: Clone>(of: &Cache<K, V>, key: K, make: impl FnOnce() -> V) -> V {
    let Ok(made) = kept_unless(of, key, || Ok::<_, std::convert::Infallible>(make()));
    made
}

/// Returns the result of a key, which is computed on the first call. Errors are not kept.
fn kept_unless<K: std::hash::Hash + Eq + Copy, V: Clone, E>(
    of: &Cache<K, V>,
    key: K,
    make: impl FnOnce() -> Result<V, E>,
) -> Result<V, E> {
    let own = Shared::clone(of.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
    let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
    if own.is_none() {
        *own = Some(make()?);
    }
    Ok(own.clone().expect("made above"))
}

impl Fabric {
    /// Creates the fabric of a graph. `dims` are the extents by which ranks are numbered, row-major, or empty if
    /// unknown; `hop_ns` is the mean latency of a link in nanoseconds.
    pub fn new(graph: Graph, dims: &[u32], hop_ns: f64) -> Self {
        let steps = Steps::find(&graph, dims);
        Self {
            graph,
            routed: OnceLock::new(),
            near: OnceLock::new(),
            hop_ns,
            hops_ns: FxHashMap::default(),
            sends_by_link: false,
            machines: None,
            sum_ns_per_byte: 0.0,
            header_bytes: 0,
            host_ns: 0.0,
            places: u64::MAX,
            steps,
            dims: dims.to_vec(),
            symmetry: OnceLock::new(),
            still: OnceLock::new(),
            cuts: Mutex::default(),
            scatter_cuts: Mutex::default(),
            parts: OnceLock::new(),
            relays_sooner: OnceLock::new(),
            stretch_of_pairs: OnceLock::new(),
            depths: Mutex::default(),
            packings: Mutex::default(),
            forests: Mutex::default(),
            times: Mutex::default(),
            flow: concurrent::Known::default(),
            computing: Switches::default(),
            before: None,
            spanning: Mutex::default(),
            scatters: Mutex::default(),
        }
    }

    pub(crate) fn steps(&self) -> Option<&Steps> {
        self.steps.as_ref()
    }

    pub(crate) fn known_scatters(&self) -> &Mutex<FxHashMap<ScatterKey, Shared<Scatter>>> {
        &self.scatters
    }

    pub(crate) fn known_flow(&self) -> &concurrent::Known {
        &self.flow
    }

    /// Sets whether messages of a rank on different links do not wait for each other.
    #[must_use]
    pub fn sending_by_link(self, sends_by_link: bool) -> Self {
        Self { sends_by_link, ..self }
    }

    /// Limits the messages that a rank sends at a time to `machines`. `packet_bytes` is the sum over all planes of the
    /// bytes of a packet.
    #[must_use]
    pub fn with_machines(self, machines: u32, packet_bytes: u64) -> Self {
        Self { machines: Some((machines, packet_bytes)), ..self }
    }

    /// Sets the time in which a host adds a byte to a sum, and its time for each message that it sends or receives, in
    /// nanoseconds.
    #[must_use]
    pub fn with_hosts(self, sum_ns_per_byte: f64, host_ns: f64) -> Self {
        Self { sum_ns_per_byte, host_ns, ..self }
    }

    /// Sets the bytes of a message besides its data, on all planes together.
    #[must_use]
    pub fn with_headers(self, header_bytes: u64) -> Self {
        Self { header_bytes, ..self }
    }

    /// Returns the work of hosts on messages, in units of the time of `bytes` on a link of rate 1; `None` if it takes
    /// no time.
    pub fn host_work(&self, bytes: u64) -> Option<HostWork> {
        let takes = self.host_ns * self.graph.bytes_per_ns() / bytes.max(1) as f64;
        (takes > 0.0).then_some(HostWork { takes, sends_by_link: self.sends_by_link })
    }

    /// Sets the number of packets, of any length, that fit into the buffer at the end of a link.
    #[must_use]
    pub fn with_places(self, places: u64) -> Self {
        Self { places, ..self }
    }

    /// Sets the latencies of links in nanoseconds, by pairs of nodes of the plane.
    #[must_use]
    pub fn with_latencies(self, links: impl IntoIterator<Item = ((u32, u32), f64)>) -> Self {
        Self { hops_ns: links.into_iter().collect(), ..self }
    }

    pub fn sends_by_link(&self) -> bool {
        self.sends_by_link
    }

    #[must_use]
    pub fn computing(self, computing: Switches) -> Self {
        Self { computing, ..self }
    }

    /// Returns the computing switches, by nodes of the plane ([`Graph::place`]).
    pub fn switches(&self) -> &Switches {
        &self.computing
    }

    /// Returns `count` trees that join all ranks through switches, for given roles of nodes, with root `root` or rooted
    /// in their middle; `None` if a rank cannot be reached.
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

    /// Returns the arcs and relays that forests use; edges of forests refer to arcs of this graph.
    pub fn routed(&self) -> &Graph {
        self.routed.get_or_init(|| self.graph.routed())
    }

    /// Returns the fabric in which only near ranks exchange messages ([`Graph::near`]); `None` if it would be the same.
    pub fn near(&self) -> Option<&Fabric> {
        let near = |graph| {
            let known = self.cuts.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Box::new(Self {
                hops_ns: self.hops_ns.clone(),
                sends_by_link: self.sends_by_link,
                machines: self.machines,
                sum_ns_per_byte: self.sum_ns_per_byte,
                host_ns: self.host_ns,
                header_bytes: self.header_bytes,
                places: self.places,
                // Cuts consider all paths, so both fabrics have the same cuts.
                cuts: Mutex::new(known),
                ..Self::new(graph, &self.dims, self.hop_ns)
            })
        };
        self.near.get_or_init(|| self.graph.near().map(near)).as_deref()
    }

    /// Returns the mean latency of a link, in units of the time of `bytes` on a link of rate 1.
    pub fn hop(&self, bytes: u64) -> f64 {
        self.hop_ns * self.graph.bytes_per_ns() / bytes.max(1) as f64
    }

    /// Returns the partitions of [`Parts::by_rates`]: components joined by links faster than one of the rates, down to
    /// single ranks.
    pub fn parts(&self) -> &[Parts] {
        let computes = |node| self.computing.class(self.graph.place(node)).is_some();
        self.parts.get_or_init(|| Parts::by_rates(&self.graph, computes))
    }

    /// Returns the partition with the best bound on the time of any allreduce; `None` if computing switches invalidate
    /// all partitions.
    pub fn partition(&self) -> Option<Partition> {
        partition::largest(self.parts())
    }

    /// Returns whether all ranks are roots and see the network alike, so that forests are found by counting.
    pub fn is_alike(&self, roots: Roots) -> bool {
        self.alike(roots).is_some()
    }

    fn alike(&self, roots: Roots) -> Option<&Steps> {
        self.steps.as_ref().filter(|_| roots == Roots::All)
    }
}
