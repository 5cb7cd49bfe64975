//! Latency: what rank 0 (or the root) has must come to the rank that is farthest from it, or the other way, over at least as
//! many links as the shortest way has, each of one link's output, link and input latency. Where links have unlike latencies,
//! the shortest way is that of the least latency.
//!
//! Source: the diameter bound of "HammingMesh", section 3, for the ranks in use.

use std::{cmp::Reverse, collections::BinaryHeap};

use unisono_base::interrupt::poll;
use unisono_collective::Kind;
use unisono_machine::network::Plane;

use super::NetworkCase;
use crate::{Bound, CostProblem, Time, network::NetworkModel};

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
        let distances = match model.speeds().same_ns() {
            Some(alpha) => links_from(plane, first).into_iter().map(|links| f64::from(links) * alpha).collect(),
            None => latencies_from(model, first),
        };
        let far = |places: &[u32]| places.iter().map(|&p| distances[p as usize]).fold(0.0, f64::max);
        let farthest = match c.kind {
            Kind::Message => far(&[model.places()[c.sender() as usize]]),
            _ => far(model.places()),
        };
        Some(farthest + model.overhead_ns)
    }
}

/// Returns the fewest links from a node to every other.
fn links_from(plane: &Plane, first: u32) -> Vec<u32> {
    let mut links = vec![u32::MAX; plane.nodes() as usize];
    let mut queue = vec![first];
    links[first as usize] = 0;
    let mut next = 0;
    while let Some(&at) = queue.get(next) {
        poll();
        next += 1;
        for link in plane.leaving(at) {
            let to = plane.link(link).to;
            if links[to as usize] == u32::MAX {
                links[to as usize] = links[at as usize] + 1;
                queue.push(to);
            }
        }
    }
    links
}

/// Returns the least latency from a node to every other (Dijkstra, 1959).
fn latencies_from(model: &NetworkModel, first: u32) -> Vec<f64> {
    let plane = model.plane();
    let mut least = vec![f64::INFINITY; plane.nodes() as usize];
    least[first as usize] = 0.0;
    // Real numbers that are not negative are ordered as their bits are.
    let mut open = BinaryHeap::from([Reverse((0_u64, first))]);
    while let Some(Reverse((bits, at))) = open.pop() {
        poll();
        let here = f64::from_bits(bits);
        if here > least[at as usize] {
            continue;
        }
        for id in plane.leaving(at) {
            let link = plane.link(id);
            let there = here + model.speeds().alpha_ns(link.speed);
            if there < least[link.to as usize] {
                least[link.to as usize] = there;
                open.push(Reverse((there.to_bits(), link.to)));
            }
        }
    }
    least
}
