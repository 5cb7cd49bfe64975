//! Latencies of the shortest paths from ranks to all other ranks, which lower bounds read.
//!
//! On small networks ([`MOST_STEPS`]), searches start from all ranks. On others, the first of at most [`SEARCHES`]
//! searches starts from rank 0, and each further search from the farthest rank of the search before. If all
//! accelerators see the same network, the first search finds the largest distance.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use rustc_hash::FxHashMap;
use unisono_base::interrupt::poll;
use unisono_machine::network::Plane;

use super::NetworkModel;

/// The largest product of the numbers of ranks and links with which a search starts from each rank.
const MOST_STEPS: usize = 1 << 20;
/// The most searches on larger networks.
const SEARCHES: usize = 4;

/// The shortest paths from one rank to all other ranks.
#[derive(PartialEq, PartialOrd, Debug)]
pub struct Ways {
    /// Each latency in ns, descending, with the number of ranks that are at least so far.
    pub latencies: Vec<(f64, u32)>,
}

impl Ways {
    /// Returns the latency in ns to the farthest rank; 0 if there is no other rank.
    pub fn farthest(&self) -> f64 {
        self.latencies.first().map_or(0.0, |way| way.0)
    }
}

/// A cache of the ways from ranks, and of the ranks that [`NetworkModel::views`] returns.
#[derive(Default)]
pub struct KnownWays {
    from: Mutex<FxHashMap<u32, Arc<Ways>>>,
    views: OnceLock<Vec<u32>>,
}

impl NetworkModel {
    /// Returns the latency in ns of the shortest path between two ranks.
    pub(super) fn way_ns(&self, from: u32, to: u32) -> f64 {
        self.distances(from)[self.places()[to as usize] as usize]
    }

    /// Returns the shortest paths from a rank.
    pub(super) fn ways(&self, from: u32) -> Arc<Ways> {
        let known = || self.ways.from.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(&from).cloned();
        found.unwrap_or_else(|| {
            let ways = self.searched(from).0;
            Arc::clone(known().entry(from).or_insert(ways))
        })
    }

    /// Returns ranks with different ways to others or different rates of their links: one of each set of equal ranks,
    /// on large networks of some of these sets.
    pub(crate) fn views(&self) -> &[u32] {
        self.ways.views.get_or_init(|| {
            let ranks = self.ranks();
            let mut found = Vec::new();
            let mut searched = |rank: u32| {
                let (ways, farthest) = self.searched(rank);
                self.ways.from.lock().unwrap_or_else(PoisonError::into_inner).insert(rank, Arc::clone(&ways));
                let longest = ways.farthest();
                found.push((self.speeds.injection(&self.plane, self.places()[rank as usize]), ways, rank));
                (longest, farthest)
            };
            if ranks as usize * self.plane.links().len() <= MOST_STEPS {
                (0..ranks).for_each(|rank| _ = searched(rank));
            } else {
                let (mut most, mut from) = (0.0, 0);
                for _ in 0..SEARCHES {
                    let (ns, farthest) = searched(from);
                    if ns <= most {
                        break;
                    }
                    (most, from) = (ns, farthest);
                }
            }
            found.sort_by(|a, b| a.partial_cmp(b).expect("no latency and no rate is NaN"));
            found.dedup_by(|a, b| (a.0, &a.1) == (b.0, &b.1));
            found.into_iter().map(|(_, _, rank)| rank).collect()
        })
    }

    /// Returns the shortest paths from a rank, and the farthest rank.
    fn searched(&self, from: u32) -> (Arc<Ways>, u32) {
        let distances = self.distances(from);
        let others = (0..).zip(self.places()).filter(|&(rank, _)| rank != from);
        let mut ways: Vec<(f64, u32)> = others.map(|(rank, &place)| (distances[place as usize], rank)).collect();
        ways.sort_by(|a, b| b.0.total_cmp(&a.0));
        let farthest = ways.first().map_or(from, |way| way.1);
        let mut latencies: Vec<(f64, u32)> = Vec::new();
        for (count, (ns, _)) in (1..).zip(ways) {
            match latencies.last_mut() {
                Some(last) if last.0 == ns => last.1 = count,
                _ => latencies.push((ns, count)),
            }
        }
        (Arc::new(Ways { latencies }), farthest)
    }

    /// Returns the latency in ns of the shortest path from a rank to each node.
    fn distances(&self, from: u32) -> Vec<f64> {
        let first = self.places()[from as usize];
        match self.speeds.same_ns() {
            Some(alpha) => links_from(&self.plane, first).into_iter().map(|links| f64::from(links) * alpha).collect(),
            None => latencies_from(self, first),
        }
    }
}

fn links_from(plane: &Plane, first: u32) -> Vec<u32> {
    let mut links = vec![u32::MAX; plane.nodes() as usize];
    let mut queue = vec![first];
    links[first as usize] = 0;
    let mut next = 0;
    while let Some(&at) = queue.get(next) {
        poll();
        next += 1;
        for link in plane.leaving(at) {
            let to = plane.link(link).to;
            if links[to as usize] == u32::MAX {
                links[to as usize] = links[at as usize] + 1;
                queue.push(to);
            }
        }
    }
    links
}

/// Returns the least latency in ns from a node to each node (Dijkstra, 1959).
fn latencies_from(model: &NetworkModel, first: u32) -> Vec<f64> {
    let plane = &model.plane;
    let mut least = vec![f64::INFINITY; plane.nodes() as usize];
    least[first as usize] = 0.0;
    // Non-negative floating-point numbers have the same order as their bits, which the heap compares.
    let mut open = BinaryHeap::from([Reverse((0_u64, first))]);
    while let Some(Reverse((bits, at))) = open.pop() {
        poll();
        let here = f64::from_bits(bits);
        if here > least[at as usize] {
            continue;
        }
        for id in plane.leaving(at) {
            let link = plane.link(id);
            let there = here + model.speeds().alpha_ns(link.speed);
            if there < least[link.to as usize] {
                least[link.to as usize] = there;
                open.push(Reverse((there.to_bits(), link.to)));
            }
        }
    }
    least
}
