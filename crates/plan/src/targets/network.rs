//! Networks: the algorithms among ranks, timed by the load that their messages put on the links.

use std::{any::Any, time::Instant};

use unisono_algorithms::{Algorithm, AlgorithmError, Case, Means, Params, Profile, Ranks, ranks::Extents};
use unisono_base::{Diagnostics, NodeId, interrupt::check, narrow, rounded};
use unisono_collective::{Collective, Kind};
use unisono_cost::{
    Time,
    endpoint::{TICKS_PER_NS, schedule_terms},
    network::NetworkPart,
};
use unisono_lower::{
    File, Placed, Placement, VerifiedFile,
    tasks::{Charges, draft_with_switches, with_switches},
};
use unisono_machine::{
    Machine, Shape,
    network::{AcceleratorGrid, Network, Topology},
};
use unisono_schedule::Schedule;
use unisono_sim::network::{self as packets, Interconnect, SimError};

use super::{Placing, TargetKind, endpoint::of_libraries, first_ranks, machine_of, no_part};
use crate::{
    Asked, BoundCertificate, Part, Plan, PlanError, Prediction, Run, RunError, RunOptions, Target, TimeSource, Timed,
    candidates::{LeftOut, build},
    run,
    target::{Details, is_first},
};

/// How candidates are timed.
enum Model {
    /// By the loads of links in closed form, or by a timetable of messages on links.
    Links,
    /// By the simulator, after [`Model::Links`] found those that are worth it.
    Packets(Box<Interconnect>),
}

impl Model {
    const NAMES: [&str; 2] = ["links", "packets"];

    fn new(name: Option<&str>, network: &Network) -> Result<Self, PlanError> {
        match name {
            None | Some("links") => Ok(Self::Links),
            Some("packets") => Ok(Self::Packets(Box::new(Interconnect::new(network)?))),
            Some(found) => {
                let accepted = format!("{} on a network", Self::NAMES.join(" and "));
                Err(PlanError::Model { found: found.to_owned(), accepted })
            }
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Links => Self::NAMES[0],
            Self::Packets(_) => Self::NAMES[1],
        }
    }
}

struct OnNetwork {
    part: NetworkPart,
    model: Model,
    /// Ranks along each dimension of the part.
    extents: Extents,
}

pub const KIND: TargetKind = TargetKind {
    name: "network",
    offers: &[Means::Messages, Means::Links, Means::ReducingSwitches],
    compares: &[],
    open,
    place,
    simulator: &run::NETWORK,
    simulate,
    simulate_beside: None,
    part: part_of,
};

fn open(asked: &Asked) -> Option<Result<Box<dyn Target>, PlanError>> {
    let network = asked.machine.get::<Network>()?;
    Some(on_network(asked, network).map(|target| Box::new(target) as Box<dyn Target>))
}

fn on_network(asked: &Asked, network: &Network) -> Result<OnNetwork, PlanError> {
    let model = Model::new(asked.model, network)?;
    let all = network.topology(&network.name)?.extents();
    let (nodes, extents) = match &asked.part {
        Part::All => part(AcceleratorGrid::new(&network.name, &all, None)?),
        Part::Shape(shape) => part(AcceleratorGrid::new(&network.name, &all, Some(*shape))?),
        Part::Places(nodes) => (nodes.clone(), line(nodes.len())),
        Part::Nodes(_) => return Err(no_part(asked, "a number of ranks, a shape, and a list of accelerators")),
    };
    Ok(OnNetwork { part: NetworkPart::new(network, nodes, extents.dims())?, model, extents })
}

