//! What messages and reductions cost the CPUs of ranks on a network.

use unisono_base::rounded;
use unisono_cost::endpoint::{Prices, Receive, Send};

use super::Timing;

pub(super) struct HostPrices<'a> {
    pub timing: &'a Timing,
    pub ps_per_calc: u64,
}

impl Prices for HostPrices<'_> {
    fn send(&self, _from: u32, _to: u32, _bytes: u64) -> Send {
        Send { cpu: self.timing.host_overhead_ps, nic: 0, flight: 0 }
    }

    fn receive(&self, _from: u32, _to: u32, _bytes: u64) -> Receive {
        Receive { cpu: self.timing.host_overhead_ps, nic: 0 }
    }

    fn reduce(&self, bytes: u64) -> u64 {
        rounded(bytes as f64 * self.timing.gamma_ps_per_byte)
    }

    fn calc(&self, amount: u64) -> u64 {
        amount.saturating_mul(self.ps_per_calc)
    }

    /// A send is done when it is posted, whatever its length.
    fn eager_bytes(&self) -> u64 {
        u64::MAX
    }
}
