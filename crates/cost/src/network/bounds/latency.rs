//! Latency: what rank 0 (or the root) has must come to the rank that is farthest from it, or the other way, over at least as
//! many links as the shortest way has, each of one link's output, link and input latency.
//!
//! Source: the diameter bound of "HammingMesh", section 3, for the ranks in use.

use unisono_collective::Kind;

use super::NetworkCase;
use crate::{Bound, CostProblem, Time};

pub struct Latency;

impl Bound for Latency {
    fn name(&self) -> &'static str {
        "latency"
    }

    fn reference(&self) -> &'static str {
        "shortest ways between the ranks: HammingMesh, section 3"
    }

    fn assumes(&self) -> &'static str {
        "nothing beyond the model"
    }

    fn time(&self, problem: &CostProblem) -> Option<Time> {
        Self::nanoseconds(&NetworkCase::of(problem)?).map(Time::from_ns)
    }
}

impl Latency {
    fn nanoseconds(case: &NetworkCase) -> Option<f64> {
        if case.collective.is_local() {
            return Some(0.0);
        }
        let c = &case.collective;
        let (model, plane) = (case.model, case.model.plane());
        let first = model.places()[if c.kind.has_root() { c.root } else { 0 } as usize];
        let mut links = vec![u32::MAX; plane.nodes() as usize];
        let mut queue = vec![first];
        links[first as usize] = 0;
        let mut next = 0;
        while let Some(&at) = queue.get(next) {
            next += 1;
            for link in plane.leaving(at) {
                let to = plane.link(link).to;
                if links[to as usize] == u32::MAX {
                    links[to as usize] = links[at as usize] + 1;
                    queue.push(to);
                }
            }
        }
        let far = |places: &[u32]| places.iter().map(|&p| links[p as usize]).max().unwrap_or(0);
        let farthest = match c.kind {
            Kind::Message => far(&[model.places()[c.sender() as usize]]),
            _ => far(model.places()),
        };
        Some(f64::from(farthest) * model.alpha_ns + model.overhead_ns)
    }
}
