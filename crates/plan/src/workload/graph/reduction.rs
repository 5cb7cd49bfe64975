//! The time in which a rank reduces, for the sums that the traces of a schedule list.

use unisono_cost::endpoint::{LevelPrices, Prices};
use unisono_machine::{Endpoint, Machine, network::Network};

/// A constant, and the time of a byte.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Reduction {
    seconds: f64,
    seconds_per_byte: f64,
}

/// Bytes of which the time of one follows.
const MANY: u64 = 1 << 30;

impl Reduction {
    /// By `gamma_ns_per_byte` of the machine, where it states it.
    pub fn new(machine: &Machine, ranks: u32) -> Self {
        if let Some(network) = machine.get::<Network>() {
            let seconds_per_byte = network.gamma_ns_per_byte * 1e-9 / f64::from(network.planes.max(1));
            return Self { seconds: 0.0, seconds_per_byte };
        }
        let prices = machine.get::<Endpoint>().and_then(|of| LevelPrices::new(of, of.model, ranks).ok());
        let picoseconds = |bytes| prices.as_ref().map_or(0, |prices| prices.reduce(0, bytes)) as f64;
        let seconds = picoseconds(0) * 1e-12;
        Self { seconds, seconds_per_byte: picoseconds(MANY) * 1e-12 / MANY as f64 - seconds / MANY as f64 }
    }

    pub fn seconds(&self, bytes: u64) -> f64 {
        self.seconds + self.seconds_per_byte * bytes as f64
    }
}
