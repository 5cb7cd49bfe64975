//! Flow: the least time in which the links can carry the blocks of an all-to-all, along any paths.
//!
//! With a price p for every link, blocks of n bytes take at least n (sum of the distances at these prices of all pairs
//! of ranks) / (sum of p x rate of all links). The prices solve the dual program of the maximum concurrent flow, so the
//! bound is the time of that flow, or near it if the links of a large network differ
//! ([`unisono_synthesis::ConcurrentFlow`]).
//! Source: Shahrokhi and Matula, "The maximum concurrent flow problem", JACM 1990.

use unisono_collective::Kind;

use super::NetworkCase;
use crate::{Bound, Time};

pub const FLOW: Bound = Bound {
    name: "flow",
    reference: "Shahrokhi and Matula: The maximum concurrent flow problem, 1990",
    assumes: "bytes not compressed",
    time: |problem| nanoseconds(&NetworkCase::of(problem)?).map(Time::from_ns),
    ..Bound::OF_MACHINE
};

fn nanoseconds(case: &NetworkCase) -> Option<f64> {
    let c = &case.collective;
    if c.kind != Kind::Alltoall {
        return None;
    }
    if c.is_local() {
        return Some(0.0);
    }
    let block = c.bytes() as f64;
    Some(case.fabric.concurrent_flow().ok()?.time() * block / case.fabric.graph().bytes_per_ns())
}
