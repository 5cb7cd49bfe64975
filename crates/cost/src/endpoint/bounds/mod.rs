//! Lower bounds on collectives among ranks, from the times of messages on a machine ([`LevelPrices`]).

pub(crate) mod bandwidth;
pub(crate) mod fan_out;
mod work;

use unisono_collective::Collective;

use super::{LevelPrices, TICKS_PER_NS};
use crate::{Bound, CostProblem};

/// The bounds among ranks, sorted by file.
pub(crate) const BOUNDS: &[&Bound] = &[&bandwidth::BANDWIDTH, &fan_out::FAN_OUT, &work::WORK];

/// A collective with the times of messages on a machine. If levels of the machine have different times, bounds use the
/// least prices of the levels that a message may cross ([`LevelPrices::cheapest_of`]).
pub struct EndpointCase<'a> {
    pub collective: Collective,
    pub prices: &'a LevelPrices,
}

impl<'a> EndpointCase<'a> {
    /// Returns the case of a problem whose part is a [`LevelPrices`]; `None` for other parts.
    fn of(problem: &CostProblem<'a>) -> Option<Self> {
        Some(Self { collective: problem.collective, prices: problem.on()? })
    }

    /// Returns the size in bytes of the collective's `elements` elements, which are the vector or, in collectives of
    /// blocks, one block.
    fn bytes(&self) -> f64 {
        (u64::from(self.collective.elements) * self.collective.element_bytes()) as f64
    }
}

/// Converts ticks to nanoseconds. A fractional number of ticks is reduced by more than a possible rounding error, so a
/// bound never exceeds an exact time.
fn sure_ns(ticks: f64) -> f64 {
    (if ticks.fract() == 0.0 { ticks } else { ticks * (1.0 - 1e-12) }) / TICKS_PER_NS
}
