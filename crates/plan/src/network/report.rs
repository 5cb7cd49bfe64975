//! What is said of a plan on a network, in the form of plans among ranks.

use unisono_cost::{
    endpoint::schedule_terms,
    network::{NETWORK_BOUNDS, NetworkBound, tightest_network},
};

use super::{NetworkPlan, NetworkRequest, request::MODEL};
use crate::{
    endpoint::{EndpointBoundReport, EndpointCandidate, EndpointPrediction, EndpointReport, Source, Timed},
    report::map,
};

impl NetworkPlan {
    pub fn report(&self) -> EndpointReport {
        let (request, best) = (&self.request, self.best());
        let c = &request.collective;
        let bound = tightest_network(&request.bound_case());
        let ratio = |t: &Timed| bound.filter(|(_, ns)| *ns > 0.0).map(|(_, ns)| t.nanoseconds / ns);
        let candidate = |t: &Timed| EndpointCandidate {
            algorithm: t.algorithm.name(),
            params: map(&t.params),
            seconds: t.nanoseconds / 1e9,
            ratio: ratio(t),
            source: t.source,
        };
        // What is timed by its exchanges may be too large to be built for its terms.
        let built = (best.source == Source::Messages).then(|| self.schedule().ok()).flatten();
        EndpointReport {
            collective: c.kind.name(),
            machine: request.machine.name.clone(),
            shape: request.extents.dims().to_vec(),
            ranks: c.ranks,
            elements: c.elements,
            bytes: u64::from(c.elements) * c.dtype.bytes(),
            dtype: c.dtype.name(),
            operator: c.operator.name(),
            root: c.root,
            algorithm: best.algorithm.name(),
            params: map(&best.params),
            model: MODEL,
            fits_sram: true,
            predicted: EndpointPrediction {
                seconds: best.nanoseconds / 1e9,
                source: best.source,
                terms: built.and_then(|schedule| schedule_terms(schedule).ok()),
            },
            lower_bound: bound.map(|(b, ns)| bound_report(b, ns)),
            ratio: ratio(best),
            note: None,
            candidates: self.candidates.iter().map(candidate).collect(),
        }
    }
}

fn bound_report(bound: &'static dyn NetworkBound, nanoseconds: f64) -> EndpointBoundReport {
    EndpointBoundReport {
        name: bound.name(),
        seconds: nanoseconds / 1e9,
        reference: bound.reference(),
        source: bound.reference(),
        assumes: bound.assumes(),
    }
}

/// Every lower bound that applies, in the order of the registry.
pub fn network_bounds(request: &NetworkRequest) -> Vec<EndpointBoundReport> {
    let case = request.bound_case();
    NETWORK_BOUNDS.iter().filter_map(|&b| Some(bound_report(b, b.nanoseconds(&case)?))).collect()
}
