//! Lower bounds on networks. One file each, registered in [`NETWORK_BOUNDS`]; each says what it assumes.

mod bisection;
mod board_edges;
mod injection;
mod latency;

use unisono_collective::{Collective, Kind};
use unisono_machine::network::{Network, Topology};

use super::NetworkModel;

use crate::LowerBound;

/// A collective on the accelerators of a network.
pub struct NetworkCase<'a> {
    pub collective: Collective,
    pub network: &'a Network,
    pub topology: &'a dyn Topology,
    pub model: &'a NetworkModel,
}

impl NetworkCase<'_> {
    /// Nothing has to travel.
    fn is_local(&self) -> bool {
        self.collective.ranks == 1 || (self.collective.elements == 0 && self.collective.kind != Kind::Barrier)
    }

    /// Of all links that an accelerator has, in all planes.
    fn injection_ns_per_byte(&self) -> f64 {
        8.0 / (self.network.link_gbps * f64::from(self.topology.ports()) * f64::from(self.network.planes))
    }
}

pub trait NetworkBound: LowerBound {
    /// Nanoseconds; `None` where the bound says nothing about the case.
    fn nanoseconds(&self, case: &NetworkCase) -> Option<f64>;
}

/// Sorted by name.
pub const NETWORK_BOUNDS: &[&dyn NetworkBound] =
    &[&bisection::Bisection, &board_edges::BoardEdges, &injection::Injection, &latency::Latency];

/// The largest bound: the one that plans are measured against.
pub fn tightest_network(case: &NetworkCase) -> Option<(&'static dyn NetworkBound, f64)> {
    let all = NETWORK_BOUNDS.iter().filter_map(|&bound| Some((bound, bound.nanoseconds(case)?)));
    all.max_by(|a, b| a.1.total_cmp(&b.1))
}
