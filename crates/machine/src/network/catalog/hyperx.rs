//! HyperX: switches at the points of a grid, each linked with all other switches of its line in every dimension.
//!
//! Source: Ahn, Binkert, Davis, McLaren, Schreiber, "HyperX: Topology, Routing, and Packaging of Efficient Large-Scale
//! Networks", SC 2009: L dimensions of S_k switches, K_k cables between two switches of a line, T accelerators for each
//! switch. Routing: minimal adaptive. Every hop corrects one of the coordinates that differ from the destination's. The
//! virtual channel is the number of equal coordinates, so it rises on the path. (The 2D HyperX of "HammingMesh", Table
//! 2, is priced as boards of 1x1: family hxmesh.)

use serde::Deserialize;
use unisono_base::narrow;

use super::super::{
    Bill, Cable, Family, Header, Hop, NodeName, Plane, PlaneBuilder, Routing, Speed, Topology,
    allocate::{JobSpace, Rule},
    cut::{Cut, Halves},
    lattice::{self, Coordinates, Lattice},
    topology,
};
use crate::MachineError;

pub const FAMILY: Family = Family {
    name: "hyperx",
    summary: "switches linked with all others of their line in every dimension",
    reference: "Ahn et al., HyperX, SC 2009",
    keys: &["dims", "terminals", "cables", "terminal_gbps"],
    jobs: Some("hyperx of two dimensions"),
    read,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    /// The number of switches along each dimension.
    dims: Vec<u32>,
    #[serde(default = "one")]
    terminals: u32,
    /// The number of cables between two switches of a line, for each dimension; 1 by default.
    #[serde(default)]
    cables: Vec<u32>,
    /// The rate of an accelerator's cable; by default that of cables between switches.
    #[serde(default)]
    terminal_gbps: Option<f64>,
}

fn one() -> u32 {
    1
}

#[derive(Clone, PartialEq, Debug)]
pub struct HyperX {
    switches: Lattice,
    terminals: u32,
    cables: Vec<u32>,
    /// The speed of accelerators' cables, and that of cables between switches.
    speeds: [Speed; 2],
}

fn read(table: &toml::Table, origin: &str, own: Speed) -> Result<Box<dyn Topology>, MachineError> {
    let Keys { dims, terminals, mut cables, terminal_gbps } = topology::parse(table, origin)?;
    let most = usize::from(u8::MAX);
    if dims.is_empty() || dims.len() > most || dims.iter().any(|&d| d < 2) {
        let found = lattice::listed(&dims);
        let message = format!("dims is {found}; accepted are 1 to {most} extents, each at least 2");
        return Err(topology::refused(origin, message));
    }
    topology::accelerators(&[&dims[..], &[terminals]].concat(), origin)?;
    if cables.is_empty() {
        cables = vec![1; dims.len()];
    }
    if cables.len() != dims.len() || cables.iter().any(|k| !(1..=64).contains(k)) {
        let message = format!(
            "cables is {}; accepted is a number of 1 to 64 for each extent of dims, {dims:?}",
            lattice::listed(&cables)
        );
        return Err(topology::refused(origin, message));
    }
    let of_terminals = Speed { gbps: terminal_gbps.unwrap_or(own.gbps), ..own };
    if !(1e-9..=1e15).contains(&of_terminals.gbps) {
        let message = format!("terminal_gbps is {:?}; accepted is 1e-9 to 1e15", of_terminals.gbps);
        return Err(topology::refused(origin, message));
    }
    let switches = Lattice::of(dims);
    Ok(Box::new(HyperX { switches, terminals, cables, speeds: [of_terminals, own] }))
}

impl HyperX {
    /// Returns the first port of a dimension; for the number of dimensions, the number of ports. Ports to accelerators
    /// come first.
    fn base(&self, dim: usize) -> u32 {
        self.terminals + (0..dim).map(|d| self.cables[d] * (self.switches.dims[d] - 1)).sum::<u32>()
    }

    /// Returns the rate of an accelerator's cable, divided by that of a cable between switches.
    fn terminal_rate(&self) -> f64 {
        self.speeds[0].gbps / self.speeds[1].gbps
    }

    /// Returns the first port of the switch at coordinate `at` of a line to the switch at `other`. Ports are in the
    /// order of switches, with parallel cables adjacent.
    fn port(&self, dim: usize, at: u32, other: u32) -> u32 {
        let rank = if other < at { other } else { other - 1 };
        self.base(dim) + rank * self.cables[dim]
    }
}

