//! Trees of short blocks, whose messages arrive as early as the latencies of links allow.
//!
//! A tree grows by the message that arrives first, as in a search for shortest paths (Dijkstra, "A note on two problems
//! in connexion with graphs", 1959), so a path of the tree leads over another rank, instead of over a slow link, if the
//! data then arrives sooner. A message begins when its data has arrived, and the host of its sender and the links of
//! its path are free of earlier messages of the tree. Hosts work on each message at its start and at its end. Times are
//! in ns.

use unisono_base::{interrupt::poll, narrow};

use crate::{
    Graph, Way,
    packing::{Edge, Tree},
};

/// The times of messages of one length.
pub(crate) struct Speeds {
    /// The latency of each arc, and the time for which a message occupies it.
    pub latency_ns: Vec<f64>,
    pub takes_ns: Vec<f64>,
    /// The time of a host for each message that it sends or receives.
    pub host_ns: f64,
    /// True if a rank sends a message before its previous message has left.
    pub sends_by_link: bool,
}

/// The path of a message between two ranks.
struct Between {
    arcs: Way,
    latency_ns: f64,
    /// The time of the message on the slowest arc.
    slowest_ns: f64,
}

/// Grows trees in one network for messages of one length.
pub(crate) struct Soonest<'a> {
    speeds: &'a Speeds,
    ranks: usize,
    /// The path from rank a to rank b, at index `a * ranks + b`; `None` if no message takes this direction.
    ways: Vec<Option<Between>>,
}

/// Returns the path from one rank to another, where `last` is the last arc of the path to each node.
fn between(graph: &Graph, speeds: &Speeds, last: &[Option<u32>], (from, to): (u32, u32)) -> Between {
    let (mut arcs, mut at) = (Vec::new(), to);
    while at != from {
        let arc = last[at as usize].expect("an arc to each reached node");
        arcs.push(arc);
        at = graph.arcs()[arc as usize].from;
    }
    arcs.reverse();
    let of = |ns: &[f64]| arcs.iter().map(|&arc| ns[arc as usize]).collect::<Vec<_>>();
    let latency_ns = of(&speeds.latency_ns).iter().sum();
    let slowest_ns = of(&speeds.takes_ns).into_iter().fold(0.0, f64::max);
    Between { arcs, latency_ns, slowest_ns }
}

/// A tree while it grows.
struct Growth {
    /// The arrival of the data at each rank; infinite if the rank has not joined.
    there: Vec<f64>,
    depth: Vec<u32>,
    /// The times from which the host of each rank and each arc are free.
    host: Vec<f64>,
    arc: Vec<f64>,
}

const NONE: usize = usize::MAX;

impl<'a> Soonest<'a> {
    pub fn new(graph: &Graph, speeds: &'a Speeds) -> Self {
        let ranks = graph.ranks();
        let mut ways = Vec::with_capacity((ranks as usize).pow(2));
        for from in 0..ranks {
            poll();
            // Packets may take any shortest path, so the time of a message is that of the slowest path. Arcs are in the
            // order of distance.
            let mut last = vec![None; graph.nodes() as usize];
            let mut latest_ns = vec![0.0; last.len()];
            for arc in graph.fan(from) {
                let ends = graph.arcs()[arc as usize];
                let (at, to) = (ends.from as usize, ends.to as usize);
                let there_ns = latest_ns[at] + speeds.latency_ns[arc as usize] + speeds.takes_ns[arc as usize];
                if last[to].is_none() || there_ns > latest_ns[to] {
                    (last[to], latest_ns[to]) = (Some(arc), there_ns);
                }
            }
            let is_reached = graph.reached(from);
            ways.extend(
                (0..ranks).map(|to| is_reached[to as usize].then(|| between(graph, speeds, &last, (from, to)))),
            );
        }
        Self { speeds, ranks: ranks as usize, ways }
    }

    /// Returns the time of one message from rank a to rank b, at index `a * ranks + b`; infinite if no message takes
    /// this direction.
    pub fn direct_ns(&self) -> Vec<f64> {
        let of = |way: &Between| way.slowest_ns + way.latency_ns + 2.0 * self.speeds.host_ns;
        self.ways.iter().map(|way| way.as_ref().map_or(f64::INFINITY, of)).collect()
    }

    /// Returns the tree of a root with at most `depth` edges on a path, and its last arrival; `None` if a rank remains
    /// out of reach.
    pub fn tree(&self, root: u32, depth: Option<u32>) -> Option<(Tree, f64)> {
        let (n, at) = (self.ranks, root as usize);
        let most = depth.unwrap_or(u32::MAX);
        let arcs = self.speeds.latency_ns.len();
        let mut growth =
            Growth { there: vec![f64::INFINITY; n], depth: vec![0; n], host: vec![0.0; n], arc: vec![0.0; arcs] };
        growth.there[at] = 0.0;
        let mut best = vec![(f64::INFINITY, NONE); n];
        let (mut edges, mut last) = (Vec::with_capacity(n - 1), at);
        while edges.len() + 1 < n {
            poll();
            let open: Vec<usize> = (0..n).filter(|&to| growth.there[to].is_infinite()).collect();
            if growth.depth[last] < most {
                open.iter().for_each(|&to| self.offer(&growth, &mut best[to], last, to));
            }
            // Messages of the tree can only delay other messages. The first arrival is therefore computed again until
            // it stays the first.
            let to = loop {
                let to = *open.iter().min_by(|&&a, &&b| best[a].0.total_cmp(&best[b].0))?;
                let (known, from) = best[to];
                if from == NONE {
                    return None;
                }
                if self.arrival(&growth, from, to)? <= known {
                    break to;
                }
                best[to] = (f64::INFINITY, NONE);
                for from in (0..n).filter(|&from| growth.there[from].is_finite() && growth.depth[from] < most) {
                    self.offer(&growth, &mut best[to], from, to);
                }
            };
            let (there, from) = best[to];
            let way = self.ways[from * n + to].as_ref()?;
            let left = there - self.speeds.host_ns - way.latency_ns;
            way.arcs
                .iter()
                .for_each(|&arc| growth.arc[arc as usize] = left - way.slowest_ns + self.speeds.takes_ns[arc as usize]);
            growth.host[from] = if self.speeds.sends_by_link {
                growth.there[from].max(growth.host[from]) + self.speeds.host_ns
            } else {
                left
            };
            (growth.there[to], growth.depth[to], last) = (there, growth.depth[from] + 1, to);
            edges.push(Edge { from: narrow(from), to: narrow(to), way: way.arcs.clone() });
        }
        let end = growth.there.iter().copied().fold(0.0, f64::max);
        Some((Tree { root, edges, depth: growth.depth.into_iter().max().unwrap_or(0) }, end))
    }

    /// Stores `from` as the sender to rank `to` in `best` if its message arrives before the known one.
    fn offer(&self, growth: &Growth, best: &mut (f64, usize), from: usize, to: usize) {
        if let Some(there) = self.arrival(growth, from, to).filter(|&there| there < best.0) {
            *best = (there, from);
        }
    }

    fn arrival(&self, growth: &Growth, from: usize, to: usize) -> Option<f64> {
        let way = self.ways[from * self.ranks + to].as_ref()?;
        let ready = growth.there[from].max(growth.host[from]) + self.speeds.host_ns;
        let begin = way.arcs.iter().map(|&arc| growth.arc[arc as usize]).fold(ready, f64::max);
        Some(begin + way.slowest_ns + way.latency_ns + self.speeds.host_ns)
    }
}
