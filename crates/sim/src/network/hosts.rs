//! Times that messages and reductions take on the CPUs of a network's ranks and on the engines of its switches.

use unisono_base::rounded_up;
use unisono_cost::endpoint::{Prices, Receive, Send};

use super::{Interconnect, Options, Timing};

pub(super) struct HostPrices<'a> {
    timing: &'a Timing,
    ps_per_calc: u64,
    /// Node of each rank of the graph; empty if rank k is on accelerator k.
    places: &'a [u32],
    accelerators: u32,
    /// Picoseconds per byte of a result in a switch, for each rank; empty if no rank of the graph is a switch.
    switch_ps_per_byte: Vec<f64>,
}

impl<'a> HostPrices<'a> {
    pub fn new(interconnect: &'a Interconnect, options: &'a Options) -> Self {
        let Interconnect { plane, timing, planes, computing, .. } = interconnect;
        let (accelerators, places) = (plane.accelerators(), &options.places[..]);
        let has_switches = places.iter().any(|&place| place >= accelerators);
        let ps = |&place: &u32| computing.reduce_ns_per_byte(place) * 1e3 / f64::from((*planes).max(1));
        let switch_ps_per_byte = if has_switches { places.iter().map(ps).collect() } else { Vec::new() };
        Self { timing, ps_per_calc: options.ps_per_calc, places, accelerators, switch_ps_per_byte }
    }

    fn is_switch(&self, rank: u32) -> bool {
        !self.switch_ps_per_byte.is_empty() && self.places[rank as usize] >= self.accelerators
    }

    fn overhead_ps(&self, rank: u32) -> u64 {
        if self.is_switch(rank) { 0 } else { self.timing.host_overhead_ps }
    }
}

impl Prices for HostPrices<'_> {
    fn send(&self, from: u32, _to: u32, _bytes: u64) -> Send {
        Send { cpu: self.overhead_ps(from), nic: 0, flight: 0 }
    }

    fn receive(&self, _from: u32, to: u32, _bytes: u64) -> Receive {
        Receive { cpu: self.overhead_ps(to), nic: 0 }
    }

    fn reduce(&self, rank: u32, bytes: u64) -> u64 {
        let is_switch = self.is_switch(rank);
        let ps = if is_switch { self.switch_ps_per_byte[rank as usize] } else { self.timing.gamma_ps_per_byte };
        rounded_up(bytes as f64 * ps)
    }

    fn calc(&self, amount: u64) -> u64 {
        amount.saturating_mul(self.ps_per_calc)
    }

    /// Returns false for switches, because noise comes from CPUs, which switches do not have.
    fn is_noisy(&self, rank: u32) -> bool {
        !self.is_switch(rank)
    }

    /// Returns the largest number, because a send of any length is done when it is posted.
    fn eager_bytes(&self) -> u64 {
        u64::MAX
    }
}
