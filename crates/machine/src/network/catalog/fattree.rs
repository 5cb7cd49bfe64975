//! A fat tree of two or three levels with any taper.
//!
//! Source: "HammingMesh", section 5 and Table 2. Leaves have `down` accelerators and `up` cables; middle switches of
//! three levels have half of their ports up; top switches have all ports down. Cables of accelerators are copper,
//! those between switches optical; the free down-ports of the last leaf are spare. Every level spreads its cables
//! evenly over the next.
//!
//! Routing: up, then down. Every cable up from which the destination can be reached is a candidate (ECMP, adaptive by
//! credits). The routing `destination` selects one candidate by the destination's number modulo the number of
//! candidates ("d-mod-k"; Zahavi, 2010). At a leaf this number is that of the destination accelerator; at a higher
//! switch it is that of the destination's leaf. Because packets go up before they go down, one virtual channel
//! suffices.

mod routing;

use serde::Deserialize;

use super::super::{
    Bill, Cable, Family, NodeName, Plane, PlaneBuilder, Routing, Speed, Topology,
    allocate::JobSpace,
    cut::{Cut, Halves},
    topology::{self, SWITCH_PORTS},
    wiring::Wiring,
};
use crate::MachineError;

pub const FAMILY: Family = Family {
    name: "fattree",
    summary: "leaves below one or two levels of switches, with any taper",
    reference: "HammingMesh, section 5; Leiserson, 1985",
    keys: &["accelerators", "levels", "down", "up", "top", "routing"],
    jobs: Some("fattree"),
    read,
};

/// The number of down-ports, and also of up-ports, of a middle switch in three levels.
const MIDDLE: u32 = SWITCH_PORTS / 2;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    accelerators: u32,
    levels: u32,
    /// The number of down-ports of a leaf.
    down: u32,
    up: u32,
    /// The number of ports of a top switch.
    #[serde(default = "switch_ports")]
    top: u32,
    #[serde(default)]
    routing: Climb,
}

/// The choice among the cables up that lead to the destination.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[serde(rename_all = "kebab-case")]
enum Climb {
    /// The cable with the fewest waiting packets.
    #[default]
    Adaptive,
    /// The cable that the destination's number selects.
    Destination,
}

fn switch_ports() -> u32 {
    SWITCH_PORTS
}

/// A fat tree. With two levels, it is one pod whose middle switches are the top.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FatTree {
    accelerators: u32,
    down: u32,
    up: u32,
    leaves: u32,
    pod_leaves: u32,
    /// The number of down-ports of a switch above the leaves.
    middle_down: u32,
    /// The cables between all middle switches and the top; without sources if there are two levels.
    top: Wiring,
    top_ports: u32,
    climb: Climb,
}

fn read(table: &toml::Table, origin: &str, _: Speed) -> Result<Box<dyn Topology>, MachineError> {
    let Keys { accelerators, levels, down, up, top, routing } = topology::parse(table, origin)?;
    let refused = |message: String| Err(topology::refused(origin, message));
    topology::accelerators(&[accelerators], origin)?;
    if !(2..=3).contains(&levels) {
        return refused(format!("levels is {levels}; accepted are 2 and 3"));
    }
    for (key, ports) in [("down", down), ("up", up), ("top", top)] {
        if !(1..=4096).contains(&ports) {
            return refused(format!("{key} is {ports}; accepted are 1 to 4096 ports"));
        }
    }
    // Every leaf must have a cable to every switch above it, and every pod to every top switch.
    let leaves = accelerators.div_ceil(down);
    let most = if levels == 2 { top } else { top * MIDDLE };
    if leaves > most {
        return refused(format!(
            "{accelerators} accelerators need {leaves} leaves of {down}; with levels = {levels} and top = {top} at most {most} leaves, \
             {} accelerators, are connected",
            most * down
        ));
    }
    let mut tree = FatTree {
        accelerators,
        down,
        up,
        leaves,
        pod_leaves: if levels == 2 { leaves } else { MIDDLE },
        middle_down: if levels == 2 { top } else { MIDDLE },
        top: Wiring { sources: 0, each: MIDDLE, targets: 0 },
        top_ports: top,
        climb: routing,
    };
    if levels == 3 {
        let sources = tree.middles();
        tree.top = Wiring { sources, each: MIDDLE, targets: (sources * MIDDLE).div_ceil(top) };
    }
    Ok(Box::new(tree))
}

impl FatTree {
    fn pods(self) -> u32 {
        self.leaves.div_ceil(self.pod_leaves)
    }

    /// Returns the cables between the leaves of a pod and the switches above them. The last pod may have fewer leaves.
    fn pod(self, pod: u32) -> Wiring {
        let sources = (self.leaves - pod * self.pod_leaves).min(self.pod_leaves);
        Wiring { sources, each: self.up, targets: (sources * self.up).div_ceil(self.middle_down) }
    }

    /// Returns the number of switches directly above leaves, in all pods.
    fn middles(self) -> u32 {
        let last = self.pods() - 1;
        last * self.pod(0).targets + self.pod(last).targets
    }

    /// Returns the node number of a leaf. Nodes are numbered accelerators first, then leaves, middle and top switches.
    fn leaf(self, leaf: u32) -> u32 {
        self.accelerators + leaf
    }

    fn middle(self, middle: u32) -> u32 {
        self.leaf(self.leaves) + middle
    }

    fn on_top(self, top: u32) -> u32 {
        self.middle(self.middles()) + top
    }

