//! What the communication of a workload takes on a network: all groups share its links.

use std::sync::Arc;

use unisono_algorithms::{Algorithm, AlgorithmError, Case, Params, Profile, resolve};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_cost::network::NetworkPart;
use unisono_lower::{Exchange, Flow};
use unisono_machine::network::Network;

use super::{Communication, Groups, Pattern, Taken, Workload, places};
use crate::{PlanError, candidates::candidates, targets::prices};

/// A network with a workload on it.
pub struct OnNetwork {
    part: NetworkPart,
}

impl OnNetwork {
    /// # Errors
    /// The workload does not fit, or the topology does not close.
    pub fn new(workload: &Workload, network: &Network) -> Result<Self, PlanError> {
        let topology = network.topology(&network.name)?;
        let places = places(workload, &network.name, &topology.extents())?;
        Ok(Self { part: NetworkPart::new(network, places)? })
    }

    pub fn places(&self) -> &[u32] {
        self.part.model.places()
    }

    /// The fastest algorithm whose exchanges are known in closed form, or the one that is named, with its time while all groups
    /// communicate.
    ///
    /// # Errors
    /// An algorithm that is not known, or does not make the collective of such a group.
    pub fn take(&self, workload: &Workload, c: &Communication) -> Result<Taken, PlanError> {
        let groups = Arc::new(Groups::new(workload, c));
        let seconds = |exchanges: &[Exchange]| self.part.model.exchanges_ns(&in_groups(exchanges, &groups)) * 1e-9;
        if groups.size() == 1 {
            return Ok(Taken { algorithm: "none".to_owned(), given: Params::new(), seconds: 0.0 });
        }
        let bytes = 4 * c.elements;
        let kind = match c.collective {
            Pattern::Collective(kind) => kind,
            Pattern::Send => {
                let last = groups.size() - 1;
                let to = move |rank: u32| if rank == last { rank } else { rank + 1 };
                let exchange = Exchange { flows: vec![Flow::new(bytes, 1, to)], reduced: 0 };
                return Ok(Taken { algorithm: "send".to_owned(), given: Params::new(), seconds: seconds(&[exchange]) });
            }
            Pattern::Exchange => {
                let size = groups.size();
                let with = |&partner: &u32| {
                    Flow::new(bytes, 1, move |rank: u32| if rank ^ partner < size { rank ^ partner } else { rank })
                };
                let exchange = Exchange { flows: c.partners.iter().map(with).collect(), reduced: 0 };
                return Ok(Taken { algorithm: "send".to_owned(), given: Params::new(), seconds: seconds(&[exchange]) });
            }
        };
        let case = self.case(kind, c, &groups)?;
        let wanted = c.params.iter().fold(Params::new(), |p, (key, value)| p.with(key, value));
        let timed = |algorithm: &dyn Algorithm, given: Params| {
            let Some(Profile::Exchanges(exchanges)) = algorithm.profile(&case, &given) else { return None };
            let (algorithm, seconds) = (algorithm.name().to_owned(), seconds(&exchanges));
            Some(Taken { algorithm, given, seconds })
        };
        if let Some(name) = &c.algorithm {
            let (algorithm, params) = resolve(name, &case, &wanted)?;
            return timed(algorithm, params).ok_or_else(|| {
                let reason = "it states no exchanges in closed form, which workloads on networks need".to_owned();
                AlgorithmError::Unsupported { algorithm: algorithm.name(), reason }.into()
            });
        }
        let all = candidates(&case, &wanted).into_iter();
        let best = all.filter_map(|(algorithm, params)| timed(algorithm, params));
        best.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).ok_or_else(|| PlanError::NoCandidate {
            kind: kind.to_string(),
            shape: format!("{} ranks", groups.size()),
            machine: self.part.network.name.clone(),
            hint: String::new(),
        })
    }

    /// A collective of one group.
    ///
    /// # Errors
    /// It is larger than buffers can be.
    pub(super) fn case(&self, kind: Kind, c: &Communication, groups: &Groups) -> Result<Case<'static>, PlanError> {
        let collective = Collective::new(kind, groups.size(), c.elements, 0, Operator::Sum, Dtype::F32)?;
        Ok(Case::on_ranks(collective, prices(&self.part, groups.extents)))
    }
}

/// What the ranks of one group do, done by all groups.
fn in_groups(exchanges: &[Exchange], groups: &Arc<Groups>) -> Vec<Exchange> {
    let flow = |flow: &Flow| {
        let (one, groups) = (flow.clone(), Arc::clone(groups));
        Flow::new(flow.bytes, flow.repeat, move |rank| groups.group(rank)[one.to(groups.place(rank)) as usize])
    };
    let all = |e: &Exchange| Exchange { flows: e.flows.iter().map(flow).collect(), reduced: e.reduced };
    exchanges.iter().map(all).collect()
}
