//! The time of a collective, in units that fit every kind of machine.

use std::cmp::Ordering;

use unisono_base::Cycles;

/// A time in seconds, and in cycles if the machine has a clock.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Time {
    pub seconds: f64,
    pub cycles: Option<f64>,
}

impl Time {
    pub fn from_ns(nanoseconds: f64) -> Self {
        Self { seconds: nanoseconds / 1e9, cycles: None }
    }

    pub fn from_cycles(cycles: Cycles, clock_mhz: f64) -> Self {
        Self { seconds: cycles.seconds(clock_mhz), cycles: Some(cycles.0) }
    }

    pub fn nanoseconds(self) -> f64 {
        self.seconds * 1e9
    }

    /// Compares two times on one machine, by cycles if both have them, because cycles are exact.
    pub fn total_cmp(&self, other: &Self) -> Ordering {
        match (self.cycles, other.cycles) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            _ => self.seconds.total_cmp(&other.seconds),
        }
    }
}