    /// Returns the number of up-ports of a switch above the leaves.
    fn middle_up(self) -> u32 {
        if self.top.sources == 0 { 0 } else { self.top.each }
    }
}

impl Topology for FatTree {
    fn name(&self) -> &'static str {
        FAMILY.name
    }

    fn accelerators(&self) -> u32 {
        self.accelerators
    }

    fn ports(&self) -> u32 {
        1
    }

    fn bill(&self) -> Bill {
        let middles = self.middles();
        Bill {
            switches: u64::from(self.leaves) + u64::from(middles) + u64::from(self.top.targets),
            dac: u64::from(self.accelerators),
            aoc: u64::from(self.leaves) * u64::from(self.up) + u64::from(self.top.cables()),
            spare_dac: u64::from(self.leaves) * u64::from(self.down) - u64::from(self.accelerators),
            spare_aoc: 0,
            switch_ports: (self.down + self.up).max(self.top_ports),
        }
    }

    fn diameter(&self) -> u32 {
        match (self.accelerators, self.leaves, self.pods()) {
            (1, _, _) => 0,
            (_, 1, _) => 2,
            (_, _, 1) => 4,
            _ => 6,
        }
    }

    /// Returns the least cut of this form: one side consists of whole leaves, with or without the last leaf, which may
    /// be smaller. The cut crosses the up-cables of these leaves or those of all others, whichever are fewer. It also
    /// crosses the cable of each accelerator that has to change sides so that the sides are halves.
    fn halves(&self) -> Option<Cut> {
        let (all, inside) = (self.accelerators, self.accelerators / 2);
        let last = all - (self.leaves - 1) * self.down;
        let of = |whole: u32, with_last: bool| {
            let (leaves, below) = (whole + u32::from(with_last), whole * self.down + if with_last { last } else { 0 });
            let cables = u64::from(leaves.min(self.leaves - leaves)) * u64::from(self.up);
            cables + u64::from(below.abs_diff(inside).min(below.abs_diff(all - inside)))
        };
        let rate = (0..self.leaves).flat_map(|whole| [of(whole, false), of(whole, true)]).min()?;
        Cut::best(all, [Cut { inside, rate: rate as f64 }])
    }

    /// Returns [`Halves::Least`] if every leaf has equally many cables to each switch above it, and every pod to each
    /// top switch.
    fn halves_are(&self) -> Halves {
        let pod = self.pod(0);
        if self.pods() == 1 {
            return Halves::least_if(pod.each.is_multiple_of(pod.targets));
        }
        // The cables of a middle switch lead to a row of top switches. The rows of two middle switches are equal or
        // disjoint, and each pod has equally many middle switches for each row.
        let Wiring { each, targets, .. } = self.top;
        let is_clos =
            each.is_multiple_of(targets) || targets.is_multiple_of(each) && pod.targets.is_multiple_of(targets / each);
        let is_full = self.leaves.is_multiple_of(self.pod_leaves) && pod.each.is_multiple_of(pod.targets);
        Halves::least_if(is_full && is_clos)
    }

    /// Returns a job space with leaves and, with three levels, pods as blocks.
    fn jobs(&self) -> Option<JobSpace> {
        let pod = (self.pods() > 1).then_some(self.down * self.pod_leaves);
        Some(JobSpace::of_blocks(self.accelerators, [self.down].into_iter().chain(pod).collect(), self.down))
    }

    /// Returns the names of a node. With two levels, the switches above the leaves are named `top`.
    fn node_name(&self, node: u32) -> NodeName {
        let (leaf, middle, top) = (self.leaf(0), self.middle(0), self.on_top(0));
        let above = if self.top.sources == 0 { "top" } else { "middle" };
        if node < leaf {
            NodeName::new("accelerator", &[node])
        } else if node < middle {
            NodeName::new("leaf", &[node - leaf])
        } else if node < top {
            NodeName::new(above, &[node - middle])
        } else {
            NodeName::new("top", &[node - top])
        }
    }

    /// Builds the plane. Up-ports come before down-ports.
    fn plane(&self) -> Result<Plane, MachineError> {
        let switches = self.leaves + self.middles() + self.top.targets;
        let cables = u64::from(self.accelerators)
            + u64::from(self.leaves) * u64::from(self.up)
            + u64::from(self.top.sources) * u64::from(self.top.each);
        let mut plane = PlaneBuilder::new(self.accelerators, switches, cables)?;
        for accelerator in 0..self.accelerators {
            let (leaf, port) = (accelerator / self.down, accelerator % self.down);
            plane.join((accelerator, 0), (self.leaf(leaf), self.up + port), Cable::Dac);
        }
        for pod in 0..self.pods() {
            let (spread, first) = (self.pod(pod), self.middle(pod * self.pod(0).targets));
            for leaf in 0..spread.sources {
                for i in 0..self.up {
                    let (above, port) = spread.end(leaf, i);
                    let below = self.leaf(pod * self.pod_leaves + leaf);
                    plane.join((below, i), (first + above, self.middle_up() + port), Cable::Aoc);
                }
            }
        }
        for middle in 0..self.top.sources {
            for i in 0..self.top.each {
                let (above, port) = self.top.end(middle, i);
                plane.join((self.middle(middle), i), (self.on_top(above), port), Cable::Aoc);
            }
        }
        plane.finish()
    }

    fn routing(&self) -> Box<dyn Routing> {
        Box::new(routing::UpDown::new(*self))
    }
}
