//! Latency: the data of a rank must reach the rank that is farthest from it, over at least as many links as the
//! shortest path. Each link adds its output, link and input latency. If latencies differ, the shortest path is the path
//! of the least latency. With a root, data goes from or to the root. In other collectives every rank has data for all
//! others (in a scan for those after it), and the largest distance counts.
//!
//! On small networks ([`MOST_STEPS`]), a search starts from each rank. On others, the first of at most [`SEARCHES`]
//! searches starts from rank 0, and each further search from the farthest rank of the search before, so the result is
//! at least the largest distance from rank 0. If all accelerators see the same network, the first search finds the
//! largest distance.
//!
//! Source: the diameter bound of "HammingMesh", section 3, for the ranks in use.

use std::{cmp::Reverse, collections::BinaryHeap};

use unisono_base::interrupt::poll;
use unisono_collective::Kind;
use unisono_machine::network::Plane;

use super::NetworkCase;
use crate::{Bound, Time, network::NetworkModel};

pub const LATENCY: Bound = Bound {
    name: "latency",
    reference: "shortest ways between the ranks: HammingMesh, section 3",
    assumes: "nothing beyond the model",
    time: |problem| nanoseconds(&NetworkCase::of(problem)?).map(Time::from_ns),
    ..Bound::OF_MACHINE
};

fn nanoseconds(case: &NetworkCase) -> Option<f64> {
    if case.collective.is_local() {
        return Some(0.0);
    }
    let (c, places) = (&case.collective, case.model.places());
    let farthest = match c.kind {
        Kind::Message => far(&distances(case.model, places[c.root as usize]), &[places[c.sender() as usize]]).0,
        kind if kind.has_root() => far(&distances(case.model, places[c.root as usize]), places).0,
        _ => largest(case),
    };
    Some(farthest + case.model.overhead_ns)
}

/// The largest product of the numbers of ranks and links with which a search starts from each rank.
const MOST_STEPS: usize = 1 << 20;
/// The most searches on larger networks.
const SEARCHES: usize = 4;

/// Returns the largest latency, in ns, from any searched rank to any rank that receives its data.
fn largest(case: &NetworkCase) -> f64 {
    let (model, places) = (case.model, case.model.places());
    let all = places.len() * model.plane().links().len() <= MOST_STEPS;
    let (mut most, mut from) = (0.0, 0);
    for searched in 0..if all { places.len() } else { SEARCHES } {
        let first = if case.collective.kind == Kind::Scan { from + 1 } else { 0 };
        let (ns, at) = far(&distances(model, places[from]), &places[first..]);
        if ns <= most && !all {
            break;
        }
        most = ns.max(most);
        from = if all { searched + 1 } else { first + at };
    }
    most
}

fn far(distances: &[f64], places: &[u32]) -> (f64, usize) {
    let of = places.iter().map(|&place| distances[place as usize]).enumerate();
    of.fold((0.0, 0), |most, (at, ns)| if ns > most.0 { (ns, at) } else { most })
}

/// Returns the latency in ns of the shortest path from a node to each node.
pub(super) fn distances(model: &NetworkModel, first: u32) -> Vec<f64> {
    match model.speeds().same_ns() {
        Some(alpha) => links_from(model.plane(), first).into_iter().map(|links| f64::from(links) * alpha).collect(),
        None => latencies_from(model, first),
    }
}

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

/// Returns the least latency in ns from a node to each node (Dijkstra, 1959).
fn latencies_from(model: &NetworkModel, first: u32) -> Vec<f64> {
    let plane = model.plane();
    let mut least = vec![f64::INFINITY; plane.nodes() as usize];
    least[first as usize] = 0.0;
    // Non-negative floating-point numbers have the same order as their bits, which the heap compares.
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
