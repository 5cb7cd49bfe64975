//! Lower bounds on networks.

mod bisection;
mod board_edges;
mod cut;
mod flow;
mod injection;
mod latency;
mod partition;
mod reach;

use unisono_collective::Collective;
use unisono_machine::network::{Network, Topology};

pub use cut::{CUT, cut_roots, least_cut};
pub use partition::PARTITION;

use unisono_synthesis::Fabric;

use super::{NetworkModel, NetworkPart};
use crate::{Bound, CostProblem};

/// The bounds on networks, sorted by file.
pub(crate) const BOUNDS: &[&Bound] = &[
    &bisection::BISECTION,
    &board_edges::BOARD_EDGES,
    &cut::CUT,
    &flow::FLOW,
    &injection::INJECTION,
    &latency::LATENCY,
    &partition::PARTITION,
    &reach::REACH,
];

/// A collective on the accelerators of a network.
pub struct NetworkCase<'a> {
    pub collective: Collective,
    pub network: &'a Network,
    pub topology: &'a dyn Topology,
    pub model: &'a NetworkModel,
    pub fabric: &'a Fabric,
}

impl<'a> NetworkCase<'a> {
    /// Returns the case of a problem on a network, with the rates of the data sheet.
    fn of(problem: &CostProblem<'a>) -> Option<Self> {
        let part: &NetworkPart = problem.on()?;
        let NetworkPart { network, topology, model, fabric, .. } = part.of_data_sheet();
        Some(Self { collective: problem.collective, network, topology: &**topology, model, fabric })
    }

    /// Returns the bytes per nanosecond that a rank can send on all links of all planes together.
    fn injection(&self, rank: u32) -> f64 {
        let (network, model) = (self.network, self.model);
        let links = model.speeds().injection(model.plane(), model.places()[rank as usize]);
        network.link_gbps * links * f64::from(network.working_planes()) / 8.0
    }
}
