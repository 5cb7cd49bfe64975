//! Paths inside a node: the port of every switch on its path to one destination, along shortest paths or along a given
//! tree.

use unisono_base::narrow;
use unisono_machine::{
    InNetwork,
    in_network::{Layout, LevelOf, Port},
};

/// The paths from all switches of a node to one of them, indexed by the switch within the node.
#[derive(Clone, Debug)]
pub struct Ways {
    /// The port by which each switch's path continues, and the switch at the other end of the port's link; `None` at
    /// the destination.
    pub next: Vec<Option<(Port, u32)>>,
    pub latency_ns: Vec<f64>,
}

/// Returns the links inside the first node: `(switch, port, switch at the other end, level)`.
pub fn inside(layout: &Layout) -> impl Iterator<Item = (u32, Port, u32, LevelOf)> + '_ {
    (0..layout.locals()).flat_map(move |local| {
        let links = layout.peers(local).filter(|(_, peer)| !matches!(peer.level, LevelOf::Node { .. }));
        links.map(move |(port, peer)| (local, port, peer.switch, peer.level))
    })
}

/// Returns shortest paths to `to` over links that `usable` accepts; of paths with equal latencies, the path with fewer
/// links, and then the path over the lower port.
pub fn ways(machine: &InNetwork, layout: &Layout, to: u32, usable: impl Fn(u32, Port) -> bool) -> Ways {
    let count = layout.locals() as usize;
    let mut arriving = vec![Vec::new(); count];
    for (from, port, there, level) in inside(layout).filter(|&(from, port, ..)| usable(from, port)) {
        arriving[there as usize].push((from, port, machine.latency_ns(level)));
    }
    let mut best = vec![(f64::INFINITY, u32::MAX); count];
    let mut next = vec![None; count];
    let mut done = vec![false; count];
    best[to as usize] = (0.0, 0);
    // A linear search suffices, because a node has at most a few hundred switches.
    while let Some(at) =
        (0..count).filter(|&s| !done[s] && best[s].0.is_finite()).min_by(|&a, &b| order(best[a], best[b]))
    {
        done[at] = true;
        for &(from, port, ns) in &arriving[at] {
            let from = from as usize;
            let through = (best[at].0 + ns, best[at].1 + 1);
            let better = order(through, best[from]);
            if better.is_lt() || (better.is_eq() && next[from].is_some_and(|(p, _)| port < p) && !done[from]) {
                best[from] = through;
                next[from] = Some((port, narrow::<u32>(at)));
            }
        }
    }
    Ways { next, latency_ns: best.into_iter().map(|(ns, _)| ns).collect() }
}

fn order(a: (f64, u32), b: (f64, u32)) -> std::cmp::Ordering {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
}