/// On the places that are given, in the part that a shape names, where it is on this machine, in the part of the shape
/// that it has on another one, or on the first accelerators.
fn place(placing: &Placing) -> Result<Option<Placement>, PlanError> {
    let machine = placing.machine;
    let network: &Network = machine.get().expect("the kind of the machine");
    let topology = network.topology(&network.name)?;
    let ranks = placing.ranks();
    if placing.schedule.check_ranks_only().is_err() {
        return place_with_switches(placing, network, &*topology);
    }
    let of_shape = |shape| AcceleratorGrid::new(&network.name, &topology.extents(), Some(shape)).map(|part| part.nodes);
    let nodes = match (placing.part, placing.kept) {
        (Part::Places(places), _) => places.clone(),
        (Part::Shape(shape), _) => of_shape(*shape)?,
        (_, Some(Placement::Nodes(kept))) if keeps_places(placing.before, network, &*topology)? => {
            return Ok(Some(Placement::Nodes(kept.clone())));
        }
        _ => {
            let kept_shape = placing.was.and_then(|shape| of_shape(shape).ok());
            kept_shape.filter(|nodes| nodes.len() == ranks as usize).unwrap_or_else(|| (0..ranks).collect())
        }
    };
    if nodes.len() != ranks as usize {
        return Err(placing.other_size(ranks.into(), "ranks", nodes.len() as u64, "accelerators"));
    }
    network.check_nodes(&*topology, &nodes)?;
    Ok(Some(Placement::Nodes(nodes)))
}

/// Keeps the places of a schedule that has nodes on switches. A switch has its neighbors, so ranks cannot move to
/// others.
fn place_with_switches(
    placing: &Placing,
    network: &Network,
    topology: &dyn Topology,
) -> Result<Option<Placement>, PlanError> {
    let Some(Placement::Nodes(kept)) = placing.kept else {
        placing.refuse_switches()?;
        return Ok(None);
    };
    let keeps = placing.before == Some(placing.machine);
    let (ranks, _) = kept.split_at(kept.len().min(placing.ranks() as usize));
    let asked = match placing.part {
        Part::All | Part::Nodes(_) => None,
        Part::Places(places) => Some(places.clone()),
        Part::Shape(shape) => Some(AcceleratorGrid::new(&network.name, &topology.extents(), Some(*shape))?.nodes),
    };
    if keeps && asked.is_none_or(|asked| asked == ranks) {
        return Ok(Some(Placement::Nodes(kept.clone())));
    }
    let moved = |found| PlanError::MovedSwitches { found, machine: network.name.clone() };
    placing.schedule.check_ranks_only().map_err(moved)?;
    Ok(None)
}

/// Returns whether accelerators have the numbers that they have on the machine before: the same one, as far as links
/// and switches did not fail.
fn keeps_places(before: Option<&Machine>, network: &Network, topology: &dyn Topology) -> Result<bool, PlanError> {
    let Some(before) = before.and_then(Machine::get::<Network>) else { return Ok(false) };
    if before == network {
        return Ok(true);
    }
    let whole = |network: &Network| Network { failed: Vec::new(), ..network.clone() };
    Ok(whole(before) == whole(network) && before.topology(&before.name)?.kept() == topology.kept())
}

const FAILED: &str =
    "links or nodes of the machine failed, in every plane; packets take the shortest ways that are left";

const ONE_MODEL: &str =
    "queue_depth and noop_probability are a wafer's, and packets have no model to choose; drop them";

/// Packet by packet, where the schedule is placed.
fn simulate(proven: &VerifiedFile, options: &RunOptions) -> Result<Run, RunError> {
    if options.for_wafers() || options.model.is_some() {
        return Err(RunError::Options(ONE_MODEL));
    }
    let network: &Network = machine_of(proven.file());
    let places = proven.file().placement.as_ref().and_then(Placement::nodes).unwrap_or_default().to_vec();
    let begin = Instant::now();
    let interconnect = Interconnect::new(network)?;
    let engines = |node: NodeId| interconnect.computing.engines(places.get(node.index()).copied().unwrap_or(node.0));
    let graph = with_switches(proven.verified(), engines, charges(network))?;
    let mut hosts = options.in_ticks()?;
    let ranks = proven.file().schedule.collective().ranks as usize;
    if !hosts.start.is_empty() {
        if hosts.start.len() != ranks {
            return Err(not_of_each_rank(hosts.start.len(), ranks).into());
        }
        // Switches are ready from the beginning.
        hosts.start.resize(graph.rank_count() as usize, 0);
    }
    let options = packets::Options { hosts, places, ..packets::Options::default() };
    let mut run = packets::run(&graph, &interconnect, &options)?;
    run.hosts.finish.truncate(ranks);
    Ok(Run::on_network(run, TICKS_PER_NS, network.planes, begin.elapsed().as_secs_f64()))
}

