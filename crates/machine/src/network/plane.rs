//! One plane of a network: accelerators and switches, and the links between them.
//!
//! A link has the machine's own rate and latency, `link_gbps` and `link_latency_ns`, or those of a [`Speed`] of its
//! plane.

use serde::Serialize;
use unisono_base::{interrupt::poll, limits, narrow};

use crate::MachineError;

/// The medium of a link, which determines its price.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Cable {
    /// A trace on a board, or a path inside a switch, which costs nothing.
    Board,
    /// Passive copper.
    Dac,
    /// Active optical.
    Aoc,
}

/// The rate and the latency of one direction of a cable.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Speed {
    pub gbps: f64,
    pub latency_ns: f64,
}

impl Speed {
    pub fn bytes_per_ns(self) -> f64 {
        self.gbps / 8.0
    }
}

/// One direction of a cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    pub from: u32,
    pub to: u32,
    /// The index of the link in the other direction.
    pub back: u32,
    pub cable: Cable,
    /// The index of the link's speed in [`Plane::speeds`]; 0 is the machine's own speed.
    pub speed: u8,
}

const _: () = assert!(size_of::<Link>() == 16);

/// A plane. Nodes `0..accelerators` are accelerators, all others switches. Links are sorted by the node that they
/// leave, in the order of its ports. Several links may join two nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct Plane {
    accelerators: u32,
    /// The index of each node's first link, and of the end of the last node's links.
    first: Vec<u32>,
    links: Vec<Link>,
    /// The node to which each link leads. It is stored apart from the other data of links, because paths read only
    /// this.
    ends: Vec<u32>,
    /// The distinct speeds; the first is `None`, the machine's own.
    speeds: Vec<Option<Speed>>,
}

impl Plane {
    pub fn accelerators(&self) -> u32 {
        self.accelerators
    }

    pub fn nodes(&self) -> u32 {
        narrow::<u32>(self.first.len()) - 1
    }

    pub fn switches(&self) -> u32 {
        self.nodes() - self.accelerators
    }

    pub fn links(&self) -> &[Link] {
        &self.links
    }

    pub fn link(&self, id: u32) -> Link {
        self.links[id as usize]
    }

    /// Returns the node to which a link leads.
    #[inline]
    pub fn end(&self, link: u32) -> u32 {
        self.ends[link as usize]
    }

    /// Returns the speeds of links, indexed by [`Link::speed`]. The first is `None`, the machine's own.
    pub fn speeds(&self) -> &[Option<Speed>] {
        &self.speeds
    }

    /// Returns whether all links have the machine's own speed.
    pub fn is_uniform(&self) -> bool {
        self.speeds.len() == 1
    }

    /// Returns the plane with the rate of each listed link multiplied by a factor, or `None` if it would have more than
    /// 255 speeds beside the machine's own. A routing that was built before the change keeps its paths.
    ///
    /// # Panics
    /// Panics if a link does not exist.
    pub fn slowed(mut self, own: Speed, shares: &[(u32, f64)]) -> Option<Self> {
        for &(link, share) in shares {
            let link = &mut self.links[link as usize];
            let whole = self.speeds[usize::from(link.speed)].unwrap_or(own);
            let speed = Some(Speed { gbps: whole.gbps * share, ..whole });
            let known = self.speeds.iter().position(|&known| known == speed);
            link.speed = u8::try_from(known.unwrap_or(self.speeds.len())).ok()?;
            if known.is_none() {
                self.speeds.push(speed);
            }
        }
        Some(self)
    }

    /// Returns the links that leave a node, one for each port.
    pub fn leaving(&self, node: u32) -> std::ops::Range<u32> {
        self.first[node as usize]..self.first[node as usize + 1]
    }

    pub fn links_between(&self, from: u32, to: u32) -> impl Iterator<Item = u32> + '_ {
        self.leaving(from).filter(move |&id| self.links[id as usize].to == to)
    }

    /// Returns the link at a port of a node.
    ///
    /// # Panics
    /// Panics in debug builds if the node has no such port, which is a fault of a routing.
    #[inline]
    pub fn port(&self, node: u32, port: u32) -> u32 {
        let link = self.first[node as usize] + port;
        debug_assert!(link < self.first[node as usize + 1], "node {node} has no port {port}");
        link
    }
}

/// Builds a plane cable by cable.
pub struct PlaneBuilder {
    accelerators: u32,
    /// The number of ports of each node in the cables added so far.
    ports: Vec<u32>,
    cables: Vec<([End; 2], Cable, u8)>,
    speeds: Vec<Option<Speed>>,
}

/// A node and one of its ports.
type End = (u32, u32);

