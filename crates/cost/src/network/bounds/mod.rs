//! Lower bounds on networks.

mod bisection;
mod board_edges;
mod injection;
mod latency;

use unisono_collective::Collective;
use unisono_machine::network::{Network, Topology};

pub use bisection::Bisection;
pub use board_edges::BoardEdges;
pub use injection::Injection;
pub use latency::Latency;

use super::{NetworkModel, NetworkPart};
use crate::{Bound, CostProblem};

/// Sorted by file.
pub(crate) const BOUNDS: &[&dyn Bound] =
    &[&bisection::Bisection, &board_edges::BoardEdges, &injection::Injection, &latency::Latency];

/// A collective on the accelerators of a network.
pub struct NetworkCase<'a> {
    pub collective: Collective,
    pub network: &'a Network,
    pub topology: &'a dyn Topology,
    pub model: &'a NetworkModel,
}

impl<'a> NetworkCase<'a> {
    /// Returns the case of a problem on a network.
    fn of(problem: &CostProblem<'a>) -> Option<Self> {
        let part: &NetworkPart = problem.on()?;
        let NetworkPart { network, topology, model } = part;
        Some(Self { collective: problem.collective, network, topology: &**topology, model })
    }

    fn injection_ns_per_byte(&self) -> f64 {
        1.0 / self.network.injection_bytes_per_ns(self.topology)
    }
}
