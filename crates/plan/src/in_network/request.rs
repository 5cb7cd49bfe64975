//! What a user asks for on switches that reduce, checked.

use unisono_algorithms::{Case, Ranks, switches::Site};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_cost::in_network::InNetworkCase;
use unisono_machine::InNetwork;

use crate::PlanError;

pub(super) const MODEL: &str = "alpha-beta";

/// The part of the machine that takes part.
#[derive(Clone, PartialEq, Debug)]
pub enum Part {
    All,
    /// The first cores.
    Cores(u32),
    /// All cores of these nodes.
    Nodes(Vec<u32>),
}

#[derive(Clone, Debug)]
pub struct InNetworkRequest {
    pub collective: Collective,
    pub site: Site,
}

impl InNetworkRequest {
    /// # Errors
    /// Cores or nodes that are not there, a root outside them, counts that do not fit, another model than the one there is.
    #[expect(clippy::too_many_arguments, reason = "what a user says of a collective")]
    pub fn new(
        kind: Kind,
        machine: &InNetwork,
        part: &Part,
        elements: u64,
        root: u64,
        operator: Operator,
        dtype: Dtype,
        model: Option<&str>,
    ) -> Result<Self, PlanError> {
        if let Some(found) = model.filter(|&m| m != MODEL) {
            return Err(PlanError::Model { found: found.to_owned(), accepted: MODEL.to_owned() });
        }
        let site = match part {
            Part::All => Site::all(machine),
            Part::Cores(cores) => Site::first(machine, *cores)?,
            Part::Nodes(nodes) => Site::on_nodes(machine, nodes)?,
        };
        let collective = Collective::new(kind, site.ranks(), elements, root, operator, dtype)?;
        Ok(Self { collective, site })
    }

    pub fn case(&self) -> Case {
        Case::on_switches(self.collective)
    }

    /// The same collective by messages among the cores.
    pub fn host_case(&self) -> Case {
        Case::on_ranks(self.collective, Ranks::default())
    }

    pub fn bound_case(&self) -> InNetworkCase<'_> {
        InNetworkCase {
            collective: self.collective,
            machine: &self.site.machine,
            layout: &self.site.layout,
            cores: &self.site.cores,
        }
    }
}
