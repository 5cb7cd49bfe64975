//! What a user asks for on a network, checked.

use unisono_algorithms::{Case, Ranks, ranks::Extents};
use unisono_base::narrow;
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_cost::network::{NetworkCase, NetworkModel};
use unisono_machine::{
    MachineError, Shape,
    network::{Network, Part, Topology},
};

use crate::PlanError;

/// The one model of networks.
pub const MODEL: &str = "links";

/// One collective on some accelerators of a network.
pub struct NetworkRequest {
    pub collective: Collective,
    pub machine: Network,
    pub topology: Box<dyn Topology>,
    pub model: NetworkModel,
    /// How the ranks lie.
    pub extents: Extents,
}

impl NetworkRequest {
    /// On all accelerators, on the first of a number, or on the first rows and columns of a shape.
    ///
    /// # Errors
    /// More ranks than accelerators, a root outside them, counts that do not fit, another model.
    #[expect(clippy::too_many_arguments, reason = "what a user says of a collective")]
    pub fn new(
        kind: Kind,
        machine: &Network,
        shape: Option<Shape>,
        elements: u64,
        root: u64,
        operator: Operator,
        dtype: Dtype,
        model: Option<&str>,
    ) -> Result<Self, PlanError> {
        if let Some(found) = model.filter(|&m| m != MODEL) {
            return Err(PlanError::Model { found: found.to_owned(), accepted: format!("{MODEL} on a network") });
        }
        let all = machine.topology(&machine.name)?.extents();
        let part = Part::new(&machine.name, &all, shape)?;
        let extents = Extents::new(&part.extents).or_else(|| Extents::new(&[narrow(part.nodes.len())]));
        let extents = extents.expect("a part has at least one rank");
        let collective = Collective::new(kind, extents.ranks(), elements, root, operator, dtype)?;
        Self::placed(collective, machine, part.nodes, extents)
    }

    /// The same with rank k on the accelerator `places[k]`: a virtual sub-mesh, for one.
    ///
    /// # Errors
    /// As many places as ranks there must be, all of them on the machine.
    pub fn placed(
        collective: Collective,
        machine: &Network,
        places: Vec<u32>,
        extents: Extents,
    ) -> Result<Self, PlanError> {
        let topology = machine.topology(&machine.name)?;
        let accelerators = topology.accelerators();
        let beyond = places.iter().any(|&p| p >= accelerators);
        if beyond || places.len() != collective.ranks as usize || extents.ranks() != collective.ranks {
            let ranks = collective.ranks;
            return Err(MachineError::TooManyRanks { ranks, machine: machine.name.clone(), accelerators }.into());
        }
        let model = NetworkModel::new(machine, places)?;
        Ok(Self { collective, machine: machine.clone(), topology, model, extents })
    }

    /// The same collective on other accelerators, in a row: ranks that are only some of a part.
    ///
    /// # Errors
    /// As [`Self::placed`].
    pub fn on_places(&self, places: Vec<u32>) -> Result<Self, PlanError> {
        let ranks = self.collective.ranks;
        let extents = Extents::new(&[ranks]).ok_or_else(|| MachineError::TooManyRanks {
            ranks,
            machine: self.machine.name.clone(),
            accelerators: self.topology.accelerators(),
        })?;
        Self::placed(self.collective, &self.machine, places, extents)
    }

    pub fn case(&self) -> Case {
        let injection =
            8.0 / self.machine.link_gbps / (f64::from(self.topology.ports()) * f64::from(self.machine.planes));
        // A message between any two ranks goes half of the longest way.
        let hops = f64::from(self.topology.diameter().max(2)) / 2.0;
        Case::on_ranks(
            self.collective,
            Ranks {
                latency_ns: hops * self.model.alpha_ns + self.model.overhead_ns / 2.0,
                issue_ns: self.model.overhead_ns / 2.0,
                ns_per_byte: injection,
                reduce_ns_per_byte: self.model.reduce_ns_per_byte,
                node_ranks: None,
                dealt_node_ranks: None,
                extents: Some(self.extents),
            },
        )
    }

    pub fn bound_case(&self) -> NetworkCase<'_> {
        NetworkCase {
            collective: self.collective,
            network: &self.machine,
            topology: &*self.topology,
            model: &self.model,
        }
    }
}
