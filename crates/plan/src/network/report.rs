//! What is said of a plan on a network, in the form of plans among ranks.

use unisono_cost::{
    endpoint::schedule_terms,
    network::{NETWORK_BOUNDS, tightest_network},
};

use super::{NetworkPlan, NetworkRequest, request::MODEL};
use crate::endpoint::{EndpointBoundReport, EndpointReport, Source, Told, bound_report};

impl NetworkPlan {
    pub fn report(&self) -> EndpointReport {
        let request = &self.request;
        // What is timed by its exchanges may be too large to be built for its terms.
        let built = (self.best().source == Source::Messages).then(|| self.schedule().ok()).flatten();
        Told {
            collective: &request.collective,
            machine: &request.machine.name,
            shape: request.extents.dims().to_vec(),
            model: MODEL,
            candidates: &self.candidates,
            terms: built.and_then(|schedule| schedule_terms(schedule).ok()),
            lower_bound: tightest_network(&request.bound_case()).map(|(b, ns)| bound_report(b, ns)),
            note: None,
        }
        .report()
    }
}

/// Every lower bound that applies, in the order of the registry.
pub fn network_bounds(request: &NetworkRequest) -> Vec<EndpointBoundReport> {
    let case = request.bound_case();
    NETWORK_BOUNDS.iter().filter_map(|&b| Some(bound_report(b, b.nanoseconds(&case)?))).collect()
}