impl Topology for HyperX {
    fn name(&self) -> &'static str {
        FAMILY.name
    }

    fn accelerators(&self) -> u32 {
        self.switches.count() * self.terminals
    }

    fn ports(&self) -> u32 {
        1
    }

    fn injection(&self) -> [f64; 2] {
        [self.terminal_rate(); 2]
    }

    fn unlike(&self) -> Vec<(Speed, u64)> {
        let [of_terminals, own] = self.speeds;
        if of_terminals == own { Vec::new() } else { vec![(of_terminals, u64::from(self.accelerators()))] }
    }

    fn bill(&self) -> Bill {
        let pairs = |dim: usize| {
            let d = u64::from(self.switches.dims[dim]);
            d * (d - 1) / 2 * u64::from(self.cables[dim]) * self.switches.lines(dim)
        };
        let dims = self.switches.dims.len();
        Bill {
            switches: u64::from(self.switches.count()),
            dac: u64::from(self.accelerators()),
            aoc: (0..dims).map(pairs).sum(),
            switch_ports: self.base(dims),
            ..Bill::default()
        }
    }

    fn diameter(&self) -> u32 {
        narrow::<u32>(self.switches.dims.len()) + 2
    }

    /// Returns the best of these cuts: through the middle of a dimension, which crosses K S^2/4 cables of each line of
    /// S switches; or through the cables of half of the accelerators.
    fn halves(&self) -> Option<Cut> {
        let all = self.accelerators();
        let along = |(&s, &k): (&u32, &u32)| {
            let (half, lines) = (s / 2, self.switches.count() / s);
            Cut { inside: half * lines * self.terminals, rate: f64::from(k * half * (s - half) * lines) }
        };
        let cables = Cut { inside: all / 2, rate: f64::from(all / 2) * self.terminal_rate() };
        Cut::best(all, self.switches.dims.iter().zip(&self.cables).map(along).chain([cables]))
    }

    /// Returns [`Halves::Least`] if all extents are even. An odd extent has no middle between two layers of switches,
    /// and a cut through its middle layer may be narrower.
    fn halves_are(&self) -> Halves {
        Halves::least_if(self.switches.dims.iter().all(|extent| extent.is_multiple_of(2)))
    }

    fn extents(&self) -> Vec<u32> {
        let mut extents = self.switches.dims.clone();
        extents.extend((self.terminals > 1).then_some(self.terminals));
        extents
    }

    /// Returns a job space if there are two dimensions. A board is a switch with its accelerators, and lines of boards
    /// have no upper level of switches.
    fn jobs(&self) -> Option<JobSpace> {
        let count = self.switches.dims.clone();
        (count.len() == 2).then(|| JobSpace {
            leaf: count.clone(),
            board: vec![1, self.terminals],
            count,
            rule: Rule::Crossings,
        })
    }

    fn node_name(&self, node: u32) -> NodeName {
        match node.checked_sub(self.accelerators()) {
            None => NodeName::new("accelerator", &[node]),
            Some(switch) => self.switches.name("switch", switch),
        }
    }

    fn plane(&self) -> Result<Plane, MachineError> {
        let accelerators = self.accelerators();
        let cables = self.bill();
        let mut plane = PlaneBuilder::new(accelerators, self.switches.count(), cables.dac + cables.aoc)?;
        let speed = if self.unlike().is_empty() { None } else { plane.speed(self.speeds[0]) };
        for accelerator in 0..accelerators {
            let switch = accelerators + accelerator / self.terminals;
            let port = accelerator % self.terminals;
            plane.join_at((accelerator, 0), (switch, port), Cable::Dac, speed.unwrap_or(0));
        }
        for dim in 0..self.switches.dims.len() {
            for switch in 0..self.switches.count() {
                let at = self.switches.at(switch, dim);
                for other in at + 1..self.switches.dims[dim] {
                    let to = switch + (other - at) * self.switches.stride(dim);
                    let (there, back) = (self.port(dim, at, other), self.port(dim, other, at));
                    for k in 0..self.cables[dim] {
                        plane.join((accelerators + switch, there + k), (accelerators + to, back + k), Cable::Aoc);
                    }
                }
            }
        }
        plane.finish()
    }

    fn routing(&self) -> Box<dyn Routing> {
        let dims = self.switches.dims.len();
        Box::new(MinimalAdaptive {
            accelerators: self.accelerators(),
            terminals: self.terminals,
            home: (0..self.accelerators()).map(|n| n / self.terminals).collect(),
            coordinates: Coordinates::new(&self.switches),
            bases: (0..dims).map(|dim| self.base(dim)).collect(),
            cables: self.cables.clone(),
            ports: self.base(dims),
        })
    }
}

struct MinimalAdaptive {
    accelerators: u32,
    terminals: u32,
    home: Vec<u32>,
    coordinates: Coordinates,
    /// The first port of each dimension.
    bases: Vec<u32>,
    cables: Vec<u32>,
    ports: u32,
}

impl Routing for MinimalAdaptive {
    fn name(&self) -> &'static str {
        "minimal adaptive"
    }

    fn virtual_channels(&self) -> u8 {
        narrow(self.bases.len())
    }

    fn hops(&self, at: u32, header: Header, hops: &mut Vec<Hop>) {
        // An accelerator has one link, with the accelerator's number.
        if at < self.accelerators {
            hops.push(Hop { link: at, vc: 0 });
            return;
        }
        let (switch, home) = (at - self.accelerators, self.home[header.to as usize]);
        let first = self.accelerators + switch * self.ports;
        if switch == home {
            hops.push(Hop { link: first + (header.to - home * self.terminals), vc: 0 });
            return;
        }
        let (here, there) = (self.coordinates.of(switch), self.coordinates.of(home));
        let vc = narrow(here.iter().zip(there).filter(|(a, b)| a == b).count());
        for (dim, (&here, &there)) in here.iter().zip(there).enumerate().filter(|(_, (a, b))| a != b) {
            let rank = if there < here { there } else { there - 1 };
            let link = first + self.bases[dim] + rank * self.cables[dim];
            hops.extend((0..self.cables[dim]).map(|k| Hop { link: link + k, vc }));
        }
    }
}
