//! Lower bounds at endpoints. One file each, registered in [`ENDPOINT_BOUNDS`]; each says what it assumes.

pub(crate) mod bandwidth;
mod fan_out;
mod work;

use unisono_collective::{Collective, Kind};

use super::{LevelPrices, TICKS_PER_NS};

use crate::LowerBound;

/// What is bounded: a collective at the prices of a machine; where levels differ, the cheapest of each price counts.
pub struct EndpointCase<'a> {
    pub collective: Collective,
    pub prices: &'a LevelPrices,
}

impl EndpointCase<'_> {
    /// Nothing has to travel.
    fn is_local(&self) -> bool {
        self.collective.ranks == 1 || (self.collective.elements == 0 && self.collective.kind != Kind::Barrier)
    }

    /// Bytes of what one rank gives or keeps, whichever the collective counts.
    fn bytes(&self) -> f64 {
        (u64::from(self.collective.elements) * self.collective.dtype.bytes()) as f64
    }
}

/// Nanoseconds of so many ticks; of parts of a tick, less the error of real numbers, so that no exact price lies below.
fn sure_ns(ticks: f64) -> f64 {
    (if ticks.fract() == 0.0 { ticks } else { ticks * (1.0 - 1e-12) }) / TICKS_PER_NS
}

pub trait EndpointBound: LowerBound {
    /// Nanoseconds; `None` where the bound says nothing about the case.
    fn nanoseconds(&self, case: &EndpointCase) -> Option<f64>;
}

/// Sorted by name.
pub const ENDPOINT_BOUNDS: &[&dyn EndpointBound] = &[&bandwidth::Bandwidth, &fan_out::FanOut, &work::Work];

/// The largest bound: the one that plans are measured against.
pub fn tightest_endpoint(case: &EndpointCase) -> Option<(&'static dyn EndpointBound, f64)> {
    let all = ENDPOINT_BOUNDS.iter().filter_map(|&bound| Some((bound, bound.nanoseconds(case)?)));
    all.max_by(|a, b| a.1.total_cmp(&b.1))
}
