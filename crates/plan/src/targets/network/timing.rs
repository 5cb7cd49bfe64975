//! The times of candidates: from closed forms, from the timetable of messages, or from packets.
//!
//! The default model simulates packets only to check its choice. A candidate whose time is too short is ranked first.
//! So the best candidate is timed again by the next finer model, until no finer model changes the choice. Candidates
//! that are timed by messages and close behind the best are simulated too. All others keep their times. With the model
//! `packets`, candidates without a simulation rank last, because predictions and simulations are not comparable.

use std::borrow::Cow;

use unisono_algorithms::{Algorithm, Params, Profile, Ranks, ranks::Extents};
use unisono_base::{Diagnostics, limits, narrow, rounded};
use unisono_collective::Collective;
use unisono_cost::{Time, endpoint::TICKS_PER_NS, network::NetworkPart};
use unisono_lower::{Placement, tasks::draft_with_switches};
use unisono_schedule::Schedule;
use unisono_sim::network::{self as packets, Interconnect, SimError};

use super::{MOST_STEPS, OnNetwork, simulation::charges};
use crate::{
    PlanError, Target, TimeSource, Timed,
    candidates::{TIMING, build},
};

/// The most instructions of a candidate without a closed form that is ranked. Its timing takes a fraction of a second.
pub(super) const MOST_RANKED: u64 = 1 << 18;

/// [`MOST_RANKED`] for a candidate that reduces in switches: its messages are cheaper to time, because each uses one
/// link.
pub(super) const MOST_RANKED_IN_SWITCHES: u64 = 5 << 17;

/// The most instructions of a candidate with exchanges in closed form that is timed by its messages instead.
const MOST_BY_TIMETABLE: u64 = 1 << 15;

/// A simulation in the machine's own packets takes at most the remaining steps divided by this, so that others can
/// follow. A simulation in coarse packets takes at most the steps divided by `SHARE_OF_COARSE`, unless its packets
/// would be too coarse.
const SHARE_OF_FINE: u128 = 2;
const SHARE_OF_COARSE: u128 = 8;
/// The least number of coarse packets that a buffer holds, and the least mean number of coarse packets in a message. On
/// meshes and tori, times then differ by at most 2 % from times with the machine's own packets, and by 7 % if packets
/// wait for full buffers.
const LEAST_COARSE: f64 = 8.0;

/// The most instructions of a candidate with trees that is timed by its messages. The closed form of trees ignores
/// packets in buffers.
const MOST_TREES_BY_TIMETABLE: u64 = 1 << 18;

/// The steps of a link that a routed message crosses, which its latency and the loads of links follow.
const STEPS_OF_LINK: u128 = 4;

/// Returns prices of messages for ranks arranged by `extents`, by which algorithms choose their shape.
pub(crate) fn prices(part: &NetworkPart, extents: Extents) -> Ranks {
    // A message is assumed to use half of the longest path.
    let hops = f64::from(part.topology.diameter().max(2)) / 2.0;
    Ranks {
        latency_ns: hops * part.model.speeds().mean_ns() + part.model.overhead_ns / 2.0 + part.model.signal_ns,
        issue_ns: part.model.overhead_ns / 2.0,
        signal_ns: part.model.signal_ns,
        ns_per_byte: 1.0 / part.network.injection_bytes_per_ns(&*part.topology),
        reduce_ns_per_byte: part.model.reduce_ns_per_byte,
        node_ranks: ranks_of_box(part),
        dealt_node_ranks: None,
        extents: Some(extents),
    }
}

/// Returns the number of ranks of a box, or of a host, if rank i is on accelerator i and there are several boxes.
fn ranks_of_box(part: &NetworkPart) -> Option<u32> {
    let boxes = part.topology.numbers_of_boxes()?;
    let in_order = part.model.places().iter().zip(0..).all(|(&place, rank)| place == rank);
    (in_order && boxes.boxes > 1 && boxes.accelerators > 1).then_some(boxes.accelerators)
}