/// What tasks are charged in picoseconds.
pub(crate) fn charges(network: &Network) -> Charges {
    let copy_per_byte = network.copy_ns_per_byte * TICKS_PER_NS;
    Charges { launch: rounded(network.launch_ns * TICKS_PER_NS), copy_per_byte }
}

fn not_of_each_rank(found: usize, ranks: usize) -> SimError {
    SimError::Unsupported {
        what: "the number of starting times",
        found: found.to_string(),
        accepted: format!("one for each of {ranks} ranks"),
    }
}

/// The accelerators themselves where no shape names them.
fn part_of(file: &File) -> Result<Part, PlanError> {
    let network: &Network = machine_of(file);
    let Some(nodes) = file.placement.as_ref().and_then(Placement::nodes) else { return first_ranks(file) };
    let (nodes, _) = nodes.split_at(nodes.len().min(file.schedule.collective().ranks as usize));
    let shape = AcceleratorGrid::shape(nodes, &network.topology(&network.name)?.extents());
    Ok(shape.map_or_else(|| Part::Places(nodes.to_vec()), Part::Shape))
}

fn part(part: AcceleratorGrid) -> (Vec<u32>, Extents) {
    let extents = Extents::new(&part.extents).unwrap_or_else(|| line(part.nodes.len()));
    (part.nodes, extents)
}

/// Ranks in a row. A part without ranks is refused where the collective is made.
fn line(ranks: usize) -> Extents {
    Extents::new(&[narrow(ranks.max(1))]).expect("one dimension with a rank")
}

/// A candidate without a closed form is ranked if its schedule has at most this many instructions, which take part of a
/// second to time.
const MOST_RANKED: u64 = 1 << 18;

/// The same in switches: their messages take less time, because each goes over one link.
const MOST_RANKED_IN_SWITCHES: u64 = 5 << 17;

/// A candidate with exchanges in closed form is timed by the messages of its schedule if it has at most this many
/// instructions.
const MOST_BY_TIMETABLE: u64 = 1 << 15;

/// The same of trees, whose own timetable knows no send machines and no sums.
const MOST_TREES_BY_TIMETABLE: u64 = 1 << 18;

/// Prices of messages for algorithms that choose their shape by them, for ranks arranged by `extents`.
pub(crate) fn prices(part: &NetworkPart, extents: Extents) -> Ranks {
    // A message between any two ranks goes half of the longest way.
    let hops = f64::from(part.topology.diameter().max(2)) / 2.0;
    Ranks {
        latency_ns: hops * part.model.speeds().mean_ns() + part.model.overhead_ns / 2.0 + part.model.signal_ns,
        issue_ns: part.model.overhead_ns / 2.0,
        signal_ns: part.model.signal_ns,
        ns_per_byte: 1.0 / part.network.injection_bytes_per_ns(&*part.topology),
        reduce_ns_per_byte: part.model.reduce_ns_per_byte,
        node_ranks: None,
        dealt_node_ranks: None,
        extents: Some(extents),
    }
}

/// With the model of packets, candidates are simulated that are predicted to take at most so many times as long as the
/// best, while all of them together take at most so many steps of the simulator (some 10 s). The best is always
/// simulated.
const WORTH: f64 = 4.0;
const MOST_STEPS: u128 = 1 << 32;
/// At least: half of the instructions send a packet.
const STEPS_OF_INSTRUCTION: u128 = 200;

