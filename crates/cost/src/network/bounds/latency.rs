//! Latency: the data of a rank must reach the rank that is farthest from it, over at least as many links as the
//! shortest path. Each link adds its output, link and input latency. If latencies differ, the shortest path is the path
//! of the least latency. With a root, data goes from or to the root. In other collectives every rank has data for all
//! others, in a scan for those after it; as paths are equally long in both directions, the largest distance of any
//! searched rank ([`NetworkModel::views`]) counts.
//!
//! Source: the diameter bound of "HammingMesh", section 3, for the ranks in use.
//!
//! [`NetworkModel::views`]: crate::network::NetworkModel::views

use unisono_collective::Kind;

use super::NetworkCase;
use crate::{Bound, Time};

pub const LATENCY: Bound = Bound {
    name: "latency",
    reference: "shortest ways between the ranks: HammingMesh, section 3",
    assumes: "nothing beyond the model",
    // The largest distance is of all searched ranks.
    of_contained: false,
    time: |problem| nanoseconds(&NetworkCase::of(problem)?).map(Time::from_ns),
    ..Bound::OF_MACHINE
};

fn nanoseconds(case: &NetworkCase) -> Option<f64> {
    if case.collective.is_local() {
        return Some(0.0);
    }
    let (c, model) = (&case.collective, case.model);
    let farthest = match c.kind {
        Kind::Message => model.way_ns(c.root, c.sender()),
        kind if kind.has_root() => model.ways(c.root).farthest(),
        _ => model.views().iter().map(|&rank| model.ways(rank).farthest()).fold(0.0, f64::max),
    };
    Some(farthest + model.overhead_ns)
}