impl OnNetwork {
    /// Times a schedule by the packet simulator, and subtracts the steps of the simulation from `left`. If it takes
    /// more than half of `left`, the simulation has coarse packets, whose times are estimates; `None` if these take
    /// more than `left`. If `left` is `None`, the simulation is not limited, and `left` becomes the remainder of
    /// [`MOST_STEPS`].
    pub(super) fn packet_time(
        &self,
        interconnect: &Interconnect,
        (schedule, placement): (&Schedule, Option<&Placement>),
        name: &str,
        left: &mut Option<u128>,
    ) -> Result<Option<(Time, TimeSource)>, PlanError> {
        let failed =
            |message: String| PlanError::NotTimed { algorithm: name.to_owned(), model: self.model.name(), message };
        let places = self.places(placement);
        let charges = charges(&self.part.network);
        let graph = draft_with_switches(schedule, (&interconnect.computing, places), charges)
            .map_err(|e| failed(e.to_string()))?;
        let of_sim = |e: SimError| match e {
            SimError::OverLimit(over) => over.into(),
            other => failed(other.to_string()),
        };
        let mut effort = packets::effort(&graph, interconnect, places).map_err(of_sim)?;
        let (mut interconnect, mut source) = (Cow::Borrowed(interconnect), TimeSource::Simulated);
        if let Some(left) = left.filter(|left| effort.steps > left / SHARE_OF_FINE) {
            let factor = effort.steps.div_ceil((left / SHARE_OF_COARSE).max(1)).next_power_of_two();
            let most = f64::from(interconnect.timing.places).min(effort.packets_a_message) / LEAST_COARSE;
            if most >= 2.0 {
                let factor = narrow::<u32>(factor.min(1 << rounded(most.floor()).ilog2()));
                interconnect.to_mut().timing.coarsen(factor);
                effort = packets::effort(&graph, &interconnect, places).map_err(of_sim)?;
                source = TimeSource::Estimated;
            }
            if effort.steps > left {
                return Ok(None);
            }
        }
        *left = Some(left.unwrap_or(MOST_STEPS).saturating_sub(effort.steps));
        let options = packets::Options { places: places.to_vec(), ..packets::Options::default() };
        let run = packets::run(&graph, &interconnect, &options).map_err(of_sim)?;
        Ok(Some((Time::from_ns(run.hosts.makespan as f64 / TICKS_PER_NS), source)))
    }

    /// Returns the network node of each schedule node: from the placement if it contains switches, otherwise from the
    /// part.
    pub(super) fn places<'a>(&'a self, placement: Option<&'a Placement>) -> &'a [u32] {
        let ranks = self.part.model.places();
        placement.and_then(Placement::nodes).filter(|nodes| nodes.len() > ranks.len()).unwrap_or(ranks)
    }

    /// Checks the placement of a schedule from any source that has nodes on switches.
    pub(super) fn check_switches(&self, schedule: &Schedule, placement: Option<&Placement>) -> Result<(), PlanError> {
        let machine = self.machine();
        let Err(found) = schedule.check_ranks_only() else { return Ok(()) };
        let Some(placement) = placement else {
            return Err(PlanError::Switches { found, machine: machine.name().to_owned(), kind: machine.kind() });
        };
        let mut wrong = Diagnostics::default();
        placement.check(schedule, Some(machine), &mut wrong);
        match wrong.into_vec().into_iter().next() {
            None => Ok(()),
            Some(first) => Err(PlanError::NotTimed {
                algorithm: schedule.origin().to_owned(),
                model: self.model.name(),
                message: first.to_string(),
            }),
        }
    }

    pub(super) fn schedule_time(
        &self,
        schedule: &Schedule,
        placement: Option<&Placement>,
        algorithm: &str,
    ) -> Result<Time, PlanError> {
        self.schedule_within(schedule, placement, algorithm, f64::INFINITY).map(|time| time.expect("no time is longer"))
    }

    /// Times a schedule by its messages; `None` if it takes longer than `most_ns`.
    fn schedule_within(
        &self,
        schedule: &Schedule,
        placement: Option<&Placement>,
        algorithm: &str,
        most_ns: f64,
    ) -> Result<Option<Time>, PlanError> {
        let within = self.part.model.schedule_within_ns(schedule, self.places(placement), most_ns);
        within.map(|ns| ns.map(Time::from_ns)).map_err(|found| PlanError::NotTimed {
            algorithm: algorithm.to_owned(),
            model: self.model.name(),
            message: found.first().map_or_else(String::new, ToString::to_string),
        })
    }

    /// Times a candidate by its exchanges or trees in closed form, or by the messages of its schedule. `None` if it
    /// takes longer than `most_ns`.
    pub(super) fn timed_within(
        &self,
        collective: Collective,
        algorithm: &'static dyn Algorithm,
        params: Params,
        most_ns: f64,
    ) -> Result<Option<Timed>, PlanError> {
        let case = self.case(collective);
        let timed = |params, time, source| Some(Timed { algorithm, params, time, source, estimate: None });
        let instructions = algorithm.size(&case, &params).instructions;
        let is_small = instructions.is_some_and(|n| n <= MOST_BY_TIMETABLE);
        let profile = if is_small { None } else { algorithm.profile(&case, &params) };
        if let Some(Profile::Exchanges(exchanges)) = &profile {
            limits::admit(TIMING, 0, STEPS_OF_LINK * self.part.model.crossed_links(exchanges))?;
            let time = Time::from_ns(self.part.model.exchanges_ns(exchanges));
            return Ok(timed(params, time, TimeSource::Exchanges));
        }
        let is_large = instructions.is_none_or(|n| n > MOST_TREES_BY_TIMETABLE);
        if let Some(Profile::Trees(trees)) = profile.filter(|_| is_large) {
            return Ok(timed(params, Time::from_ns(self.part.model.trees_ns(&trees)), TimeSource::Trees));
        }
        let placed = build(algorithm, &case, &params)?;
        let time = self.schedule_within(&placed.schedule, placed.placement.as_ref(), algorithm.name(), most_ns)?;
        Ok(time.and_then(|time| timed(params, time, TimeSource::Messages)))
    }
}
