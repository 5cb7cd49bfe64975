//! A torus of any number of dimensions: each accelerator is linked with its two neighbors of every dimension.
//!
//! Source: "HammingMesh", sections 2 and 4 (2D torus of 2x2 boards: links on a board are free, all others optical).
//! Routing: dimension order, the shorter way round, either one halfway. A packet with the wrap of its dimension ahead is on
//! the first virtual channel, all others on the second (Dally, Seitz, 1987).

use serde::Deserialize;

use super::super::{Bill, Cable, Family, Header, Hop, Plane, PlaneBuilder, Routing, Topology, topology};
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
    let torus: Torus = topology::parse(table, origin)?;
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
    topology::accelerators(&torus.dims, origin)?;
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
            let boards = self.dims[dim] / self.board.get(dim).copied().unwrap_or(1);
            u64::from(boards) * u64::from(self.accelerators() / self.dims[dim])
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

    /// Ports 2d and 2d + 1 lead to the smaller and the larger coordinate of dimension d.
    fn plane(&self) -> Result<Plane, MachineError> {
        let mut plane = PlaneBuilder::new(self.accelerators(), 0);
        for dim in 0..self.dims.len() {
            for node in 0..self.accelerators() {
                let (at, stride) = (self.at(node, dim), self.stride(dim));
                let next = node - at * stride + (at + 1) % self.dims[dim] * stride;
                let cable = if self.on_board(at, dim) { Cable::Board } else { Cable::Aoc };
                let port = 2 * dim as u32;
                plane.join((node, port + 1), (next, port), cable);
            }
        }
        plane.finish()
    }

    fn routing(&self) -> Box<dyn Routing> {
        let dims = self.dims.len();
        let coordinates = (0..self.accelerators()).flat_map(|n| (0..dims).map(move |d| self.at(n, d))).collect();
        Box::new(DimensionOrder { dims: self.dims.clone(), coordinates })
    }
}

struct DimensionOrder {
    dims: Vec<u32>,
    /// Of each accelerator, one after the other.
    coordinates: Vec<u32>,
}

impl Routing for DimensionOrder {
    fn name(&self) -> &'static str {
        "dimension order"
    }

    fn virtual_channels(&self) -> u8 {
        2
    }

    fn hops(&self, at: u32, header: Header, hops: &mut Vec<Hop>) {
        let dims = self.dims.len();
        let of = |node: u32| &self.coordinates[node as usize * dims..][..dims];
        let (here, there) = (of(at), of(header.to));
        let Some(dim) = (0..dims).find(|&dim| here[dim] != there[dim]) else { return };
        let (here, there, n) = (here[dim], there[dim], self.dims[dim]);
        let up = if there > here { there - here } else { there + n - here };
        let link = (at * dims as u32 + dim as u32) * 2;
        // The wrap of a way lies ahead until it is taken.
        if 2 * up >= n {
            hops.push(Hop { link, vc: u8::from(there < here || here == 0) });
        }
        if 2 * up <= n {
            hops.push(Hop { link: link + 1, vc: u8::from(there > here || here + 1 == n) });
        }
    }
}
