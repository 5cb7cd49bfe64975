//! Lower bounds on wafers.

mod blocks;
mod lemma_7_2;
mod message;
pub mod paper_1d;
mod physical;
mod tight_1d;

use unisono_base::{Cycles, Wavelets, narrow};
use unisono_collective::Kind;

use super::WaferPart;
use crate::{Bound, CostProblem, Time};

pub use paper_1d::PaperTable;
pub use tight_1d::tree_energy;

/// The bounds on wafers, sorted by file.
pub(crate) const BOUNDS: &[&Bound] = &[
    &blocks::BLOCKS,
    &lemma_7_2::LEMMA_7_2_CORRECTED,
    &lemma_7_2::LEMMA_7_2_PRINTED,
    &message::MESSAGE,
    &paper_1d::PAPER_1D,
    &physical::PHYSICAL_1D,
    &physical::PHYSICAL_2D,
    &tight_1d::TIGHT_1D,
];

/// A collective with vectors or blocks of `wavelets` wavelets on a part of a wafer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BoundCase {
    pub kind: Kind,
    pub root: u32,
    pub wavelets: u64,
    /// The bytes of the vector, or of one block.
    pub bytes: u64,
    pub part: WaferPart,
}

impl BoundCase {
    fn time(problem: &CostProblem, cycles: impl Fn(&Self) -> Option<Cycles>) -> Option<Time> {
        let (c, part) = (problem.collective, *problem.on::<WaferPart>()?);
        let (wavelets, bytes) = (Wavelets::of(u64::from(c.elements), c.element_bytes()).0, c.bytes());
        Some(Time::from_cycles(cycles(&Self { kind: c.kind, root: c.root, wavelets, bytes, part })?, part.clock_mhz))
    }

    /// Returns the fewest wavelets that carry `blocks` blocks, if 16-bit elements of two blocks may share a wavelet.
    fn wavelets_of(&self, blocks: u64) -> f64 {
        (u128::from(blocks) * u128::from(self.bytes)).div_ceil(4) as f64
    }

    /// Returns true if no data has to travel.
    fn is_local(&self) -> bool {
        self.part.grid.count() == 1 || self.wavelets == 0
    }

    /// Returns true if bounds of a reduce apply: to a reduce, and to an allreduce, which contains a reduce to every PE.
    fn reduces(&self) -> bool {
        matches!(self.kind, Kind::Reduce | Kind::Allreduce)
    }

    /// Returns the numbers of PEs on the two sides of the root of a line.
    fn sides(&self) -> (u32, u32) {
        let pes: u32 = narrow(self.part.grid.count());
        (self.root, pes - 1 - self.root)
    }
}
