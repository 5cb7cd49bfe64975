//! The time in which a rank computes a sum that a trace of a schedule lists.

use unisono_cost::endpoint::Prices;
use unisono_machine::network::Network;

/// The seconds of a sum: a constant time, and a time for each byte.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Reduction {
    seconds: f64,
    seconds_per_byte: f64,
}

/// The bytes of the sum from whose time the time per byte is computed.
const MANY: u64 = 1 << 30;

impl Reduction {
    /// Creates the time of a sum from `gamma_ns_per_byte` of a network, or from `prices` of another machine.
    pub fn new(network: Option<&Network>, prices: Option<&dyn Prices>) -> Self {
        if let Some(network) = network {
            let seconds_per_byte = network.gamma_ns_per_byte * 1e-9 / f64::from(network.working_planes().max(1));
            return Self { seconds: 0.0, seconds_per_byte };
        }
        let picoseconds = |bytes| prices.map_or(0, |prices| prices.reduce(0, bytes)) as f64;
        let seconds = picoseconds(0) * 1e-12;
        Self { seconds, seconds_per_byte: picoseconds(MANY) * 1e-12 / MANY as f64 - seconds / MANY as f64 }
    }

    pub fn seconds(&self, bytes: u64) -> f64 {
        self.seconds + self.seconds_per_byte * bytes as f64
    }
}
