//! Cut: every block on one side of a cut crosses the cut at least once.
//!
//! An allgather of blocks of n bytes takes n x (blocks on one side) / (rate of the links that leave this side), for the
//! cut with the largest ratio; a reduce-scatter the same with reversed links. A broadcast or a reduce of S bytes takes
//! S divided by the rate of the smallest cut between the root and another rank. In an allreduce S bytes cross any cut
//! between two ranks, in each direction. The ratio is exact for few ranks ([`unisono_synthesis::cut`]). Source:
//! Edmonds, 1973; ForestColl, Zhao et al., arXiv 2402.06787.

use unisono_collective::{Collective, Kind};
use unisono_synthesis::Roots;

use super::NetworkCase;
use crate::{Bound, Time};

pub const CUT: Bound = Bound {
    name: "cut",
    reference: "Edmonds, 1973; Zhao et al.: ForestColl, arXiv 2402.06787",
    assumes: "bytes not compressed",
    time: |problem| nanoseconds(&NetworkCase::of(problem)?).map(Time::from_ns),
    ..Bound::OF_MACHINE
};

/// Returns the ranks whose blocks must reach all other ranks, or come from them; `None` if the bound does not apply.
pub fn cut_roots(collective: &Collective) -> Option<Roots> {
    match collective.kind {
        Kind::Allgather | Kind::ReduceScatter => Some(Roots::All),
        Kind::Broadcast | Kind::Reduce => Some(Roots::One(collective.root)),
        // The contribution of rank 0 must cross every cut between rank 0 and another rank.
        Kind::Allreduce => Some(Roots::One(0)),
        _ => None,
    }
}

fn nanoseconds(case: &NetworkCase) -> Option<f64> {
    let c = &case.collective;
    let roots = cut_roots(c)?;
    if c.is_local() {
        return Some(0.0);
    }
    let block = c.bytes() as f64;
    Some(case.fabric.cut(roots).time() * block / case.fabric.graph().bytes_per_ns())
}
