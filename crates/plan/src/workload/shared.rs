//! Collectives on a network that all groups of ranks perform at once, sharing links.
//!
//! Only the exchanges of an algorithm are timed: senders, receivers and bytes, extended from one group to all groups.
//! Algorithms without exchanges in closed form, such as forests, are timed as schedules if they may be faster
//! (`graph/apart.rs`).

use std::{collections::BTreeMap, sync::Arc};

use unisono_algorithms::{Algorithm, AlgorithmError, Case, Params, Profile, ranks::Extents, resolve};
use unisono_base::interrupt::check;
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_cost::network::{
    GroupLoad, MessageRound, NetworkPart, UsedLinks, groups_together, message_rounds, messages_together,
};
use unisono_lower::{Exchange, Flow, tasks::Charges};
use unisono_machine::network::{MachinesPer, Network, Switches};
use unisono_schedule::Schedule;
use unisono_workload::Groups;

use super::{Taken, graph::Ports};
use crate::{
    BoundReport, PlanError,
    candidates::{build, candidates},
    report::bound_report,
    targets::{charges, prices},
};

/// A network with ranks on some of its accelerators.
pub struct SharedNetwork {
    part: NetworkPart,
}

/// A collective that groups of equal size perform at the same time.
pub struct InGroups<'a> {
    /// The case of a single group.
    pub case: Case<'static>,
    pub groups: Arc<Groups>,
    /// The name of the algorithm; `None` for the fastest algorithm.
    pub algorithm: Option<&'a str>,
    pub wanted: Params,
}

impl SharedNetwork {
    /// Places rank k on accelerator `places[k]`.
    ///
    /// # Errors
    /// Returns an error if an accelerator does not exist or has two ranks, or the topology is invalid.
    pub fn new(network: &Network, places: Vec<u32>) -> Result<Self, PlanError> {
        Ok(Self { part: NetworkPart::new(network, places, &[])? })
    }

    pub fn places(&self) -> &[u32] {
        self.part.model.places()
    }

    /// Returns the sums and copies that the network's switches make.
    pub fn computing(&self) -> &Switches {
        self.part.model.computing()
    }

    /// Returns the costs of starting a rank and of copying a byte.
    pub fn charges(&self) -> Charges {
        charges(&self.part.network)
    }

    /// Returns the seconds of a message without other traffic.
    pub fn message_seconds(&self, from: u32, to: u32, bytes: u64) -> f64 {
        self.part.model.lone_message_ns(from, to, bytes) * 1e-9
    }

    /// Returns the links by which messages of a pair leave and arrive.
    pub fn ports(&self, from: u32, to: u32) -> Ports {
        let [leaving, arriving] = self.part.model.ports_of_pair(from, to);
        Ports { leaving, arriving }
    }

    /// Returns the number of messages that a rank sends at a time; `None` if each of its links sends independently.
    pub fn send_machines(&self) -> Option<u32> {
        let network = &self.part.network;
        (network.send_machines_per == MachinesPer::Accelerator).then_some(network.send_machines)
    }

    /// Returns the exchanges of an algorithm in one group, in closed form or from its schedule.
    ///
    /// # Errors
    /// Returns an error if the schedule is too large or not well-formed.
    pub fn exchanges(algorithm: &dyn Algorithm, case: &Case, params: &Params) -> Result<Vec<Exchange>, PlanError> {
        match algorithm.profile(case, params) {
            Some(Profile::Exchanges(exchanges)) => Ok(exchanges),
            _ => of_schedule(algorithm, case, params),
        }
    }

    /// Returns the lower bound on the time of all groups together; `None` if the collective has none.
    pub fn groups_bound(&self, collective: &Collective, groups: &Groups) -> Option<BoundReport> {
        groups_together(&self.part, collective, (0..groups.len()).map(|n| groups.group(n)))
            .map(|bound| bound_report(&self.part, bound))
    }

    /// Returns the lower bound on the time of messages of `bytes` bytes that all `pairs` send at the same time.
    pub fn messages_bound(&self, bytes: u64, pairs: &[(u32, u32)]) -> BoundReport {
        bound_report(&self.part, messages_together(&self.part, bytes, pairs.iter().copied()))
    }

    /// Returns the links on all paths of messages between pairs of nodes on `places`.
    pub fn used_links(&self, pairs: &[(u32, u32)], places: &[u32]) -> UsedLinks {
        self.part.model.used_links(pairs, places)
    }

    /// Returns the seconds of the messages of a schedule whose nodes are on `places`; `None` if it cannot run.
    pub fn schedule_seconds(&self, schedule: &Schedule, places: &[u32]) -> Option<f64> {
        self.part.model.schedule_ns(schedule, places).ok().map(|ns| ns * 1e-9)
    }

    /// Returns the load of each group on links.
    pub fn group_loads(&self, exchanges: &[Exchange], groups: &Arc<Groups>) -> Vec<GroupLoad> {
        let lists: Vec<&[u32]> = groups.iter().collect();
        self.part.model.group_loads(&in_groups(exchanges, groups), &lists, MOST_ROUTED)
    }

    /// Returns the number of links. Loads already account for the rates of links, so each link has a bandwidth of 1.
    pub fn link_count(&self) -> usize {
        self.part.model.plane().links().len()
    }

    /// Returns the seconds of exchanges that all groups perform at once.
    pub fn seconds(&self, exchanges: &[Exchange], groups: &Arc<Groups>) -> f64 {
        self.part.model.exchanges_within_ns(&in_groups(exchanges, groups), MOST_ROUTED) * 1e-9
    }

