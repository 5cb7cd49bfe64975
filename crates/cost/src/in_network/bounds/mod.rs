//! Lower bounds on machines whose switches reduce. One file each, registered in [`IN_NETWORK_BOUNDS`].

mod eq2;
mod memory;
mod path;

use unisono_collective::{Collective, Kind};
use unisono_machine::{InNetwork, in_network::Layout};

use crate::LowerBound;

pub struct InNetworkCase<'a> {
    pub collective: Collective,
    pub machine: &'a InNetwork,
    pub layout: &'a Layout,
    /// The core of each rank.
    pub cores: &'a [u32],
}

impl InNetworkCase<'_> {
    /// Nothing has to travel.
    fn is_local(&self) -> bool {
        self.collective.ranks == 1 || (self.collective.elements == 0 && self.collective.kind != Kind::Barrier)
    }
}

pub trait InNetworkBound: LowerBound {
    /// Whether it holds for every algorithm.
    fn is_general(&self) -> bool;
    /// Nanoseconds; `None` where the bound says nothing about the case.
    fn nanoseconds(&self, case: &InNetworkCase) -> Option<f64>;
}

/// Sorted by name.
pub const IN_NETWORK_BOUNDS: &[&dyn InNetworkBound] = &[&eq2::Eq2, &memory::Memory, &path::Path];

/// The largest bound that holds for every algorithm.
pub fn tightest_in_network(case: &InNetworkCase) -> Option<(&'static dyn InNetworkBound, f64)> {
    let general = IN_NETWORK_BOUNDS.iter().filter(|b| b.is_general());
    general.filter_map(|&bound| Some((bound, bound.nanoseconds(case)?))).max_by(|a, b| a.1.total_cmp(&b.1))
}
