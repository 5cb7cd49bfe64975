//! Lower bounds. One file each, registered in [`BOUNDS`]; each says what it assumes.

mod lemma_7_2;
mod message;
pub mod paper_1d;
mod physical;
mod tight_1d;

use unisono_base::Cycles;
use unisono_collective::Kind;
use unisono_machine::Grid;

use crate::LowerBound;

pub use paper_1d::PaperTable;
pub use tight_1d::tree_energy;

/// What is bounded: a collective of `wavelets` on a grid.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BoundCase {
    pub kind: Kind,
    pub grid: Grid,
    pub root: u32,
    pub wavelets: u64,
    /// T_R, cycles.
    pub ramp_latency: u32,
}

impl BoundCase {
    /// 2 T_R + 1.
    pub fn depth_cycles(&self) -> f64 {
        f64::from(2 * self.ramp_latency + 1)
    }

    /// Nothing has to travel.
    fn is_local(&self) -> bool {
        self.grid.count() == 1 || self.wavelets == 0
    }

    /// Reduce and allreduce: every PE ends an allreduce with what a reduce to it gives, so bounds of a reduce hold.
    fn reduces(&self) -> bool {
        matches!(self.kind, Kind::Reduce | Kind::Allreduce)
    }

    /// PEs on the two sides of the root of a line.
    fn sides(&self) -> (u32, u32) {
        let pes = self.grid.count() as u32;
        (self.root, pes - 1 - self.root)
    }
}

pub trait Bound: LowerBound {
    /// `None` where the bound says nothing about the case.
    fn cycles(&self, case: &BoundCase) -> Option<Cycles>;
}

/// Sorted by name.
pub const BOUNDS: &[&dyn Bound] = &[
    &lemma_7_2::Corrected,
    &lemma_7_2::Printed,
    &message::Message,
    &paper_1d::Paper1d,
    &physical::Physical1d,
    &physical::Physical2d,
    &tight_1d::Tight1d,
];

/// The bound that plans are measured against: the tight one for reductions on a line, the physical one on a grid, a
/// message's time for what only moves data.
pub fn tightest(case: &BoundCase) -> Option<(&'static dyn Bound, Cycles)> {
    let name = match (case.reduces(), case.grid.is_line()) {
        (true, true) => "tight-1d",
        (true, false) => "physical-2d",
        (false, _) => "message",
    };
    let bound = BOUNDS.iter().copied().find(|b| b.name() == name)?;
    Some((bound, bound.cycles(case)?))
}
