//! Path: the latency of the shortest path between the root, or rank 0 in an allreduce or barrier, and the rank that is
//! farthest from it. The bound of a scan is 0, because a scan chooses the cores of its ranks.

use std::{cmp::Reverse, collections::BinaryHeap};

use unisono_base::rounded;
use unisono_collective::Kind;

use super::InNetworkCase;
use crate::{Bound, Time};

pub const PATH: Bound = Bound {
    name: "path",
    reference: "the latency of links on the shortest path",
    assumes: "nothing travels but over links",
    time: |problem| nanoseconds(&InNetworkCase::of(problem)?).map(Time::from_ns),
    ..Bound::OF_MACHINE
};

fn nanoseconds(case: &InNetworkCase) -> Option<f64> {
    let from = match case.collective.kind {
        Kind::Allreduce | Kind::Barrier | Kind::Scan => 0,
        Kind::Broadcast | Kind::Reduce => case.collective.root,
        _ => return None,
    };
    if case.collective.is_local() {
        return None;
    }
    // A scan chooses the cores of its ranks, so no distance is known.
    let picoseconds = if case.collective.kind == Kind::Scan { 0 } else { farthest(case, case.cores[from as usize]) };
    Some(picoseconds as f64 / 1000.0)
}

/// Returns the latency from the core `from` to the farthest rank, over shortest paths, in picoseconds (Dijkstra).
fn farthest(case: &InNetworkCase, from: u32) -> u64 {
    let m = case.machine;
    // Latencies are rounded down, because a bound must not be too high.
    let latency = |level| rounded((m.latency_ns(level) * 1000.0).floor());
    let mut best = vec![u64::MAX; case.layout.switches() as usize];
    best[from as usize] = 0;
    let mut waiting = BinaryHeap::from([(Reverse(0), from)]);
    while let Some((Reverse(far), at)) = waiting.pop() {
        if far > best[at as usize] {
            continue;
        }
        for (_, peer) in case.layout.peers(at) {
            let there = far + latency(peer.level);
            if there < best[peer.switch as usize] {
                best[peer.switch as usize] = there;
                waiting.push((Reverse(there), peer.switch));
            }
        }
    }
    case.cores.iter().map(|&core| best[core as usize]).max().unwrap_or(0)
}