    /// Returns a collective of one group whose ranks are arranged by `extents`.
    ///
    /// # Errors
    /// Returns an error if the collective is larger than buffers can be, or the root is not a rank.
    pub fn case(
        &self,
        kind: Kind,
        root: u64,
        (dtype, elements): (Dtype, u64),
        extents: Extents,
    ) -> Result<Case<'static>, PlanError> {
        let collective = Collective::planned(kind, extents.ranks(), elements, root, Operator::Sum, dtype)?;
        Ok(Case::on_ranks(collective, prices(&self.part, extents)))
    }

    /// Returns the named algorithm with its time while all groups communicate. Without a name, returns the fastest
    /// algorithm with exchanges in closed form, or the fastest of all algorithms if none has exchanges in closed form.
    ///
    /// # Errors
    ///
    /// Returns an error if the algorithm is unknown, or cannot perform the collective in such a group.
    pub fn collective(&self, asked: &InGroups) -> Result<Taken, PlanError> {
        let InGroups { case, groups, wanted, .. } = asked;
        let taken = |algorithm: &dyn Algorithm, given: Params, exchanges: &[Exchange]| {
            let (algorithm, seconds) = (algorithm.name().to_owned(), self.seconds(exchanges, groups));
            Taken { algorithm, given, seconds }
        };
        let closed = |algorithm: &dyn Algorithm, given: &Params| match algorithm.profile(case, given) {
            Some(Profile::Exchanges(exchanges)) => Some(taken(algorithm, given.clone(), &exchanges)),
            _ => None,
        };
        let built = |algorithm: &dyn Algorithm, given: &Params| {
            Ok::<_, PlanError>(taken(algorithm, given.clone(), &of_schedule(algorithm, case, given)?))
        };
        if let Some(name) = asked.algorithm {
            let (algorithm, params) = resolve(name, case, wanted)?;
            return closed(algorithm, &params).map_or_else(|| built(algorithm, &params), Ok);
        }
        let all = candidates(case, wanted);
        if let Some(best) = self.fastest(asked, &all) {
            return Ok(best);
        }
        // If the collective has a root, no algorithm treats all ranks alike, so none has exchanges in closed form.
        let timed = all.iter().filter_map(|(algorithm, params)| built(*algorithm, params).ok());
        timed.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).ok_or_else(|| PlanError::NoCandidate {
            kind: case.collective.kind.to_string(),
            shape: format!("{} ranks", case.collective.ranks),
            machine: self.part.network.name.clone(),
            hint: String::new(),
        })
    }

    /// Returns the fastest candidate with exchanges in closed form; of equally fast candidates, the first.
    ///
    /// A single group is at least as fast as all groups together, and cheap to time. Candidates are timed in the order
    /// of the times of a single group, until a single group of the next candidate takes longer than all groups of the
    /// best candidate.
    fn fastest(&self, asked: &InGroups, all: &[(&'static dyn Algorithm, Params)]) -> Option<Taken> {
        let first = Groups::new(asked.groups.ranks(), asked.groups.iter().take(1).map(<[u32]>::to_vec));
        let first = Arc::new(first.expect("one of the groups"));
        let closed = |(at, (algorithm, given)): (usize, &(&'static dyn Algorithm, Params))| {
            check();
            let Some(Profile::Exchanges(exchanges)) = algorithm.profile(&asked.case, given) else { return None };
            Some((self.seconds(&exchanges, &first), at, exchanges))
        };
        let mut listed: Vec<_> = all.iter().enumerate().filter_map(closed).collect();
        listed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut best: Option<(f64, usize)> = None;
        for (alone, at, exchanges) in listed {
            if best.is_some_and(|(seconds, first)| alone > seconds || alone >= seconds && at > first) {
                break;
            }
            check();
            let is_alone = asked.groups.len() == 1;
            let seconds = if is_alone { alone } else { self.seconds(&exchanges, &asked.groups) };
            if best.is_none_or(|(least, first)| seconds < least || seconds == least && at < first) {
                best = Some((seconds, at));
            }
        }
        best.map(|(seconds, at)| {
            let (algorithm, given) = &all[at];
            Taken { algorithm: algorithm.name().to_owned(), given: given.clone(), seconds }
        })
    }
}

/// The most messages that are routed for one time. If there are more, some messages represent others with the same
/// bytes.
const MOST_ROUTED: u64 = 1 << 17;

/// The most instructions of a schedule of one group that is built for its time.
pub const MOST_BUILT: u64 = 1 << 18;

/// Returns the messages of a schedule as exchanges, one for each round. A flow consists, for some n and some length, of
/// the n-th message with this length from each rank.
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

/// Extends the exchanges of one group to all groups, which perform them at the same time.
fn in_groups(exchanges: &[Exchange], groups: &Arc<Groups>) -> Vec<Exchange> {
    let flow = |flow: &Flow| {
        let (one, groups) = (flow.clone(), Arc::clone(groups));
        // A rank outside all groups sends nothing.
        let to = move |rank| groups.of(rank).map_or(rank, |(group, place)| group[one.to(place) as usize]);
        Flow::new(flow.bytes, flow.repeat, to)
    };
    let all = |e: &Exchange| Exchange { flows: e.flows.iter().map(flow).collect(), reduced: e.reduced };
    exchanges.iter().map(all).collect()
}
