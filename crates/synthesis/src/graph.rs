//! The links between ranks and relays, as a directed graph with rates.

use rustc_hash::FxHashMap;
use unisono_base::{interrupt::poll, narrow, rounded};
use unisono_machine::network::Plane;

/// All parallel links from one node to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arc {
    pub from: u32,
    pub to: u32,
    /// In units of the graph.
    pub rate: u64,
}

/// Ranks are the nodes `0..ranks`; relays, which only forward, follow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Graph {
    ranks: u32,
    arcs: Vec<Arc>,
    /// Arcs that leave each node: `leaving[first[n]..first[n + 1]]`.
    first: Vec<u32>,
    leaving: Vec<u32>,
    /// The node of the plane that each node stands for.
    places: Vec<u32>,
    /// Kilobits per second of a unit of rate.
    unit_kbps: u64,
}

/// Rates above are not told apart from one another.
const MOST_KBPS: f64 = 1e15;

/// Arcs of a way between two ranks, in order; all nodes between are relays.
pub type Way = Vec<u32>;

/// The ways that messages may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ways {
    /// Any, as the sender chooses.
    Any,
    /// Those with the fewest links, as networks route messages by themselves.
    Shortest,
}

impl Graph {
    /// Takes the arcs among `nodes` nodes, the first `ranks` of which are ranks. Parallel arcs are joined, and arcs without a
    /// rate are left out.
    ///
    /// # Panics
    /// An arc names a node that does not exist.
    pub fn new(ranks: u32, nodes: u32, arcs: impl IntoIterator<Item = Arc>) -> Self {
        Self::with_places((0..nodes).collect(), ranks, arcs)
    }

    fn with_places(places: Vec<u32>, ranks: u32, given: impl IntoIterator<Item = Arc>) -> Self {
        let nodes = places.len();
        let mut known: FxHashMap<(u32, u32), usize> = FxHashMap::default();
        let mut arcs: Vec<Arc> = Vec::new();
        for arc in given.into_iter().filter(|arc| arc.rate > 0 && arc.from != arc.to) {
            poll();
            match known.get(&(arc.from, arc.to)) {
                Some(&at) => arcs[at].rate += arc.rate,
                None => {
                    known.insert((arc.from, arc.to), arcs.len());
                    arcs.push(arc);
                }
            }
        }
        let unit = arcs.iter().map(|arc| arc.rate).fold(0, gcd).max(1);
        arcs.iter_mut().for_each(|arc| arc.rate /= unit);
        let mut first = vec![0_u32; nodes + 1];
        arcs.iter().for_each(|arc| first[arc.from as usize + 1] += 1);
        for node in 0..nodes {
            first[node + 1] += first[node];
        }
        let (mut next, mut leaving) = (first.clone(), vec![0; arcs.len()]);
        for (at, arc) in (0..).zip(&arcs) {
            leaving[next[arc.from as usize] as usize] = at;
            next[arc.from as usize] += 1;
        }
        Self { ranks, arcs, first, leaving, places, unit_kbps: unit }
    }

    /// The graph of the planes of a network together: `places[k]` is the accelerator of rank k, and all other accelerators
    /// and the switches are relays. `gbps` is the rate of one link of a plane.
    pub fn of_plane(plane: &Plane, places: &[u32], planes: u32, gbps: impl Fn(u32) -> f64) -> Self {
        const RELAY: u32 = u32::MAX;
        let mut number = vec![RELAY; plane.nodes() as usize];
        for (rank, &place) in (0..).zip(places) {
            number[place as usize] = rank;
        }
        let mut at = places.to_vec();
        for node in 0..plane.nodes() {
            if number[node as usize] == RELAY {
                number[node as usize] = narrow(at.len());
                at.push(node);
            }
        }
        let arcs = (0..).zip(plane.links()).map(|(id, link)| Arc {
            from: number[link.from as usize],
            to: number[link.to as usize],
            rate: rounded((gbps(id) * f64::from(planes) * 1e6).min(MOST_KBPS)),
        });
        Self::with_places(at, narrow(places.len()), arcs)
    }

    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    pub fn nodes(&self) -> u32 {
        narrow(self.places.len())
    }

