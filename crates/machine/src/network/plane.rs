//! One plane of a network: accelerators and switches, and the links between them.

use crate::MachineError;

/// What a link runs over, as far as price and place depend on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Cable {
    /// A trace of a board, or a way inside one switch: no cable to buy.
    Board,
    /// Passive copper.
    Dac,
    /// Active optical.
    Aoc,
}

/// One direction of a cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    pub from: u32,
    pub to: u32,
    /// The other direction.
    pub back: u32,
    pub cable: Cable,
}

/// Accelerators are the nodes `0..accelerators`, switches follow. Links are sorted by the node they leave, in the order of
/// its ports; several may join the same two nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plane {
    accelerators: u32,
    /// First link of each node, and one past the last.
    first: Vec<u32>,
    links: Vec<Link>,
}

impl Plane {
    pub fn accelerators(&self) -> u32 {
        self.accelerators
    }

    pub fn nodes(&self) -> u32 {
        self.first.len() as u32 - 1
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

    /// The links that leave a node: one a port.
    pub fn leaving(&self, node: u32) -> std::ops::Range<u32> {
        self.first[node as usize]..self.first[node as usize + 1]
    }

    /// The link that leaves a node by a port.
    ///
    /// # Panics
    /// The node has no such port: a fault of a routing.
    #[inline]
    pub fn port(&self, node: u32, port: u32) -> u32 {
        let link = self.first[node as usize] + port;
        debug_assert!(link < self.first[node as usize + 1], "node {node} has no port {port}");
        link
    }
}

/// Builds a plane cable by cable; the ports of a node are numbered in the order of its cables.
pub struct PlaneBuilder {
    accelerators: u32,
    nodes: u32,
    cables: Vec<(u32, u32, Cable)>,
}

/// Simulators number links in 30 bits.
const MOST_CABLES: usize = 1 << 29;

impl PlaneBuilder {
    pub fn new(accelerators: u32, switches: u32) -> Self {
        Self { accelerators, nodes: accelerators + switches, cables: Vec::new() }
    }

    pub fn cable(&mut self, a: u32, b: u32, cable: Cable) {
        debug_assert!(a < self.nodes && b < self.nodes && a != b, "cable {a}-{b} of {} nodes", self.nodes);
        self.cables.push((a, b, cable));
    }

    /// # Errors
    /// More cables than the tables hold.
    pub fn finish(self) -> Result<Plane, MachineError> {
        if self.cables.len() > MOST_CABLES {
            return Err(MachineError::TooManyCables { found: self.cables.len(), most: MOST_CABLES });
        }
        let mut first = vec![0_u32; self.nodes as usize + 1];
        for &(a, b, _) in &self.cables {
            first[a as usize + 1] += 1;
            first[b as usize + 1] += 1;
        }
        for n in 1..first.len() {
            first[n] += first[n - 1];
        }
        let mut next = first.clone();
        let none = Link { from: 0, to: 0, back: 0, cable: Cable::Board };
        let mut links = vec![none; 2 * self.cables.len()];
        for &(a, b, cable) in &self.cables {
            let (there, back) = (next[a as usize], next[b as usize]);
            next[a as usize] += 1;
            next[b as usize] += 1;
            links[there as usize] = Link { from: a, to: b, back, cable };
            links[back as usize] = Link { from: b, to: a, back: there, cable };
        }
        Ok(Plane { accelerators: self.accelerators, first, links })
    }
}
