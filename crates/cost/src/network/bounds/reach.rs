//! Reach: the last bytes that leave the root must still travel to a rank.
//!
//! The root of a broadcast of S bytes sends each byte once, in S divided by the rate of its links, and the last byte
//! must reach the farthest rank. A scatter of blocks of n bytes may send to the farthest ranks first: the last of the k
//! blocks for the k farthest ranks travels at least to the k-th farthest. So the time is the largest value, over all k,
//! of (k n / rate) + (latency to the k-th farthest rank). A reduce and a gather are the same in reverse: data from a
//! rank does not arrive before its latency, and occupies the root's links. The bound holds also if switches copy or
//! reduce. In collectives without a root, every rank is a root of the collectives that they contain.
//!
//! Source: the sum of both terms for a broadcast, Bar-Noy, Kipnis, "Designing broadcasting algorithms in the postal
//! model", 1994, for ranks with equal latencies.

use unisono_collective::Kind;

use super::NetworkCase;
use crate::{Bound, Time};

pub const REACH: Bound = Bound {
    name: "reach",
    reference: "Bar-Noy and Kipnis, 1994, on the links of a network",
    assumes: "bytes neither compressed nor sent twice",
    time: |problem| nanoseconds(&NetworkCase::of(problem)?).map(Time::from_ns),
    ..Bound::OF_MACHINE
};

fn nanoseconds(case: &NetworkCase) -> Option<f64> {
    let (c, model) = (&case.collective, case.model);
    if !c.kind.has_root() || c.is_local() {
        return None;
    }
    let block = c.bytes() as f64 / case.injection(c.root);
    let time = match c.kind {
        Kind::Message => block + model.way_ns(c.root, c.sender()),
        // Of ranks at one distance, the last counts.
        Kind::Gather | Kind::Scatter => {
            let ways = model.ways(c.root);
            ways.latencies.iter().map(|&(way, count)| f64::from(count) * block + way).fold(0.0, f64::max)
        }
        _ => block + model.ways(c.root).farthest(),
    };
    Some(time + model.overhead_ns)
}
