//! A torus of any number of dimensions: each accelerator is linked with its two neighbors of every dimension.
//!
//! Source: "HammingMesh", sections 2 and 4 (2D torus of 2x2 boards: links on a board are free, all others optical).
//! Routing: dimension order, in the shorter direction; in both directions at half the extent. A packet that has yet to
//! take the wraparound link of its dimension is on the first virtual channel, all others on the second (Dally, Seitz,
//! 1987).

use unisono_base::narrow;

use super::super::{
    Bill, Boards, Cable, Family, Header, Hop, NodeName, Plane, PlaneBuilder, Routing, Speed, Topology,
    allocate::JobSpace,
    cut::{Cut, Halves},
    lattice::{Coordinates, Lattice},
};
use crate::MachineError;

pub const FAMILY: Family = Family {
    name: "torus",
    summary: "neighbors in every dimension, around; parts of a board are linked for nothing",
    reference: "HammingMesh, section 2; Dally, Seitz, 1987",
    keys: &["dims", "board"],
    jobs: Some("torus of up to six dimensions"),
    read,
};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Torus(Lattice);

fn read(table: &toml::Table, origin: &str, _: Speed) -> Result<Box<dyn Topology>, MachineError> {
    // With extents of at least 3, the two neighbors differ.
    Ok(Box::new(Torus(Lattice::read(table, origin, 3)?)))
}

impl Topology for Torus {
    fn name(&self) -> &'static str {
        FAMILY.name
    }

    fn accelerators(&self) -> u32 {
        self.0.count()
    }

    fn ports(&self) -> u32 {
        2 * narrow::<u32>(self.0.dims.len())
    }

    fn bill(&self) -> Bill {
        let off_board = |dim: usize| u64::from(self.0.boards(dim)) * self.0.lines(dim);
        Bill { aoc: (0..self.0.dims.len()).map(off_board).sum(), ..Bill::default() }
    }

    fn diameter(&self) -> u32 {
        self.0.dims.iter().map(|d| d / 2).sum()
    }

    /// Returns the least cut of the array of nodes, which crosses two links of each ring that it divides.
    fn halves(&self) -> Option<Cut> {
        Cut::best(self.accelerators(), [self.0.halves(2)])
    }

    fn halves_are(&self) -> Halves {
        Halves::Least
    }

    fn extents(&self) -> Vec<u32> {
        self.0.dims.clone()
    }

    fn node_name(&self, node: u32) -> NodeName {
        self.0.name("accelerator", node)
    }

    fn boards(&self) -> Option<Boards> {
        if self.0.dims.len() != 2 {
            return None;
        }
        let count = [0, 1].map(|dim| self.0.boards(dim));
        Some(Boards { count, board: [0, 1].map(|dim| self.0.dims[dim] / count[dim]) })
    }

    fn jobs(&self) -> Option<JobSpace> {
        self.0.jobs(true)
    }

    /// Builds the plane. Ports 2d and 2d + 1 lead to the smaller and the larger coordinate of dimension d.
    fn plane(&self) -> Result<Plane, MachineError> {
        let mut plane =
            PlaneBuilder::new(self.accelerators(), 0, self.0.dims.len() as u64 * u64::from(self.accelerators()))?;
        for (dim, &extent) in self.0.dims.iter().enumerate() {
            let (stride, port) = (self.0.stride(dim), 2 * narrow::<u32>(dim));
            for node in 0..self.accelerators() {
                let at = self.0.at(node, dim);
                let next = node - at * stride + (at + 1) % extent * stride;
                let cable = if self.0.on_board(at, dim) { Cable::Board } else { Cable::Aoc };
                plane.join((node, port + 1), (next, port), cable);
            }
        }
        plane.finish()
    }

    fn routing(&self) -> Box<dyn Routing> {
        Box::new(DimensionOrder { dims: self.0.dims.clone(), coordinates: Coordinates::new(&self.0) })
    }
}

struct DimensionOrder {
    dims: Vec<u32>,
    coordinates: Coordinates,
}

impl Routing for DimensionOrder {
    fn name(&self) -> &'static str {
        "dimension order"
    }

    fn virtual_channels(&self) -> u8 {
        2
    }

    fn hops(&self, at: u32, header: Header, hops: &mut Vec<Hop>) {
        let Some(dim) = self.coordinates.first_apart(at, header.to) else { return };
        let (here, there) = (self.coordinates.of(at)[dim], self.coordinates.of(header.to)[dim]);
        let n = self.dims[dim];
        let up = if there > here { there - here } else { there + n - here };
        let link = (at * narrow::<u32>(self.dims.len()) + narrow::<u32>(dim)) * 2;
        // The wraparound link is on the remaining path until the packet takes it.
        if 2 * up >= n {
            hops.push(Hop { link, vc: u8::from(there < here || here == 0) });
        }
        if 2 * up <= n {
            hops.push(Hop { link: link + 1, vc: u8::from(there > here || here + 1 == n) });
        }
    }
}
