//! The time of a workload's communication on a network whose links are shared by all groups.

use std::{collections::BTreeMap, sync::Arc};

use unisono_algorithms::{Algorithm, AlgorithmError, Case, Params, Profile, resolve};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_cost::network::{MessageRound, NetworkPart, message_rounds};
use unisono_lower::{Exchange, Flow};
use unisono_machine::network::Network;

use super::{Communication, Groups, Pattern, Taken, Workload, places};
use crate::{
    PlanError,
    candidates::{build, candidates},
    targets::prices,
};

/// A network with a workload on it.
pub struct NetworkWorkload {
    part: NetworkPart,
}

impl NetworkWorkload {
    /// # Errors
    /// The workload does not fit, or the topology does not close.
    pub fn new(workload: &Workload, network: &Network) -> Result<Self, PlanError> {
        let topology = network.topology(&network.name)?;
        let places = places(workload, &network.name, &topology.extents())?;
        Ok(Self { part: NetworkPart::new(network, places, &[])? })
    }

    pub fn places(&self) -> &[u32] {
        self.part.model.places()
    }

    /// The fastest algorithm whose exchanges are known in closed form, or of all where there is none, or the one that is named,
    /// with its time while all groups communicate.
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
        let taken = |algorithm: &dyn Algorithm, given: Params, exchanges: &[Exchange]| {
            let (algorithm, seconds) = (algorithm.name().to_owned(), seconds(exchanges));
            Taken { algorithm, given, seconds }
        };
        let closed = |algorithm: &dyn Algorithm, given: &Params| match algorithm.profile(&case, given) {
            Some(Profile::Exchanges(exchanges)) => Some(taken(algorithm, given.clone(), &exchanges)),
            _ => None,
        };
        let built = |algorithm: &dyn Algorithm, given: &Params| {
            Ok::<_, PlanError>(taken(algorithm, given.clone(), &of_schedule(algorithm, &case, given)?))
        };
        if let Some(name) = &c.algorithm {
            let (algorithm, params) = resolve(name, &case, &wanted)?;
            return closed(algorithm, &params).map_or_else(|| built(algorithm, &params), Ok);
        }
        let all = candidates(&case, &wanted);
        let mut timed: Vec<Taken> = all.iter().filter_map(|(algorithm, params)| closed(*algorithm, params)).collect();
        if timed.is_empty() {
            // Of a collective with a root no algorithm has all ranks do alike.
            timed = all.iter().filter_map(|(algorithm, params)| built(*algorithm, params).ok()).collect();
        }
        timed.into_iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds)).ok_or_else(|| PlanError::NoCandidate {
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

/// A schedule of one group is built for its time if it has at most this many instructions.
const MOST_BUILT: u64 = 1 << 18;

/// The messages of a schedule as exchanges: each round is one, with a flow for the n-th message of each rank of equal length.
fn of_schedule(algorithm: &dyn Algorithm, case: &Case, params: &Params) -> Result<Vec<Exchange>, PlanError> {
    let refused = |reason| AlgorithmError::Unsupported { algorithm: algorithm.name(), reason };
    if algorithm.size(case, params).instructions.is_some_and(|n| n > MOST_BUILT) {
        return Err(refused("it states no exchanges in closed form, and its schedule is large".to_owned()).into());
    }
    let schedule = build(algorithm, case, params)?.schedule;
    let (rounds, _) = message_rounds(&schedule, |_, _| 0.0)
        .map_err(|found| refused(found.first().map_or_else(String::new, ToString::to_string)))?;
    let exchange = |round: &MessageRound| {
        let mut peers = BTreeMap::<(u64, u32), BTreeMap<u32, u32>>::new();
        let mut sent = BTreeMap::<(u64, u32), u32>::new();
        for message in &round.messages {
            let earlier = sent.entry((message.bytes, message.from)).or_default();
            peers.entry((message.bytes, *earlier)).or_default().insert(message.from, message.to);
            *earlier += 1;
        }
        let flow = |((bytes, _), to): ((u64, u32), BTreeMap<u32, u32>)| {
            Flow::new(bytes, 1, move |rank| *to.get(&rank).unwrap_or(&rank))
        };
        Exchange { flows: peers.into_iter().map(flow).collect(), reduced: round.reduced }
    };
    Ok(rounds.iter().map(exchange).collect())
}

/// Extends the exchanges of one group to all groups, which make them at the same time.
fn in_groups(exchanges: &[Exchange], groups: &Arc<Groups>) -> Vec<Exchange> {
    let flow = |flow: &Flow| {
        let (one, groups) = (flow.clone(), Arc::clone(groups));
        Flow::new(flow.bytes, flow.repeat, move |rank| groups.group(rank)[one.to(groups.place(rank)) as usize])
    };
    let all = |e: &Exchange| Exchange { flows: e.flows.iter().map(flow).collect(), reduced: e.reduced };
    exchanges.iter().map(all).collect()
}