/// Packets agree with a timetable that differs by no more than this share of its time.
const AGREES: f64 = 0.02;

const NOT_SIMULATED: &str = "candidates whose source is not simulated are ranked last: they are predicted to take over 4 \
    times as long as the best, or their simulation would take too long";

impl OnNetwork {
    /// By the simulator; `None` if that is more work than is left.
    fn simulated(
        &self,
        interconnect: &Interconnect,
        (schedule, placement): (&Schedule, Option<&Placement>),
        name: &str,
        left: &mut Option<u128>,
    ) -> Result<Option<Time>, PlanError> {
        let failed =
            |message: String| PlanError::NotTimed { algorithm: name.to_owned(), model: self.model.name(), message };
        let places = self.places(placement);
        let engines = |node: NodeId| interconnect.computing.engines(places[node.index()]);
        let charges = charges(&self.part.network);
        let graph = draft_with_switches(schedule, engines, charges).map_err(|e| failed(e.to_string()))?;
        let of_sim = |e: SimError| match e {
            SimError::OverLimit(over) => over.into(),
            other => failed(other.to_string()),
        };
        let (_, steps) = packets::effort(&graph, interconnect).map_err(of_sim)?;
        if left.is_some_and(|left| steps > left) {
            return Ok(None);
        }
        *left = Some(left.unwrap_or(MOST_STEPS).saturating_sub(steps));
        let options = packets::Options { places: places.to_vec(), ..packets::Options::default() };
        let run = packets::run(&graph, interconnect, &options).map_err(of_sim)?;
        Ok(Some(Time::from_ns(run.hosts.makespan as f64 / TICKS_PER_NS)))
    }

    /// The node of the network for each node of a schedule: where a placement has some of them on switches, its own.
    fn places<'a>(&'a self, placement: Option<&'a Placement>) -> &'a [u32] {
        let ranks = self.part.model.places();
        placement.and_then(Placement::nodes).filter(|nodes| nodes.len() > ranks.len()).unwrap_or(ranks)
    }

    /// Checks the placement of a schedule of any origin that has nodes on switches.
    fn check_switches(&self, schedule: &Schedule, placement: Option<&Placement>) -> Result<(), PlanError> {
        let machine = self.machine();
        let Err(found) = schedule.check_ranks_only() else { return Ok(()) };
        let Some(placement) = placement else {
            return Err(PlanError::Switches { found, machine: machine.name().to_owned(), kind: machine.kind() });
        };
        let mut wrong = Diagnostics::default();
        placement.check(schedule, Some(&machine), &mut wrong);
        match wrong.into_vec().into_iter().next() {
            None => Ok(()),
            Some(first) => Err(PlanError::NotTimed {
                algorithm: schedule.origin().to_owned(),
                model: self.model.name(),
                message: first.to_string(),
            }),
        }
    }

    fn schedule_time(
        &self,
        schedule: &Schedule,
        placement: Option<&Placement>,
        algorithm: &str,
    ) -> Result<Time, PlanError> {
        self.schedule_within(schedule, placement, algorithm, f64::INFINITY).map(|time| time.expect("no time is longer"))
    }

    /// `None` where the timetable finds that the schedule takes longer than `most_ns`.
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

