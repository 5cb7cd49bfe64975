//! Quantities that carry their unit in the type.

use std::{fmt, iter::Sum, ops::Add};

use serde::Serialize;

/// Clock cycles of a machine. They may be fractional, because models compute averages.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default, Serialize)]
pub struct Cycles(pub f64);

impl Cycles {
    /// Returns the seconds that the cycles take at a clock of `clock_mhz` megahertz.
    pub fn seconds(self, clock_mhz: f64) -> f64 {
        self.0 / (clock_mhz * 1e6)
    }
}

impl Add for Cycles {
    type Output = Cycles;
    fn add(self, other: Cycles) -> Cycles {
        Cycles(self.0 + other.0)
    }
}

impl Sum for Cycles {
    fn sum<I: Iterator<Item = Cycles>>(iter: I) -> Cycles {
        iter.fold(Cycles(0.0), Add::add)
    }
}

/// Bytes of memory or of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0)
    }
}

/// A number of 32-bit packets of a wafer's network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize)]
pub struct Wavelets(pub u64);

impl Wavelets {
    /// Returns the number of wavelets of 4 bytes that carry `elements` elements of `element_bytes` bytes without gaps.
    /// The last wavelet is padded.
    pub fn of(elements: u64, element_bytes: u64) -> Self {
        Self((elements * element_bytes).div_ceil(4))
    }
}
