//! The time of a workload's communication on a network whose links are shared by all groups.

use std::sync::Arc;

use unisono_algorithms::{Case, Params};
use unisono_collective::{Dtype, Kind};
use unisono_lower::{Exchange, Flow, tasks::Charges};
use unisono_machine::network::Network;

use super::{
    Communication, Pattern, Taken, Workload, extents, groups, places,
    shared::{InGroups, SharedNetwork},
};
use crate::PlanError;

/// A network with a workload on it.
pub struct NetworkWorkload {
    network: SharedNetwork,
}

impl NetworkWorkload {
    /// # Errors
    /// The workload does not fit, or the topology does not close.
    pub fn new(workload: &Workload, network: &Network) -> Result<Self, PlanError> {
        let topology = network.topology(&network.name)?;
        let places = places(workload, &network.name, &topology.extents())?;
        Ok(Self { network: SharedNetwork::new(network, places)? })
    }

    pub fn places(&self) -> &[u32] {
        self.network.places()
    }

    pub fn charges(&self) -> Charges {
        self.network.charges()
    }

    /// The fastest algorithm whose exchanges are known in closed form, or of all where there is none, or the one that
    /// is named, with its time while all groups communicate.
    ///
    /// # Errors
    /// An algorithm that is not known, or does not make the collective of such a group.
    pub fn take(&self, workload: &Workload, c: &Communication) -> Result<Taken, PlanError> {
        let groups = Arc::new(groups(workload, c));
        let size = workload.group_size(c);
        let sent = |exchange| {
            let seconds = self.network.seconds(&[exchange], &groups);
            Ok(Taken { algorithm: "send".to_owned(), given: Params::new(), seconds })
        };
        if size == 1 {
            return Ok(Taken { algorithm: "none".to_owned(), given: Params::new(), seconds: 0.0 });
        }
        let bytes = 4 * c.elements;
        match c.collective {
            Pattern::Collective(kind) => {
                let case = self.case(kind, workload, c)?;
                let wanted = c.params.iter().fold(Params::new(), |p, (key, value)| p.with(key, value));
                self.network.collective(&InGroups { case, groups, algorithm: c.algorithm.as_deref(), wanted })
            }
            Pattern::Send => {
                let to = move |rank: u32| if rank == size - 1 { rank } else { rank + 1 };
                sent(Exchange { flows: vec![Flow::new(bytes, 1, to)], reduced: 0 })
            }
            Pattern::Exchange => {
                let with = |&partner: &u32| {
                    Flow::new(bytes, 1, move |rank: u32| if rank ^ partner < size { rank ^ partner } else { rank })
                };
                sent(Exchange { flows: c.partners.iter().map(with).collect(), reduced: 0 })
            }
        }
    }

    /// A collective of one group.
    ///
    /// # Errors
    /// It is larger than buffers can be.
    pub(super) fn case(&self, kind: Kind, workload: &Workload, c: &Communication) -> Result<Case<'static>, PlanError> {
        self.network.case(kind, 0, (Dtype::F32, c.elements), extents(workload, c))
    }
}
