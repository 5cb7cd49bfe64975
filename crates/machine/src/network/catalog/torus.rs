//! A torus of any number of dimensions: each accelerator is linked with its two neighbors of every dimension.
//!
//! Source: "HammingMesh", sections 2 and 4 (2D torus of 2x2 boards: links on a board are free, all others optical).
//! Routing: dimension order, the shorter way round; a packet that has passed the wrap of a dimension is on the second virtual
//! channel until it turns (Dally, Seitz, 1987).

use serde::Deserialize;

use super::super::{Bill, Cable, Family, Header, Hop, Plane, PlaneBuilder, Routing, Topology};
use crate::MachineError;

pub const FAMILY: Family = Family {
    name: "torus",
    summary: "neighbors in every dimension, around; parts of a board are linked for nothing",
    reference: "HammingMesh, section 2; Dally, Seitz, 1987",
    keys: &["dims", "board"],
    read,
};

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Torus {
    /// Accelerators a dimension, each at least 3, so that the two neighbors differ.
    dims: Vec<u32>,
    /// Accelerators of a board a dimension; 1 where it says nothing.
    #[serde(default)]
    board: Vec<u32>,
}

fn read(table: &toml::Table, origin: &str) -> Result<Box<dyn Topology>, MachineError> {
    let torus: Torus = table.clone().try_into().map_err(|e: toml::de::Error| MachineError::Toml {
        origin: origin.to_owned(),
        message: e.message().to_owned(),
    })?;
    let wrong = |key, found: String, accepted| MachineError::Value { origin: origin.to_owned(), key, found, accepted };
    if torus.dims.is_empty() || torus.dims.iter().any(|&d| d < 3) {
        return Err(wrong("dims", format!("{:?}", torus.dims), "one extent or more, each at least 3"));
    }
    let closes = |(n, b): (&u32, &u32)| *b > 0 && n % b == 0;
    if !torus.board.is_empty()
        && (torus.board.len() != torus.dims.len() || !torus.dims.iter().zip(&torus.board).all(closes))
    {
        return Err(wrong("board", format!("{:?}", torus.board), "one divisor of each extent of dims"));
    }
    Ok(Box::new(torus))
}

impl Torus {
    fn stride(&self, dim: usize) -> u32 {
        self.dims[dim + 1..].iter().product()
    }

    fn at(&self, node: u32, dim: usize) -> u32 {
        node / self.stride(dim) % self.dims[dim]
    }

    fn on_board(&self, coordinate: u32, dim: usize) -> bool {
        let board = self.board.get(dim).copied().unwrap_or(1);
        !(coordinate + 1).is_multiple_of(board)
    }
}

impl Topology for Torus {
    fn name(&self) -> &'static str {
        FAMILY.name
    }

    fn accelerators(&self) -> u32 {
        self.dims.iter().product()
    }

    fn ports(&self) -> u32 {
        2 * self.dims.len() as u32
    }

    fn bill(&self) -> Bill {
        let off_board = |dim: usize| {
            let cut = (0..self.dims[dim]).filter(|&c| !self.on_board(c, dim)).count() as u64;
            cut * u64::from(self.accelerators() / self.dims[dim])
        };
        Bill { aoc: (0..self.dims.len()).map(off_board).sum(), ..Bill::default() }
    }

    fn diameter(&self) -> u32 {
        self.dims.iter().map(|d| d / 2).sum()
    }

    /// Half of the longest dimension is cut twice: 2 N/d links (of each direction) for the injection of N/2 accelerators.
    fn bisection_share(&self) -> f64 {
        let longest = self.dims.iter().copied().max().unwrap_or(1);
        4.0 / (f64::from(longest) * f64::from(self.ports()))
    }

    fn extents(&self) -> Vec<u32> {
        self.dims.clone()
    }

    fn plane(&self) -> Result<Plane, MachineError> {
        let mut plane = PlaneBuilder::new(self.accelerators(), 0);
        for dim in 0..self.dims.len() {
            for node in 0..self.accelerators() {
                let (at, stride) = (self.at(node, dim), self.stride(dim));
                let next = node - at * stride + (at + 1) % self.dims[dim] * stride;
                let cable = if self.on_board(at, dim) { Cable::Board } else { Cable::Aoc };
                plane.cable(node, next, cable);
            }
        }
        plane.finish()
    }

    fn routing(&self) -> Box<dyn Routing> {
        Box::new(DimensionOrder { torus: self.clone(), plane: self.plane().expect("a plane that was built before") })
    }
}

struct DimensionOrder {
    torus: Torus,
    plane: Plane,
}

impl Routing for DimensionOrder {
    fn name(&self) -> &'static str {
        "dimension order"
    }

    fn virtual_channels(&self) -> u8 {
        2
    }

    fn hops(&self, at: u32, header: Header, hops: &mut Vec<Hop>) {
        let dims = &self.torus.dims;
        let differs = |&dim: &usize| self.torus.at(at, dim) != self.torus.at(header.to, dim);
        let Some(dim) = (0..dims.len()).find(differs) else { return };
        let (here, there, n) = (self.torus.at(at, dim), self.torus.at(header.to, dim), dims[dim]);
        let up = (there + n - here) % n;
        let (next, wraps) = if 2 * up <= n { ((here + 1) % n, here + 1 == n) } else { ((here + n - 1) % n, here == 0) };
        let stride = self.torus.stride(dim);
        let to = at - here * stride + next * stride;
        // The wrap lies ahead on the first channel, behind on the second; a packet without a wrap ahead takes the second.
        let ahead = if 2 * up <= n { there < here } else { there > here };
        let vc = u8::from(!ahead || wraps);
        let link = self.plane.leaving(at).find(|&l| self.plane.link(l).to == to).expect("a neighbor");
        hops.push(Hop { link, vc });
    }
}
