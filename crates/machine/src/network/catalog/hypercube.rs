//! A hypercube: accelerators whose numbers differ in one bit are linked.
//!
//! Source: Dally, Towles, "Principles and Practices of Interconnection Networks", section 5.1 (the 2-ary n-mesh). Links
//! of the lowest bits may be on a board, where they are free; all other links are optical. Routing: dimension order
//! (e-cube), which needs one virtual channel.

use serde::Deserialize;

use super::super::{
    Bill, Cable, Family, Header, Hop, Plane, PlaneBuilder, Routing, Speed, Topology,
    cut::{Cut, Halves},
    topology,
};
use crate::MachineError;

pub const FAMILY: Family = Family {
    name: "hypercube",
    summary: "a link for every bit in which two numbers differ",
    reference: "Dally, Towles, 2004, section 5.1",
    keys: &["dimensions", "board_dimensions"],
    jobs: None,
    read,
};

/// The largest number of dimensions: no topology may have more than 2^24 accelerators.
const MOST_DIMENSIONS: u32 = 24;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hypercube {
    dimensions: u32,
    /// The number of dimensions, of the lowest bits, on a board.
    #[serde(default)]
    board_dimensions: u32,
}

fn read(table: &toml::Table, origin: &str, _: Speed) -> Result<Box<dyn Topology>, MachineError> {
    let cube: Hypercube = topology::parse(table, origin)?;
    let Hypercube { dimensions, board_dimensions } = cube;
    if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
        let message = format!("dimensions is {dimensions}; accepted are 1 to {MOST_DIMENSIONS}");
        return Err(topology::refused(origin, message));
    }
    if board_dimensions > dimensions {
        let message = format!("board_dimensions is {board_dimensions}; accepted are 0 to dimensions, {dimensions}");
        return Err(topology::refused(origin, message));
    }
    Ok(Box::new(cube))
}

impl Topology for Hypercube {
    fn name(&self) -> &'static str {
        FAMILY.name
    }

    fn accelerators(&self) -> u32 {
        1 << self.dimensions
    }

    fn ports(&self) -> u32 {
        self.dimensions
    }

    fn bill(&self) -> Bill {
        let half = u64::from(self.accelerators() / 2);
        Bill { aoc: u64::from(self.dimensions - self.board_dimensions) * half, ..Bill::default() }
    }

    fn diameter(&self) -> u32 {
        self.dimensions
    }

    fn halves(&self) -> Option<Cut> {
        let half = self.accelerators() / 2;
        Cut::best(self.accelerators(), [Cut { inside: half, rate: half.into() }])
    }

    fn halves_are(&self) -> Halves {
        Halves::Least
    }

    fn extents(&self) -> Vec<u32> {
        vec![2; self.dimensions as usize]
    }

    /// Builds the plane. Port b leads to the node whose number differs in bit b.
    fn plane(&self) -> Result<Plane, MachineError> {
        let cables = u64::from(self.dimensions) * u64::from(self.accelerators() / 2);
        let mut plane = PlaneBuilder::new(self.accelerators(), 0, cables)?;
        for bit in 0..self.dimensions {
            let cable = if bit < self.board_dimensions { Cable::Board } else { Cable::Aoc };
            for node in (0..self.accelerators()).filter(|node| node >> bit & 1 == 0) {
                plane.join((node, bit), (node | 1 << bit, bit), cable);
            }
        }
        plane.finish()
    }

    fn routing(&self) -> Box<dyn Routing> {
        Box::new(DimensionOrder { dimensions: self.dimensions })
    }
}

struct DimensionOrder {
    dimensions: u32,
}

impl Routing for DimensionOrder {
    fn name(&self) -> &'static str {
        "dimension order"
    }

    fn virtual_channels(&self) -> u8 {
        1
    }

    fn hops(&self, at: u32, header: Header, hops: &mut Vec<Hop>) {
        hops.push(Hop { link: at * self.dimensions + (at ^ header.to).trailing_zeros(), vc: 0 });
    }
}
