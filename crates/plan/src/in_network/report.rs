//! What is said of a plan on switches that reduce, in the form of plans among ranks.

use unisono_cost::in_network::{IN_NETWORK_BOUNDS, eq2_ns, tightest_in_network};

use super::{InNetworkPlan, InNetworkRequest, request::MODEL};
use crate::endpoint::{EndpointBoundReport, EndpointReport, Told, bound_report};

const MEMORY_LIMITS: &str = "the cores' memories limit the throughput, not the links, so several embeddings at once bring \
    nothing more on this machine";

impl InNetworkPlan {
    pub fn report(&self) -> EndpointReport {
        let (c, machine) = (&self.request.collective, &self.request.site.machine);
        let memory_ns = 16.0 * c.dtype.bytes() as f64 / machine.memory_gbps;
        let limited = memory_ns >= eq2_ns(machine, c.dtype.bytes()) && self.best().algorithm.name() == "in-network";
        Told {
            collective: c,
            machine: &machine.name,
            shape: vec![c.ranks],
            model: MODEL,
            candidates: &self.candidates,
            terms: None,
            lower_bound: tightest_in_network(&self.request.bound_case()).map(|(b, ns)| bound_report(b, ns)),
            note: (limited && c.elements > 1).then_some(MEMORY_LIMITS),
        }
        .report()
    }
}

/// Every lower bound that applies, in the order of the registry.
pub fn in_network_bounds(request: &InNetworkRequest) -> Vec<EndpointBoundReport> {
    let case = request.bound_case();
    IN_NETWORK_BOUNDS.iter().filter_map(|&b| Some(bound_report(b, b.nanoseconds(&case)?))).collect()
}