    /// The time of a candidate, from its exchanges in closed form, or from the messages of its schedule; `None` where
    /// these are found to take longer than `most_ns`.
    fn timed_within(
        &self,
        collective: Collective,
        algorithm: &'static dyn Algorithm,
        params: Params,
        most_ns: f64,
    ) -> Result<Option<Timed>, PlanError> {
        let case = self.case(collective);
        let timed = |params, time, source| Some(Timed { algorithm, params, time, source, estimate: None });
        let profile = algorithm.profile(&case, &params);
        let instructions = algorithm.size(&case, &params).instructions;
        let is_small = instructions.is_some_and(|n| n <= MOST_BY_TIMETABLE);
        if let Some(Profile::Exchanges(exchanges)) = profile.as_ref().filter(|_| !is_small) {
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

impl Target for OnNetwork {
    fn machine(&self) -> Machine {
        Machine::from(self.part.network.clone())
    }

    fn machine_name(&self) -> &str {
        &self.part.network.name
    }

    fn shape(&self) -> Vec<u32> {
        self.extents.dims().to_vec()
    }

    fn ranks(&self) -> u32 {
        self.part.model.ranks()
    }

    fn model(&self) -> &'static str {
        self.model.name()
    }

    fn part(&self) -> &dyn Any {
        &self.part
    }

    fn case(&self, collective: Collective) -> Case<'_> {
        Case::on_network(collective, prices(&self.part, self.extents), &self.part.fabric)
    }

    /// Returns whether the candidate must be built to be timed and its schedule is huge.
    fn is_slow(&self, collective: Collective, algorithm: &dyn Algorithm, params: &Params) -> bool {
        let case = self.case(collective);
        let in_switches = algorithm.info().needs.contains(&Means::ReducingSwitches);
        let most = if in_switches { MOST_RANKED_IN_SWITCHES } else { MOST_RANKED };
        algorithm.size(&case, params).instructions.is_none_or(|n| n > most)
            && algorithm.profile(&case, params).is_none()
    }

    fn time(
        &self,
        collective: Collective,
        algorithm: &'static dyn Algorithm,
        params: Params,
    ) -> Result<Timed, PlanError> {
        self.timed_within(collective, algorithm, params, f64::INFINITY).map(|timed| timed.expect("no time is longer"))
    }

    /// The model of packets ranks by simulations, in which another candidate may be the best.
    fn time_within(
        &self,
        collective: Collective,
        algorithm: &'static dyn Algorithm,
        params: Params,
        most: Time,
    ) -> Result<Option<Timed>, PlanError> {
        let most_ns = match self.model {
            // Of times that differ by less than this none is dropped.
            Model::Links => most.seconds * 1e9 * (1.0 + 1e-9) + 1e-3,
            Model::Packets(_) => f64::INFINITY,
        };
        self.timed_within(collective, algorithm, params, most_ns)
    }

    /// The first one always, others while the steps that are left suffice.
    fn simulate_best(&self, collective: Collective, timed: &mut [Timed]) -> Result<(), PlanError> {
        let Model::Packets(interconnect) = &self.model else { return Ok(()) };
        let most = timed.first().map_or(0.0, |best| best.time.seconds * WORTH);
        let (mut left, mut left_out) = (None, LeftOut::default());
        for one in timed.iter_mut().take_while(|one| one.time.seconds <= most) {
            check();
            let (algorithm, case) = (one.algorithm, self.case(collective));
            let instructions = algorithm.size(&case, &one.params).instructions.unwrap_or(0);
            if left.is_some_and(|left| STEPS_OF_INSTRUCTION * u128::from(instructions) > left) {
                continue;
            }
            let simulated = build(algorithm, &case, &one.params).and_then(|placed| {
                let on = (&placed.schedule, placed.placement.as_ref());
                self.simulated(interconnect, on, algorithm.name(), &mut left)
            });
            match simulated {
                Ok(Some(time)) => (one.time, one.source) = (time, TimeSource::Simulated),
                // Closed forms also time schedules that are too large to be built.
                Ok(None) | Err(PlanError::Algorithm(AlgorithmError::Unsupported { .. } | AlgorithmError::Build(_))) => {
                }
                Err(PlanError::OverLimit(over)) => left_out.add(algorithm, &one.params, over),
                Err(e) => return Err(e),
            }
        }
        left_out.remark("not simulated");
        Ok(())
    }

    /// By the timetable of its messages after a closed form, and by packets after the timetable.
    fn refined(
        &self,
        collective: Collective,
        best: &Timed,
        left: &mut u128,
    ) -> Result<Option<(Time, TimeSource)>, PlanError> {
        let (algorithm, case) = (best.algorithm, self.case(collective));
        let instructions = algorithm.size(&case, &best.params).instructions.unwrap_or(u64::MAX);
        let steps = STEPS_OF_INSTRUCTION * u128::from(instructions);
        let is_closed = matches!(best.source, TimeSource::Exchanges | TimeSource::Trees);
        let is_listed = best.source == TimeSource::Messages;
        if !matches!(self.model, Model::Links) || !is_closed && !is_listed || steps > *left {
            return Ok(None);
        }
        let placed = build(algorithm, &case, &best.params)?;
        let (schedule, placement) = (&placed.schedule, placed.placement.as_ref());
        if is_closed {
            *left -= steps;
            return Ok(Some((self.schedule_time(schedule, placement, algorithm.name())?, TimeSource::Messages)));
        }
        let interconnect = Interconnect::new(&self.part.network)?;
        let mut most = Some(*left);
        let simulated = self.simulated(&interconnect, (schedule, placement), algorithm.name(), &mut most)?;
        *left = most.unwrap_or(0);
        let is_far = |time: &Time| (time.seconds / best.time.seconds - 1.0).abs() > AGREES;
        Ok(simulated.filter(is_far).map(|time| (time, TimeSource::Simulated)))
    }

    fn is_estimated(&self, timed: &Timed) -> bool {
        matches!(self.model, Model::Packets(_)) && timed.source != TimeSource::Simulated
    }

    fn build(&self, collective: Collective, candidate: &Timed) -> Result<Placed, PlanError> {
        let placed = build(candidate.algorithm, &self.case(collective), &candidate.params)?;
        let places = self.places(placed.placement.as_ref()).to_vec();
        Ok(Placed { placement: Some(Placement::Nodes(places)), ..placed })
    }

    fn certificate(&self, collective: Collective) -> Result<BoundCertificate, PlanError> {
        BoundCertificate::of(&collective, &self.part)
    }

    fn among(&self, ranks: &[u32]) -> (Part, bool) {
        let places: Vec<u32> = ranks.iter().map(|&rank| self.part.model.places()[rank as usize]).collect();
        // Whole rows of a network stay rows.
        let first = is_first(&places).then(|| Shape::line(narrow(places.len())));
        (first.map_or(Part::Places(places), Part::Shape), true)
    }

    fn details(&self, plan: &Plan) -> Result<Details, PlanError> {
        // A candidate that was timed by its exchanges may be too large to be built for its terms.
        let is_built = matches!(plan.best().source, TimeSource::Messages | TimeSource::Simulated);
        let built = is_built.then(|| plan.schedule().ok()).flatten();
        let is_partly_simulated = plan.candidates.iter().any(|one| self.is_estimated(one));
        let note = is_partly_simulated.then_some(NOT_SIMULATED);
        let note = if self.part.network.failed.is_empty() { note } else { Some(FAILED) };
        let terms = built.and_then(|schedule| schedule_terms(schedule).ok());
        Ok(Details { terms, note: note.map(str::to_owned), ..Details::default() })
    }

    fn predict(&self, schedule: &Schedule, placement: Option<&Placement>) -> Result<Prediction, PlanError> {
        let name = schedule.origin();
        self.check_switches(schedule, placement)?;
        let (time, source) = match &self.model {
            Model::Links => (self.schedule_time(schedule, placement, name)?, TimeSource::Messages),
            Model::Packets(interconnect) => {
                let time = self.simulated(interconnect, (schedule, placement), name, &mut None)?;
                (time.expect("the first is simulated"), TimeSource::Simulated)
            }
        };
        Ok(Prediction::new(time, source, schedule_terms(schedule).ok()))
    }

    fn baseline(&self, kind: Kind) -> &'static str {
        of_libraries(kind)
    }
}