    pub fn arcs(&self) -> &[Arc] {
        &self.arcs
    }

    /// The node of the plane that a node of the graph stands for.
    pub fn place(&self, node: u32) -> u32 {
        self.places[node as usize]
    }

    pub fn leaving(&self, node: u32) -> &[u32] {
        &self.leaving[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }

    /// Bytes that a unit of rate carries in a nanosecond.
    pub fn bytes_per_ns(&self) -> f64 {
        self.unit_kbps as f64 / 8e6
    }

    /// The same graph with all arcs turned round; arc k stays arc k.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let turned = self.arcs.iter().map(|arc| Arc { from: arc.to, to: arc.from, rate: arc.rate * self.unit_kbps });
        Self::with_places(self.places.clone(), self.ranks, turned)
    }

    /// The ranks to which a network routes messages from one rank over relays alone: some way over relays is the shortest of all,
    /// and none through another rank is as short.
    pub(crate) fn reached(&self, from: u32) -> Vec<bool> {
        let Levels { distance, through_rank, .. } = self.levels(from);
        let direct = |rank: usize| rank != from as usize && distance[rank] != u32::MAX && !through_rank[rank];
        (0..self.ranks as usize).map(direct).collect()
    }

    fn levels(&self, from: u32) -> Levels {
        const FAR: u32 = u32::MAX;
        let nodes = self.places.len();
        let (mut distance, mut through_rank) = (vec![FAR; nodes], vec![false; nodes]);
        distance[from as usize] = 0;
        let (mut queue, mut k) = (vec![from], 0);
        while let Some(&at) = queue.get(k) {
            poll();
            k += 1;
            let passes = through_rank[at as usize] || (at != from && at < self.ranks);
            for &arc in self.leaving(at) {
                let to = self.arcs[arc as usize].to;
                if distance[to as usize] == FAR {
                    distance[to as usize] = distance[at as usize] + 1;
                    queue.push(to);
                }
                if distance[to as usize] == distance[at as usize] + 1 {
                    through_rank[to as usize] |= passes;
                }
            }
        }
        Levels { order: queue, distance, through_rank }
    }

    /// The arcs and relays that shortest ways between ranks over relays use ([`Graph::reached`]); all ranks, and the same unit.
    pub(crate) fn routed(&self) -> Self {
        let mut kept = vec![false; self.arcs.len()];
        for from in 0..self.ranks {
            let Levels { order, distance, through_rank } = self.levels(from);
            // Whether a way goes on from a node to a rank; the farthest nodes first.
            let mut used = vec![false; self.places.len()];
            for &at in order.iter().rev() {
                poll();
                if through_rank[at as usize] {
                    continue;
                }
                let ends = at < self.ranks && at != from;
                for &arc in self.leaving(at).iter().filter(|_| !ends) {
                    let to = self.arcs[arc as usize].to as usize;
                    if distance[to] == distance[at as usize] + 1 && used[to] {
                        kept[arc as usize] = true;
                        used[at as usize] = true;
                    }
                }
                used[at as usize] |= ends;
            }
        }
        let arcs = || self.arcs.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(arc, _)| *arc);
        let mut stays: Vec<bool> = (0..self.places.len()).map(|node| node < self.ranks as usize).collect();
        arcs().for_each(|arc| [arc.from, arc.to].into_iter().for_each(|node| stays[node as usize] = true));
        let places = self.places.iter().zip(&stays).filter(|(_, stays)| **stays).map(|(&place, _)| place).collect();
        let mut number = vec![0; stays.len()];
        for (new, old) in (0..).zip((0..stays.len()).filter(|&node| stays[node])) {
            number[old] = new;
        }
        let moved = arcs().map(|arc| Arc { from: number[arc.from as usize], to: number[arc.to as usize], ..arc });
        let mut graph = Self::with_places(places, self.ranks, moved);
        let larger = std::mem::replace(&mut graph.unit_kbps, self.unit_kbps);
        graph.arcs.iter_mut().for_each(|arc| arc.rate *= larger);
        graph
    }

    /// The cheapest ways from one rank to all others through relays, at the prices of arcs. Among equal ones the way with
    /// the fewest arcs, or only ways with the fewest arcs. `ways` gets one way a rank, empty where there is none; the prices of the ways are returned.
    pub(crate) fn ways(&self, from: u32, prices: &[f64], allowed: Ways, ways: &mut Vec<Way>) -> Vec<f64> {
        const NONE: u32 = u32::MAX;
        let nodes = self.places.len();
        let (mut price, mut arcs) = (vec![f64::INFINITY; nodes], vec![u32::MAX; nodes]);
        let (mut by, mut done) = (vec![NONE; nodes], vec![false; nodes]);
        (price[from as usize], arcs[from as usize]) = (0.0, 0);
        let nearer = |a: (f64, u32), b: (f64, u32)| match allowed {
            Ways::Any => a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)),
            Ways::Shortest => a.1.cmp(&b.1).then(a.0.total_cmp(&b.0)),
        };
        // The graphs are small, so a scan finds the nearest node.
        loop {
            poll();
            let nearest = (0..nodes).filter(|&n| !done[n] && price[n].is_finite());
            let Some(at) = nearest.min_by(|&a, &b| nearer((price[a], arcs[a]), (price[b], arcs[b]))) else {
                break;
            };
            done[at] = true;
            if at != from as usize && at < self.ranks as usize {
                continue;
            }
            for &arc in self.leaving(narrow(at)) {
                let to = self.arcs[arc as usize].to as usize;
                let found = (price[at] + prices[arc as usize], arcs[at] + 1);
                if nearer(found, (price[to], arcs[to])).is_lt() {
                    (price[to], arcs[to], by[to]) = (found.0, found.1, arc);
                }
            }
        }
        ways.clear();
        for rank in 0..self.ranks {
            let (mut way, mut at) = (Vec::new(), rank);
            while at != from && by[at as usize] != NONE {
                way.push(by[at as usize]);
                at = self.arcs[by[at as usize] as usize].from;
            }
            way.reverse();
            ways.push(way);
        }
        price.truncate(self.ranks as usize);
        price
    }
}

