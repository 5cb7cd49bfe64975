//! Lengths of links that make packets prefer fast cables.
//!
//! The length of a path is the sum over its links. Of two paths, the one through fewer accelerators is shorter, since
//! accelerators should compute and not forward. If these numbers are equal, the one with the smaller sum of weights is
//! shorter; then the one with fewer cables. Parallel cables count as one. A cable has weight 1 if it is more than a
//! quarter as fast as the fastest cable of an accelerator, weight 4 if it is more than a sixteenth as fast, and so on.
//! Cables between switches are not compared with, because a fast trunk does not make an accelerator's cable slow. So
//! packets prefer NVLink to PCIe, and two cables of 800 Gb/s to one of 50, and use cables of similar rates together.
//! Because lengths are sums, every node on a path chooses the same remaining path (Sobrino: Algebra and algorithms for
//! QoS path computation, 2002). If all cables have one rate, the shortest paths are those with the fewest cables.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use unisono_base::interrupt::poll;

use crate::network::{Plane, Speed};

/// The length for each unit of a cable's weight. Every cable adds 1, so of two paths with equal sums of weights the one
/// with fewer cables is shorter.
const CABLE: u64 = 1 << 12;
/// The length of an accelerator on a path, which exceeds that of all cables of any path.
const ACCELERATOR: u64 = 1 << 44;
/// The ratio of rates between two weights: a cable that is slower by this factor has this many times the weight.
const ALIKE: u64 = 4;
/// The largest weight of a cable.
const MOST: u64 = 1 << 16;

pub fn lengths(plane: &Plane, own: Speed) -> Vec<u64> {
    let gbps = |speed: u8| plane.speeds()[usize::from(speed)].unwrap_or(own).gbps;
    let mut rates: HashMap<(u32, u32), f64> = HashMap::new();
    for link in plane.links() {
        poll();
        *rates.entry((link.from, link.to)).or_default() += gbps(link.speed);
    }
    let of_accelerators = rates.iter().filter(|((from, _), _)| *from < plane.accelerators());
    let fastest = of_accelerators.map(|(_, rate)| *rate).fold(0.0, f64::max);
    let counts = |rate: f64| {
        let mut counts = 1;
        while counts < MOST && rate * (ALIKE * counts) as f64 <= fastest {
            counts *= ALIKE;
        }
        counts
    };
    let length = |link: &crate::network::Link| {
        let accelerator = if link.from < plane.accelerators() { ACCELERATOR } else { 0 };
        accelerator + CABLE * counts(rates[&(link.from, link.to)]) + 1
    };
    plane.links().iter().map(length).collect()
}

/// Returns the length of the shortest path from every node to `to`, and its number of links; both are the largest
/// numbers of their types if there is no path. Without `lengths`, every link has length 1.
pub fn distances(plane: &Plane, lengths: Option<&[u64]>, to: u32) -> Vec<(u64, u32)> {
    let Some(lengths) = lengths else {
        let both = |links| (if links == u32::MAX { u64::MAX } else { u64::from(links) }, links);
        return levels(plane, to).into_iter().map(both).collect();
    };
    let mut found = vec![(u64::MAX, u32::MAX); plane.nodes() as usize];
    found[to as usize] = (0, 0);
    let mut open = BinaryHeap::from([Reverse(((0, 0), to))]);
    while let Some(Reverse((here, node))) = open.pop() {
        poll();
        if here > found[node as usize] {
            continue;
        }
        for link in plane.leaving(node).map(|id| plane.link(id)) {
            let longer = (here.0 + lengths[link.back as usize], here.1 + 1);
            if longer < found[link.to as usize] {
                found[link.to as usize] = longer;
                open.push(Reverse((longer, link.to)));
            }
        }
    }
    found
}

/// Returns the number of links of the shortest path from every node to `to`; `u32::MAX` if there is no path.
pub fn levels(plane: &Plane, to: u32) -> Vec<u32> {
    let mut found = vec![u32::MAX; plane.nodes() as usize];
    found[to as usize] = 0;
    // `open` is the queue of a breadth-first search, from which nodes are never removed, because each node is added
    // once.
    let (mut open, mut at) = (vec![to], 0);
    while let Some(&node) = open.get(at) {
        poll();
        at += 1;
        let links = found[node as usize] + 1;
        for next in plane.leaving(node).map(|id| plane.link(id).to) {
            if found[next as usize] == u32::MAX {
                found[next as usize] = links;
                open.push(next);
            }
        }
    }
    found
}
