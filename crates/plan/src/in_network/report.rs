//! What is said of a plan on switches that reduce, in the form of plans among ranks.

use unisono_cost::in_network::{IN_NETWORK_BOUNDS, InNetworkBound, eq2_ns, tightest_in_network};

use super::{InNetworkPlan, InNetworkRequest, request::MODEL};
use crate::{
    endpoint::{EndpointBoundReport, EndpointCandidate, EndpointPrediction, EndpointReport, Timed},
    report::map,
};

const MEMORY_LIMITS: &str = "the cores' memories limit the throughput, not the links, so several embeddings at once bring \
    nothing more on this machine";

impl InNetworkPlan {
    pub fn report(&self) -> EndpointReport {
        let (request, best) = (&self.request, self.best());
        let (c, machine) = (&request.collective, &request.site.machine);
        let bound = tightest_in_network(&request.bound_case());
        let ratio = |t: &Timed| bound.filter(|(_, ns)| *ns > 0.0).map(|(_, ns)| t.nanoseconds / ns);
        let candidate = |t: &Timed| EndpointCandidate {
            algorithm: t.algorithm.name(),
            params: map(&t.params),
            seconds: t.nanoseconds / 1e9,
            ratio: ratio(t),
            source: t.source,
        };
        let memory_ns = 16.0 * c.dtype.bytes() as f64 / machine.memory_gbps;
        let limited = memory_ns >= eq2_ns(machine, c.dtype.bytes()) && best.algorithm.name() == "in-network";
        EndpointReport {
            collective: c.kind.name(),
            machine: machine.name.clone(),
            shape: vec![c.ranks],
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
            predicted: EndpointPrediction { seconds: best.nanoseconds / 1e9, source: best.source, terms: None },
            lower_bound: bound.map(|(b, ns)| bound_report(b, ns)),
            ratio: ratio(best),
            note: (limited && c.elements > 1).then_some(MEMORY_LIMITS),
            candidates: self.candidates.iter().map(candidate).collect(),
        }
    }
}

fn bound_report(bound: &'static dyn InNetworkBound, nanoseconds: f64) -> EndpointBoundReport {
    EndpointBoundReport {
        name: bound.name(),
        seconds: nanoseconds / 1e9,
        reference: bound.reference(),
        source: bound.reference(),
        assumes: bound.assumes(),
    }
}

/// Every lower bound that applies, in the order of the registry.
pub fn in_network_bounds(request: &InNetworkRequest) -> Vec<EndpointBoundReport> {
    let case = request.bound_case();
    IN_NETWORK_BOUNDS.iter().filter_map(|&b| Some(bound_report(b, b.nanoseconds(&case)?))).collect()
}
