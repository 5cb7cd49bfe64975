//! Routes packets up, then down. A full pod reaches every top switch. The last pod may reach only some of them, so
//! packets to the last pod go up only through those.

use super::{Climb, FatTree};
use crate::network::{Header, Hop, Plane, Routing, Topology};

pub struct UpDown {
    tree: FatTree,
    plane: Plane,
    /// The number of the first node of each level: leaves, middle, top.
    levels: [u32; 3],
    /// The number of switches above the leaves of a full pod.
    pod_middles: u32,
    last: Last,
}

/// The top switches that the last pod reaches.
struct Last {
    pod: u32,
    /// The top switch of the pod's first cable. The reached top switches are consecutive, with wraparound.
    first: u32,
    /// The number of top switches that the pod reaches.
    tops: u32,
    /// For each middle switch, whether it reaches a top switch that the last pod reaches.
    meets: Vec<bool>,
}

impl Last {
    fn new(tree: FatTree) -> Self {
        let pod = tree.pods() - 1;
        let spread = tree.top;
        let cables = tree.pod(pod).targets * spread.each;
        let tops = cables.min(spread.targets);
        let first = (spread.cables() - cables.min(spread.cables())).checked_rem(spread.targets).unwrap_or(0);
        let mut last = Self { pod, first, tops, meets: Vec::new() };
        last.meets = (0..spread.sources)
            .map(|middle| (0..spread.each).any(|i| last.has(spread.end(middle, i).0, spread.targets)))
            .collect();
        last
    }

    fn has(&self, top: u32, tops: u32) -> bool {
        (top + tops - self.first) % tops < self.tops
    }
}

impl UpDown {
    pub fn new(tree: FatTree) -> Self {
        Self {
            tree,
            plane: tree.plane().expect("a plane that was built before"),
            levels: [tree.leaf(0), tree.middle(0), tree.on_top(0)],
            pod_middles: tree.pod(0).targets,
            last: Last::new(tree),
        }
    }

    /// Returns whether packets to the pod may use only some of the top switches.
    fn is_narrow(&self, pod: u32) -> bool {
        pod == self.last.pod && self.last.tops < self.tree.top.targets
    }

    fn up_from_leaf(&self, leaf: u32, to_leaf: u32, mut push: impl FnMut(u32)) {
        let (pod, end) = (leaf / self.tree.pod_leaves, to_leaf / self.tree.pod_leaves);
        if pod == end || !self.is_narrow(end) {
            return (0..self.tree.up).for_each(push);
        }
        let spread = self.tree.pod(pod);
        for i in 0..self.tree.up {
            let middle = pod * self.pod_middles + spread.end(leaf % self.tree.pod_leaves, i).0;
            if self.last.meets[middle as usize] {
                push(i);
            }
        }
    }

    /// If the routing is `destination`, keeps only one of the hops from index `before` on: the one at `destination`
    /// modulo their number.
    fn settle(&self, hops: &mut Vec<Hop>, before: usize, destination: u32) {
        if self.tree.climb == Climb::Destination {
            let chosen = hops[before + destination as usize % (hops.len() - before)];
            hops.truncate(before);
            hops.push(chosen);
        }
    }

    fn at_middle(&self, middle: u32, to_leaf: u32, mut push: impl FnMut(u32)) {
        let (pod, end) = (middle / self.pod_middles, to_leaf / self.tree.pod_leaves);
        if pod == end {
            let leaf = to_leaf % self.tree.pod_leaves;
            let down = self.tree.pod(pod).towards(middle % self.pod_middles, leaf..leaf + 1);
            return down.for_each(|port| push(self.tree.middle_up() + port));
        }
        let spread = self.tree.top;
        for i in 0..spread.each {
            if !self.is_narrow(end) || self.last.has(spread.end(middle, i).0, spread.targets) {
                push(i);
            }
        }
    }
}

impl Routing for UpDown {
    fn name(&self) -> &'static str {
        match self.tree.climb {
            Climb::Adaptive => "up and down",
            Climb::Destination => "up by destination and down",
        }
    }

    fn virtual_channels(&self) -> u8 {
        1
    }

    fn hops(&self, at: u32, header: Header, hops: &mut Vec<Hop>) {
        let [leaves, middles, tops] = self.levels;
        let (to_leaf, before) = (header.to / self.tree.down, hops.len());
        let mut push = |port: u32| hops.push(Hop { link: self.plane.port(at, port), vc: 0 });
        if at < leaves {
            push(0);
        } else if at < middles {
            let leaf = at - leaves;
            if leaf == to_leaf {
                push(self.tree.up + header.to % self.tree.down);
            } else {
                self.up_from_leaf(leaf, to_leaf, push);
                self.settle(hops, before, header.to);
            }
        } else if at < tops {
            self.at_middle(at - middles, to_leaf, push);
            self.settle(hops, before, to_leaf);
        } else {
            let pod = to_leaf / self.tree.pod_leaves;
            let first = pod * self.pod_middles;
            let last = first + self.tree.pod(pod).targets;
            self.tree.top.towards(at - tops, first..last).for_each(push);
        }
    }
}
