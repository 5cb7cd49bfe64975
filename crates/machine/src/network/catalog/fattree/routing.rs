//! Routes packets up, then down. A full pod reaches every top switch. The last pod may reach only some top switches;
//! packets to the last pod then go up only to those.

use std::ops::Range;

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
    /// For each middle switch of a full pod, true if it has a cable to a top switch that the last pod reaches.
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

    /// Returns the range of ports by which packets to an accelerator may leave a node. The routing `destination` then
    /// chooses one of them. Returns `None` if the destination is in a narrow pod and only some of the ports lead to it.
    fn ports(&self, at: u32, to: u32) -> Option<Range<u32>> {
        let [leaves, middles, tops] = self.levels;
        let to_leaf = to / self.tree.down;
        let end = to_leaf / self.tree.pod_leaves;
        if at < leaves {
            return Some(0..1);
        }
        if at < middles {
            let leaf = at - leaves;
            if leaf == to_leaf {
                let port = self.tree.up + to % self.tree.down;
                return Some(port..port + 1);
            }
            let is_near = leaf / self.tree.pod_leaves == end;
            return (is_near || !self.is_narrow(end)).then_some(0..self.tree.up);
        }
        if at < tops {
            let middle = at - middles;
            let pod = middle / self.pod_middles;
            if pod == end {
                let leaf = to_leaf % self.tree.pod_leaves;
                let down = self.tree.pod(pod).towards(middle % self.pod_middles, leaf..leaf + 1);
                let up = self.tree.middle_up();
                return Some(up + down.start..up + down.end);
            }
            return (!self.is_narrow(end)).then_some(0..self.tree.top.each);
        }
        let first = end * self.pod_middles;
        let last = first + self.tree.pod(end).targets;
        Some(self.tree.top.towards(at - tops, first..last))
    }

    /// Calls `push` with the ports of a leaf or a middle switch that lead to the last pod, which is narrow.
    fn narrow_ports(&self, at: u32, mut push: impl FnMut(u32)) {
        let [leaves, middles, _] = self.levels;
        if at < middles {
            let leaf = at - leaves;
            let pod = leaf / self.tree.pod_leaves;
            let spread = self.tree.pod(pod);
            for i in 0..self.tree.up {
                let middle = pod * self.pod_middles + spread.end(leaf % self.tree.pod_leaves, i).0;
                if self.last.meets[middle as usize] {
                    push(i);
                }
            }
        } else {
            let spread = self.tree.top;
            (0..spread.each).filter(|&i| self.last.has(spread.end(at - middles, i).0, spread.targets)).for_each(push);
        }
    }

    /// Returns the number that the routing `destination` reduces modulo the number of ports to choose a port: the
    /// accelerator's number at a leaf, the leaf's number at a middle switch. Returns `None` if a packet may use all
    /// ports.
    fn settled(&self, at: u32, to: u32) -> Option<u32> {
        let [leaves, middles, tops] = self.levels;
        if self.tree.climb != Climb::Destination || at < leaves || at >= tops {
            return None;
        }
        Some(if at < middles { to } else { to / self.tree.down })
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

    /// Returns the sizes of pods and leaves. Blocks are interchangeable only if paths up do not depend on the
    /// destination, each pod has the same cables to the top switches, and each leaf has the same number of cables to
    /// every switch above. Paths up then depend only on the smallest block that contains both ends of a message.
    /// Returns an empty list otherwise.
    fn blocks(&self) -> Vec<u32> {
        let FatTree { pod_leaves, leaves, down, up, climb, top, .. } = self.tree;
        let is_whole = leaves.is_multiple_of(pod_leaves) && up.is_multiple_of(self.pod_middles.max(1));
        let tops = top.targets.max(1);
        if climb == Climb::Destination || !is_whole || !(self.pod_middles * top.each).is_multiple_of(tops) {
            return Vec::new();
        }
        vec![pod_leaves * down, down, 1]
    }

    fn run(&self, at: u32, header: Header) -> Option<(Hop, u32)> {
        let Range { start, end } = self.ports(at, header.to)?;
        let (port, count) = match self.settled(at, header.to) {
            Some(number) => (start + number % (end - start), 1),
            None => (start, end - start),
        };
        Some((Hop { link: self.plane.port(at, port), vc: 0 }, count))
    }

    fn hops(&self, at: u32, header: Header, hops: &mut Vec<Hop>) {
        if let Some((first, count)) = self.run(at, header) {
            hops.extend((first.link..first.link + count).map(|link| Hop { link, ..first }));
            return;
        }
        let before = hops.len();
        self.narrow_ports(at, |port| hops.push(Hop { link: self.plane.port(at, port), vc: 0 }));
        if let Some(number) = self.settled(at, header.to) {
            let chosen = hops[before + number as usize % (hops.len() - before)];
            hops.truncate(before);
            hops.push(chosen);
        }
    }
}
