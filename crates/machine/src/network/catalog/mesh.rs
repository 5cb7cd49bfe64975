//! A mesh of any number of dimensions: a torus without wraparound links.
//!
//! Source: Dally, Towles, "Principles and Practices of Interconnection Networks", section 5.1. Links on a board are
//! free, all others optical, as for the torus. Routing: dimension order, which needs one virtual channel.

use unisono_base::narrow;

use super::super::{
    Bill, Cable, Family, Header, Hop, NodeName, Plane, PlaneBuilder, Routing, Speed, Topology,
    allocate::JobSpace,
    cut::{Cut, Halves},
    lattice::{Coordinates, Lattice},
};
use crate::MachineError;

pub const FAMILY: Family = Family {
    name: "mesh",
    summary: "neighbors in every dimension, with ends; parts of a board are linked for nothing",
    reference: "Dally, Towles, 2004, section 5.1",
    keys: &["dims", "board"],
    jobs: Some("mesh of up to six dimensions"),
    read,
};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mesh(Lattice);

fn read(table: &toml::Table, origin: &str, _: Speed) -> Result<Box<dyn Topology>, MachineError> {
    Ok(Box::new(Mesh(Lattice::read(table, origin, 1)?)))
}

impl Topology for Mesh {
    fn name(&self) -> &'static str {
        FAMILY.name
    }

    fn accelerators(&self) -> u32 {
        self.0.count()
    }

    /// Returns the number of ports of an accelerator in the middle.
    fn ports(&self) -> u32 {
        2 * narrow::<u32>(self.0.dims.len())
    }

    fn bill(&self) -> Bill {
        let off_board = |dim: usize| u64::from(self.0.boards(dim) - 1) * self.0.lines(dim);
        Bill { aoc: (0..self.0.dims.len()).map(off_board).sum(), ..Bill::default() }
    }

    fn diameter(&self) -> u32 {
        self.0.dims.iter().map(|d| d - 1).sum()
    }

    fn halves(&self) -> Option<Cut> {
        Cut::best(self.accelerators(), [self.0.halves(1)])
    }

    fn halves_are(&self) -> Halves {
        Halves::Least
    }

    fn extents(&self) -> Vec<u32> {
        self.0.dims.clone()
    }

    fn jobs(&self) -> Option<JobSpace> {
        self.0.jobs(false)
    }

    fn node_name(&self, node: u32) -> NodeName {
        self.0.name("accelerator", node)
    }

    fn plane(&self) -> Result<Plane, MachineError> {
        let along = |dim: usize| u64::from(self.0.dims[dim] - 1) * self.0.lines(dim);
        let cables = (0..self.0.dims.len()).map(along).sum();
        let mut plane = PlaneBuilder::new(self.accelerators(), 0, cables)?;
        for node in 0..self.accelerators() {
            for dim in 0..self.0.dims.len() {
                let at = self.0.at(node, dim);
                if at + 1 < self.0.dims[dim] {
                    let cable = if self.0.on_board(at, dim) { Cable::Board } else { Cable::Aoc };
                    plane.cable(node, node + self.0.stride(dim), cable);
                }
            }
        }
        plane.finish()
    }

    fn routing(&self) -> Box<dyn Routing> {
        let plane = self.plane().expect("a plane that was built before");
        let dims = self.0.dims.len();
        let strides: Vec<u32> = (0..dims).map(|d| self.0.stride(d)).collect();
        let mut links = vec![[0; 2]; self.accelerators() as usize * dims];
        for (id, link) in (0_u32..).zip(plane.links()) {
            let stride = link.from.abs_diff(link.to);
            let dim = (0..dims).find(|&d| strides[d] == stride && self.0.dims[d] > 1).expect("a neighbor");
            links[link.from as usize * dims + dim][usize::from(link.to > link.from)] = id;
        }
        Box::new(DimensionOrder { coordinates: Coordinates::new(&self.0), dims, links })
    }
}

struct DimensionOrder {
    coordinates: Coordinates,
    dims: usize,
    /// The links of each accelerator to the smaller and the larger coordinate of each dimension.
    links: Vec<[u32; 2]>,
}

impl Routing for DimensionOrder {
    fn name(&self) -> &'static str {
        "dimension order"
    }

    fn virtual_channels(&self) -> u8 {
        1
    }

    fn hops(&self, at: u32, header: Header, hops: &mut Vec<Hop>) {
        let Some(dim) = self.coordinates.first_apart(at, header.to) else { return };
        let up = self.coordinates.of(header.to)[dim] > self.coordinates.of(at)[dim];
        hops.push(Hop { link: self.links[at as usize * self.dims + dim][usize::from(up)], vc: 0 });
    }
}