/// The maximum number of cables, because simulators number links in 30 bits.
const MOST_CABLES: u64 = 1 << 29;
/// The bytes of a cable: while a plane is built, in the plane, and in a routing that stores the plane.
const CABLE_BYTES: u128 = 108;
/// The bytes of a node while a plane is built, and in the plane.
const NODE_BYTES: u128 = 32;

impl PlaneBuilder {
    /// Starts a plane to which `cables` cables will be added.
    ///
    /// # Errors
    /// Returns an error if there are more than `MOST_CABLES`, or more than the limit on memory admits.
    pub fn new(accelerators: u32, switches: u32, cables: u64) -> Result<Self, MachineError> {
        if cables > MOST_CABLES {
            return Err(MachineError::TooManyCables { found: cables, most: MOST_CABLES });
        }
        let nodes = u128::from(accelerators) + u128::from(switches);
        limits::admit(
            "the table of a plane's cables",
            CABLE_BYTES * u128::from(cables) + NODE_BYTES * nodes,
            32 * (u128::from(cables) + nodes),
        )?;
        let cables = Vec::with_capacity(narrow(cables));
        Ok(Self { accelerators, ports: vec![0; nodes as usize], cables, speeds: vec![None] })
    }

    /// Returns the index of a speed for [`PlaneBuilder::cable_at`], or `None` if the plane already has 255 other
    /// speeds.
    pub fn speed(&mut self, speed: Speed) -> Option<u8> {
        let known = self.speeds.iter().position(|&known| known == Some(speed));
        let index = u8::try_from(known.unwrap_or(self.speeds.len())).ok()?;
        if known.is_none() {
            self.speeds.push(Some(speed));
        }
        Some(index)
    }

    /// Joins the next ports of two nodes at the machine's own speed.
    pub fn cable(&mut self, a: u32, b: u32, cable: Cable) {
        self.cable_at(a, b, cable, 0);
    }

    /// Joins the next ports of two nodes at a speed from [`PlaneBuilder::speed`].
    pub fn cable_at(&mut self, a: u32, b: u32, cable: Cable, speed: u8) {
        self.add((a, self.ports[a as usize]), (b, self.ports[b as usize]), cable, speed);
    }

    /// Joins two ports that the caller numbers, so that a routing finds a link by arithmetic. The numbers of each
    /// node's ports must be 0 to the number of its cables minus 1.
    pub fn join(&mut self, a: (u32, u32), b: (u32, u32), cable: Cable) {
        self.add(a, b, cable, 0);
    }

    /// Joins two ports as [`PlaneBuilder::join`] does, at a speed from [`PlaneBuilder::speed`].
    pub fn join_at(&mut self, a: (u32, u32), b: (u32, u32), cable: Cable, speed: u8) {
        self.add(a, b, cable, speed);
    }

    fn add(&mut self, a: End, b: End, cable: Cable, speed: u8) {
        poll();
        for (node, port) in [a, b] {
            let ports = &mut self.ports[node as usize];
            *ports = (*ports).max(port + 1);
        }
        self.cables.push(([a, b], cable, speed));
    }

    /// # Errors
    /// Returns an error if there are more than `MOST_CABLES`.
    ///
    /// # Panics
    /// Panics if the port numbers of a node have a gap or repeat, which is a fault of a topology.
    pub fn finish(self) -> Result<Plane, MachineError> {
        let found = self.cables.len() as u64;
        if found > MOST_CABLES {
            return Err(MachineError::TooManyCables { found, most: MOST_CABLES });
        }
        let mut first = Vec::with_capacity(self.ports.len() + 1);
        let mut count = 0_u32;
        first.push(count);
        for ports in &self.ports {
            count += ports;
            first.push(count);
        }
        assert_eq!(count as usize, 2 * self.cables.len(), "a port has no cable, or two");
        const FREE: u32 = u32::MAX;
        let mut links = vec![Link { from: 0, to: 0, back: FREE, cable: Cable::Board, speed: 0 }; count as usize];
        for &([a, b], cable, speed) in &self.cables {
            poll();
            let [there, back] = [a, b].map(|(node, port)| first[node as usize] + port);
            let free = links[there as usize].back == FREE && links[back as usize].back == FREE && there != back;
            assert!(free, "a port of the cable {a:?} to {b:?} has another cable");
            links[there as usize] = Link { from: a.0, to: b.0, back, cable, speed };
            links[back as usize] = Link { from: b.0, to: a.0, back: there, cable, speed };
        }
        let ends = links.iter().map(|link| link.to).collect();
        Ok(Plane { accelerators: self.accelerators, first, links, ends, speeds: self.speeds })
    }
}
