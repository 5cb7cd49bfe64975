//! Networks that several tests draw or build.

use unisono_synthesis::{Arc, Graph};

/// Returns a line of all nodes with additional cables. The line ensures that every rank is reached. Cables have equal
/// rates in both directions, so that relays can send all data that they receive.
pub fn drawn(ranks: u32, relays: u32, cables: Vec<(u32, u32, u64)>) -> Graph {
    let nodes = ranks + relays;
    let line = (0..nodes - 1).map(|n| (n, n + 1, 2));
    let cables = line.chain(cables.into_iter().map(|(a, b, rate)| (a % nodes, b % nodes, rate)));
    let arcs = cables.flat_map(|(a, b, rate)| [Arc { from: a, to: b, rate }, Arc { from: b, to: a, rate }]);
    Graph::new(ranks, nodes, arcs)
}

/// Returns boxes of `each` ranks with a switch. The interfaces of the ranks of a box lead to leaf switches, and these
/// to two spine switches.
pub fn cluster(boxes: u32, each: u32) -> Graph {
    let ranks = boxes * each;
    let (switch, port, leaf) = (ranks, ranks + boxes, 2 * ranks + boxes);
    let mut cables = Vec::new();
    for b in 0..boxes {
        for k in 0..each {
            let rank = b * each + k;
            cables.extend([(rank, switch + b, 9), (rank, port + rank, 1), (port + rank, leaf + k, 1)]);
        }
    }
    for k in 0..each {
        cables.extend([(leaf + k, leaf + each, 1), (leaf + k, leaf + each + 1, 1)]);
    }
    let arcs = |(a, b, rate)| [Arc { from: a, to: b, rate }, Arc { from: b, to: a, rate }];
    Graph::new(ranks, leaf + each + 2, cables.into_iter().flat_map(arcs))
}

/// Returns a torus whose links have the same rate.
pub fn torus(dims: &[u32]) -> Graph {
    let ranks: u32 = dims.iter().product();
    let mut arcs = Vec::new();
    let mut stride = ranks;
    for &dim in dims {
        stride /= dim;
        for from in 0..ranks {
            let at = from / stride % dim;
            for to in [(at + 1) % dim, (at + dim - 1) % dim] {
                arcs.push(Arc { from, to: from - at * stride + to * stride, rate: 400 });
            }
        }
    }
    Graph::new(ranks, ranks, arcs)
}
