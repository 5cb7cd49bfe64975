//! Cut: every block on one side of a cut crosses the cut at least once.
//!
//! An allgather of blocks of n bytes takes n x (blocks on one side) / (rate of the links that leave this side), for the
//! cut with the largest ratio; a reduce-scatter the same with reversed links. A broadcast or a reduce of S bytes takes
//! S divided by the rate of the smallest cut between the root and another rank. In an allreduce S bytes cross any cut
//! between two ranks, in each direction; in a scan and a barrier the data of rank 0 crosses. A scatter or gather of
//! blocks of n bytes takes n x (ranks without the root on one side) / (rate of the links from the root's side to this
//! side). The ratio is exact for few ranks ([`unisono_synthesis::cut`]). Source: Edmonds, 1973; ForestColl, Zhao et
//! al., arXiv 2402.06787.

use std::sync::Arc;

use unisono_collective::{Collective, Kind};
use unisono_synthesis::{Fabric, Roots, cut::Cut};

use super::NetworkCase;
use crate::{Bound, Time};

pub const CUT: Bound = Bound {
    name: "cut",
    reference: "Edmonds, 1973; Zhao et al.: ForestColl, arXiv 2402.06787",
    assumes: "bytes not compressed",
    // The worst cut of a contained collective is one of the cuts that are searched.
    of_contained: false,
    time: |problem| nanoseconds(&NetworkCase::of(problem)?).map(Time::from_ns),
    ..Bound::OF_MACHINE
};

/// Returns the ranks whose blocks must reach all other ranks, or must come from all other ranks; `None` if the bound
/// does not apply.
pub fn cut_roots(collective: &Collective) -> Option<Roots> {
    match collective.kind {
        Kind::Allgather | Kind::ReduceScatter => Some(Roots::All),
        Kind::Broadcast | Kind::Reduce => Some(Roots::One(collective.root)),
        // The contribution of rank 0 must cross every cut between rank 0 and another rank.
        Kind::Allreduce | Kind::Barrier | Kind::Scan => Some(Roots::One(0)),
        _ => None,
    }
}

/// Returns the cut that bounds a collective; `None` if the bound does not apply.
pub fn least_cut(collective: &Collective, fabric: &Fabric) -> Option<Arc<Cut>> {
    match collective.kind {
        Kind::Gather | Kind::Scatter => Some(fabric.scatter_cut(collective.root)),
        // An alltoall contains an allgather, of which the bound `flow`, if known, is no less.
        Kind::Alltoall if fabric.concurrent_flow().is_err() => Some(fabric.cut(Roots::All)),
        _ => cut_roots(collective).map(|roots| fabric.cut(roots)),
    }
}

fn nanoseconds(case: &NetworkCase) -> Option<f64> {
    let c = &case.collective;
    if c.is_local() {
        return cut_roots(c).map(|_| 0.0);
    }
    let block = c.bytes() as f64;
    Some(least_cut(c, case.fabric)?.time() * block / case.fabric.graph().bytes_per_ns())
}
