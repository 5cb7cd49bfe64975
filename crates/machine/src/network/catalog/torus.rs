//! A torus of any number of dimensions: each accelerator is linked with its two neighbors of every dimension.
//!
//! Source: "HammingMesh", sections 2 and 4 (2D torus of 2x2 boards: links on a board are free, all others optical).
//! Routing: dimension order, in the shorter direction; in both directions at half the extent. A packet that has not yet
//! taken the wraparound link of its dimension is on the first virtual channel, all other packets on the second (Dally,
//! Seitz, 1987).

use unisono_base::narrow;

use super::super::{
    Cable, Family, Header, Hop, Plane, PlaneBuilder, Routing, Speed, Topology,
    lattice::{Coordinates, Lattice, LatticeNetwork},
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

fn read(table: &toml::Table, origin: &str, _: Speed) -> Result<Box<dyn Topology>, MachineError> {
    // With extents of at least 3, the two neighbors differ.
    let lattice = Lattice::read(table, origin, 3)?;
    Ok(Box::new(LatticeNetwork { family: FAMILY.name, lattice, wraps: true, plane, routing }))
}

/// Builds the plane. Ports 2d and 2d + 1 lead to the smaller and the larger coordinate of dimension d.
fn plane(lattice: &Lattice) -> Result<Plane, MachineError> {
    let mut plane = PlaneBuilder::new(lattice.count(), 0, lattice.dims.len() as u64 * u64::from(lattice.count()))?;
    for (dim, &extent) in lattice.dims.iter().enumerate() {
        let (stride, port) = (lattice.stride(dim), 2 * narrow::<u32>(dim));
        for node in 0..lattice.count() {
            let at = lattice.at(node, dim);
            let next = node - at * stride + (at + 1) % extent * stride;
            let cable = if lattice.on_board(at, dim) { Cable::Board } else { Cable::Aoc };
            plane.join((node, port + 1), (next, port), cable);
        }
    }
    plane.finish()
}

fn routing(lattice: &Lattice) -> Box<dyn Routing> {
    let strides = (0..lattice.dims.len()).map(|dim| lattice.stride(dim)).collect();
    Box::new(DimensionOrder { dims: lattice.dims.clone(), strides, coordinates: Coordinates::new(lattice) })
}

struct DimensionOrder {
    dims: Vec<u32>,
    strides: Vec<u32>,
    coordinates: Coordinates,
}

impl Routing for DimensionOrder {
    fn name(&self) -> &'static str {
        "dimension order"
    }

    fn virtual_channels(&self) -> u8 {
        2
    }

    fn only_way(&self, mut at: u32, header: Header, links: &mut Vec<u32>) -> Option<(u32, u8)> {
        let (here, there) = (self.coordinates.of(at), self.coordinates.of(header.to));
        let (ports, mut vc) = (2 * narrow::<u32>(self.dims.len()), header.vc);
        for (dim, (&n, &stride)) in self.dims.iter().zip(&self.strides).enumerate() {
            let (here, there) = (here[dim], there[dim]);
            let up = if there >= here { there - here } else { there + n - here };
            if up == 0 {
                continue;
            }
            if 2 * up == n {
                break;
            }
            let goes_up = 2 * up < n;
            // The direction of the path, the last coordinate before the wraparound link, and the coordinate after it.
            let (step, last, beyond) = if goes_up { (1, n - 1, 0) } else { (-1, 0, n - 1) };
            let mut coordinate = here;
            while coordinate != there {
                links.push(at * ports + 2 * narrow::<u32>(dim) + u32::from(goes_up));
                let next = if coordinate == last { beyond } else { coordinate.wrapping_add_signed(step) };
                at = at - coordinate * stride + next * stride;
                coordinate = next;
            }
            // The path in this dimension has passed its wraparound link or has none, so it ends on the second channel.
            vc = 1;
        }
        Some((at, vc))
    }

    fn hops(&self, at: u32, header: Header, hops: &mut Vec<Hop>) {
        let Some(dim) = self.coordinates.first_apart(at, header.to) else { return };
        let (here, there) = (self.coordinates.of(at)[dim], self.coordinates.of(header.to)[dim]);
        let n = self.dims[dim];
        let up = if there > here { there - here } else { there + n - here };
        let link = (at * narrow::<u32>(self.dims.len()) + narrow::<u32>(dim)) * 2;
        // The packet is on the first channel while its remaining path contains the wraparound link.
        if 2 * up >= n {
            hops.push(Hop { link, vc: u8::from(there < here || here == 0) });
        }
        if 2 * up <= n {
            hops.push(Hop { link: link + 1, vc: u8::from(there > here || here + 1 == n) });
        }
    }
}