/// The nodes of a graph by their distance from one.
struct Levels {
    /// Nearer ones first.
    order: Vec<u32>,
    distance: Vec<u32>,
    /// Whether a shortest way passes a rank.
    through_rank: Vec<bool>,
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cables(of: &[(u32, u32, u64)]) -> impl Iterator<Item = Arc> {
        of.iter().flat_map(|&(a, b, rate)| [Arc { from: a, to: b, rate }, Arc { from: b, to: a, rate }])
    }

    /// Ranks 0, 1 and 2 in a line, a relay between 0 and 2, and a longer way between these over two more relays.
    fn line_and_relays() -> Graph {
        Graph::new(3, 6, cables(&[(0, 1, 6), (1, 2, 6), (0, 3, 4), (3, 2, 4), (0, 4, 2), (4, 5, 2), (5, 2, 2)]))
    }

    #[test]
    fn ways_that_a_rank_shares_are_not_of_relays_alone() {
        // From 0 to 2 the way over rank 1 is as short as that over relay 3.
        assert_eq!(line_and_relays().reached(0), [false, true, false]);
        let graph = Graph::new(2, 4, cables(&[(0, 2, 1), (2, 1, 1), (0, 3, 1), (3, 1, 1)]));
        assert_eq!(graph.reached(0), [false, true]);
    }

    #[test]
    fn what_messages_do_not_use_is_left_out() {
        let whole = line_and_relays();
        let routed = whole.routed();
        assert_eq!((routed.ranks(), routed.nodes(), routed.arcs().len()), (3, 3, 4));
        // Rates have the unit of the whole graph.
        assert_eq!(routed.arcs().iter().map(|arc| arc.rate).collect::<Vec<_>>(), [3; 4]);
        assert!((routed.bytes_per_ns() - whole.bytes_per_ns()).abs() < 1e-15);
        let graph = Graph::new(2, 5, cables(&[(0, 3, 4), (3, 1, 4), (0, 2, 2), (2, 4, 2), (4, 1, 2)]));
        let routed = graph.routed();
        assert_eq!((routed.nodes(), routed.place(2), routed.arcs().len()), (3, 3, 4));
    }
}
