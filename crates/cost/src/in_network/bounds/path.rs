//! Path: the latency of the shortest path between the root, without a root any searched rank, and the rank that is
//! farthest from it. The bound of a scan is 0, because a scan chooses the cores of its ranks.

use std::{cmp::Reverse, collections::BinaryHeap};

use unisono_base::rounded;
use unisono_collective::Kind;
use unisono_machine::in_network::Site;

use super::InNetworkCase;
use crate::{Bound, Time};

pub const PATH: Bound = Bound {
    name: "path",
    reference: "the latency of links on the shortest path",
    assumes: "nothing travels but over links",
    // The largest distance is of all searched ranks.
    of_contained: false,
    time: |problem| nanoseconds(&InNetworkCase::of(problem)?).map(Time::from_ns),
    ..Bound::OF_MACHINE
};

/// The largest product of the numbers of ranks and switches with which a search starts from each rank.
const MOST_STEPS: usize = 1 << 14;
/// The most searches on larger machines. Each further one starts from the farthest rank of the search before.
const SEARCHES: usize = 4;

fn nanoseconds(case: &InNetworkCase) -> Option<f64> {
    let site = case.site;
    if case.collective.is_local() {
        return None;
    }
    let picoseconds = match case.collective.kind {
        Kind::Message => return None,
        // A scan chooses the cores of its ranks, so no distance is known.
        Kind::Scan => 0,
        kind if kind.has_root() => farthest(site, case.collective.root).0,
        _ => largest(site),
    };
    Some(picoseconds as f64 / 1000.0)
}

/// Returns the largest latency in picoseconds from any searched rank.
fn largest(site: &Site) -> u64 {
    if site.cores.len() * site.layout.switches() as usize <= MOST_STEPS {
        return (0..site.ranks()).map(|rank| farthest(site, rank).0).max().unwrap_or(0);
    }
    let (mut most, mut from) = (0, 0);
    for _ in 0..SEARCHES {
        let (ps, rank) = farthest(site, from);
        if ps <= most {
            break;
        }
        (most, from) = (ps, rank);
    }
    most
}

/// Returns the latency in picoseconds from a rank to the farthest rank, over shortest paths (Dijkstra), and this rank.
fn farthest(site: &Site, from: u32) -> (u64, u32) {
    let (m, from) = (&site.machine, site.cores[from as usize]);
    // Latencies are rounded down, because a bound must not be too high.
    let latency = |level| rounded((m.latency_ns(level) * 1000.0).floor());
    let mut best = vec![u64::MAX; site.layout.switches() as usize];
    best[from as usize] = 0;
    let mut waiting = BinaryHeap::from([(Reverse(0), from)]);
    while let Some((Reverse(far), at)) = waiting.pop() {
        if far > best[at as usize] {
            continue;
        }
        for (_, peer) in site.layout.peers(at) {
            let there = far + latency(peer.level);
            if there < best[peer.switch as usize] {
                best[peer.switch as usize] = there;
                waiting.push((Reverse(there), peer.switch));
            }
        }
    }
    let ways = site.cores.iter().map(|&core| best[core as usize]).zip(0..);
    ways.max_by_key(|&(ps, rank)| (ps, Reverse(rank))).unwrap_or_default()
}
