//! A mesh of any number of dimensions: a torus without wraparound links.
//!
//! Source: Dally, Towles, "Principles and Practices of Interconnection Networks", section 5.1. Links on a board are
//! free, all others optical, as for the torus. Routing: dimension order, which needs one virtual channel.

use super::super::{
    Cable, Family, Header, Hop, Plane, PlaneBuilder, Routing, Speed, Topology,
    lattice::{Coordinates, Lattice, LatticeNetwork},
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

fn read(table: &toml::Table, origin: &str, _: Speed) -> Result<Box<dyn Topology>, MachineError> {
    let lattice = Lattice::read(table, origin, 1)?;
    Ok(Box::new(LatticeNetwork { family: FAMILY.name, lattice, wraps: false, plane, routing }))
}

fn plane(lattice: &Lattice) -> Result<Plane, MachineError> {
    let along = |dim: usize| u64::from(lattice.dims[dim] - 1) * lattice.lines(dim);
    let cables = (0..lattice.dims.len()).map(along).sum();
    let mut plane = PlaneBuilder::new(lattice.count(), 0, cables)?;
    for node in 0..lattice.count() {
        for dim in 0..lattice.dims.len() {
            let at = lattice.at(node, dim);
            if at + 1 < lattice.dims[dim] {
                let cable = if lattice.on_board(at, dim) { Cable::Board } else { Cable::Aoc };
                plane.cable(node, node + lattice.stride(dim), cable);
            }
        }
    }
    plane.finish()
}

fn routing(lattice: &Lattice) -> Box<dyn Routing> {
    let plane = plane(lattice).expect("a plane that was built before");
    let dims = lattice.dims.len();
    let strides: Vec<u32> = (0..dims).map(|d| lattice.stride(d)).collect();
    let mut links = vec![[0; 2]; lattice.count() as usize * dims];
    for (id, link) in (0_u32..).zip(plane.links()) {
        let stride = link.from.abs_diff(link.to);
        let dim = (0..dims).find(|&d| strides[d] == stride && lattice.dims[d] > 1).expect("a neighbor");
        links[link.from as usize * dims + dim][usize::from(link.to > link.from)] = id;
    }
    Box::new(DimensionOrder { coordinates: Coordinates::new(lattice), dims, links })
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
