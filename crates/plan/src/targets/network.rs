//! Networks: algorithms among ranks, timed by the load of their messages on links.

mod placing;
mod simulation;
mod timing;

use std::any::Any;

use unisono_algorithms::{Algorithm, AlgorithmError, Case, Means, Params, ranks::Extents};
use unisono_base::{interrupt::check, narrow};
use unisono_collective::Collective;
use unisono_cost::{Time, endpoint::schedule_terms, network::NetworkPart};
use unisono_lower::{Placed, Placement};
use unisono_machine::{
    Machine,
    network::{AcceleratorGrid, DATA_SHEET, MachinesPer, Network, note_on_lost_rows},
};
use unisono_schedule::Schedule;
use unisono_sim::network::Interconnect;

pub(crate) use self::placing::spread;
pub use self::simulation::notes;
use self::{
    placing::{line, part, part_of, place},
    simulation::simulate,
    timing::{MOST_RANKED, MOST_RANKED_IN_SWITCHES},
};
pub(crate) use self::{simulation::charges, timing::prices};
use super::{TargetKind, no_part, opened};
use crate::{
    Part, Plan, PlanError, Prediction, Request, Target, TimeSource, Timed,
    candidates::{LeftOut, build},
    messages::of_libraries,
    run,
    target::{Details, Refined},
};

/// The model that times candidates.
enum Model {
    /// The loads of links in closed form, or a timetable of messages on links.
    Links,
    /// The packet simulator, for candidates that [`Model::Links`] predicts to take at most [`WORTH`] times as long as
    /// the best.
    Packets(Box<Interconnect>),
    /// The rule of [`Model::Links`], with the rates of the data sheet.
    DataSheet,
}

impl Model {
    const NAMES: [&str; 3] = ["links", "packets", DATA_SHEET];

    fn new(name: Option<&str>, network: &Network) -> Result<Self, PlanError> {
        match name {
            None | Some("links") => Ok(Self::Links),
            Some(DATA_SHEET) => Ok(Self::DataSheet),
            Some("packets") => Ok(Self::Packets(Box::new(Interconnect::new(network)?))),
            Some(found) => {
                let [first, second, third] = Self::NAMES;
                let accepted = format!("{first}, {second} and {third} on a network");
                Err(PlanError::Model { found: found.to_owned(), accepted })
            }
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Links => Self::NAMES[0],
            Self::Packets(_) => Self::NAMES[1],
            Self::DataSheet => Self::NAMES[2],
        }
    }
}

struct OnNetwork {
    machine: Machine,
    part: NetworkPart,
    model: Model,
    /// The number of ranks along each dimension of the part of the network; a list of accelerators has one dimension.
    extents: Extents,
    /// True if the part is a list of accelerators, whose ranks have no rows and columns.
    is_listed: bool,
}

pub const KIND: TargetKind = TargetKind {
    name: "network",
    offers: &[Means::Messages, Means::Links, Means::ReducingSwitches],
    compares: &[],
    baseline: of_libraries,
    open: |request| opened(request, on_network),
    place,
    simulator: &run::NETWORK,
    simulate,
    simulate_beside: None,
    part: part_of,
};

fn on_network(request: &Request, network: &Network) -> Result<OnNetwork, PlanError> {
    let model = Model::new(request.model, network)?;
    let sheet = matches!(model, Model::DataSheet).then(|| network.data_sheet());
    let network = sheet.as_ref().unwrap_or(network);
    let topology = network.topology(&network.name)?;
    let on_grid =
        |shape| AcceleratorGrid::of(&network.name, &*topology, shape).map_err(|e| network.with_boxes_named(e));
    let (nodes, extents) = match &request.part {
        Part::All => part(on_grid(None)?),
        Part::Shape(shape) => part(on_grid(Some(*shape))?),
        Part::Places(nodes) => (nodes.clone(), line(nodes.len())),
        Part::Nodes(_) => return Err(no_part(request, "a number of ranks, a shape, and a list of accelerators")),
    };
    // The tables of the network's links take long to compute, so the number of ranks is checked first.
    Collective::check_ranks(narrow(nodes.len()))?;
    let machine = sheet.as_ref().map_or_else(|| request.machine.clone(), |sheet| Machine::from(sheet.clone()));
    let is_listed = matches!(request.part, Part::Places(_));
    Ok(OnNetwork { machine, part: NetworkPart::new(network, nodes, extents.dims())?, model, extents, is_listed })
}

/// The model `packets` simulates candidates whose predicted time is at most this multiple of the best prediction.
const WORTH: f64 = 4.0;
/// The most simulator steps of all candidates that the model `packets` simulates (about 10 s). The best candidate is
/// always simulated.
const MOST_STEPS: u128 = 1 << 32;
/// The least simulator steps of an instruction: it is built, and half of the instructions send a packet.
const STEPS_OF_INSTRUCTION: u128 = 200;

/// The most simulator steps for which the schedule of a candidate with a closed form is built for a timetable.
const MOST_BUILT: u128 = 1 << 26;

/// Times of a timetable and of packets agree if their relative difference is at most this.
const AGREES: f64 = 0.02;

const SHORT_BUFFERS: &str = "candidates whose source is exchanges or trees may take several times as long: a buffer \
    (buffer_bytes) holds less than a link and the way of its credits, which closed forms leave out and simulations \
    count";

const FEW_SEND_MACHINES: &str = "candidates whose source is exchanges or trees may take several times as long: an \
    accelerator sends fewer messages at a time (send_machines) than it has links, which closed forms leave out and \
    simulations count";

const NOT_CHECKED: &str = "packets were not simulated, because that takes long: if they fill buffers, times are up to \
    about twice as long, and another candidate may be faster (--model packets simulates)";

const NOT_SIMULATED: &str = "candidates whose source is not simulated are ranked last: they are predicted to take over 4 \
    times as long as the best, or their simulation would take too long";

impl Target for OnNetwork {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn shape(&self) -> Vec<u32> {
        self.extents.dims().to_vec()
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

    /// Returns true if the candidate must be built to be timed, and its schedule is huge or of unknown size.
    fn is_slow(&self, collective: Collective, algorithm: &dyn Algorithm, params: &Params) -> bool {
        let case = self.case(collective);
        let in_switches = algorithm.info().needs.contains(&Means::ReducingSwitches);
        let most = if in_switches { MOST_RANKED_IN_SWITCHES } else { MOST_RANKED };
        algorithm.size(&case, params).instructions.is_none_or(|n| n > most)
            && algorithm.profile(&case, params).is_none()
    }

    /// Returns the time without a simulation. With the model `packets`, `most` does not stop a timing, because
    /// simulations may rank the candidate first.
    fn time_within(
        &self,
        collective: Collective,
        algorithm: &'static dyn Algorithm,
        params: Params,
        most: Option<Time>,
    ) -> Result<Option<Timed>, PlanError> {
        let most_ns = match (&self.model, most) {
            // A candidate that takes longer than `most` only by a rounding error is not dropped.
            (Model::Links | Model::DataSheet, Some(most)) => most.seconds * 1e9 * (1.0 + 1e-9) + 1e-3,
            _ => f64::INFINITY,
        };
        self.timed_within(collective, algorithm, params, most_ns)
    }

    /// With the model `packets`, simulates the first candidate. As long as steps remain, also simulates candidates that
    /// are predicted to take at most [`WORTH`] times as long.
    fn simulate_best(&self, collective: Collective, timed: &mut [Timed], _: bool) -> Result<bool, PlanError> {
        let Model::Packets(interconnect) = &self.model else { return Ok(false) };
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
                self.packet_time(interconnect, on, algorithm.name(), &mut left)
            });
            match simulated {
                Ok(Some(found)) => (one.time, one.source) = found,
                // Closed forms also give times of schedules that are too large to build.
                Ok(None) | Err(PlanError::Algorithm(AlgorithmError::Unsupported { .. } | AlgorithmError::Build(_))) => {
                }
                Err(PlanError::OverLimit(over)) => left_out.add(algorithm, &one.params, over),
                Err(e) => return Err(e),
            }
        }
        left_out.remark("not simulated");
        Ok(false)
    }

    /// Replaces a time by a finer one: a closed form by the timetable of messages, or a timetable by packets.
    fn refined(&self, collective: Collective, best: &Timed, left: &mut u128) -> Result<Refined, PlanError> {
        let (algorithm, case) = (best.algorithm, self.case(collective));
        let instructions = algorithm.size(&case, &best.params).instructions.unwrap_or(u64::MAX);
        let steps = STEPS_OF_INSTRUCTION * u128::from(instructions);
        let is_closed = matches!(best.source, TimeSource::Exchanges | TimeSource::Trees);
        let is_listed = best.source == TimeSource::Messages;
        if matches!(self.model, Model::Packets(_)) || !is_closed && !is_listed {
            return Ok(Refined::Agrees);
        }
        if steps > *left || is_closed && steps > MOST_BUILT {
            return Ok(Refined::TooLarge);
        }
        let placed = build(algorithm, &case, &best.params)?;
        let (schedule, placement) = (&placed.schedule, placed.placement.as_ref());
        if is_closed {
            *left -= steps;
            let time = self.schedule_time(schedule, placement, algorithm.name())?;
            return Ok(Refined::Finer(time, TimeSource::Messages));
        }
        let interconnect = Interconnect::new(&self.part.network)?;
        let mut most = Some(*left);
        let simulated = self.packet_time(&interconnect, (schedule, placement), algorithm.name(), &mut most)?;
        *left = most.unwrap_or(0);
        Ok(match simulated {
            None => Refined::TooLarge,
            Some((time, _)) if (time.seconds / best.time.seconds - 1.0).abs() <= AGREES => Refined::Agrees,
            Some((time, source)) => Refined::Finer(time, source),
        })
    }

    fn is_estimated(&self, timed: &Timed) -> bool {
        let is_simulated = matches!(timed.source, TimeSource::Simulated | TimeSource::Estimated);
        matches!(self.model, Model::Packets(_)) && !is_simulated
    }

    fn build(&self, collective: Collective, candidate: &Timed) -> Result<Placed, PlanError> {
        let placed = build(candidate.algorithm, &self.case(collective), &candidate.params)?;
        let places = self.places(placed.placement.as_ref()).to_vec();
        Ok(Placed { placement: Some(Placement::Nodes(places)), ..placed })
    }

    fn among(&self, ranks: &[u32]) -> (Part, bool) {
        let places: Vec<u32> = ranks.iter().map(|&rank| self.part.model.places()[rank as usize]).collect();
        // The first rows and columns of a network remain a grid.
        let shape = AcceleratorGrid::shape(&places, &*self.part.topology);
        (shape.map_or(Part::Places(places), Part::Shape), true)
    }

    fn details(&self, plan: &Plan) -> Result<Details, PlanError> {
        // A candidate that was timed by its exchanges may be too large to be built for its cost terms.
        let is_built =
            matches!(plan.best().source, TimeSource::Messages | TimeSource::Simulated | TimeSource::Estimated);
        let built = is_built.then(|| plan.schedule().ok()).flatten();
        let is_partly_simulated = plan.candidates.iter().any(|one| self.is_estimated(one));
        let is_closed = |one: &Timed| matches!(one.source, TimeSource::Exchanges | TimeSource::Trees);
        let (network, model) = (&self.part.network, &self.part.model);
        let has_closed = plan.candidates.iter().any(is_closed);
        let is_short = has_closed && network.has_short_buffers();
        let waits = network.send_machines_per == MachinesPer::Accelerator
            && model.places().iter().any(|&place| model.plane().leaving(place).len() > network.send_machines as usize);
        let notes = [
            (plan.is_unchecked && plan.form.is_none(), NOT_CHECKED),
            (is_partly_simulated, NOT_SIMULATED),
            (is_short, SHORT_BUFFERS),
            (has_closed && waits, FEW_SEND_MACHINES),
        ];
        let notes: Vec<_> = notes.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| note).collect();
        let lost = (!self.is_listed).then(|| note_on_lost_rows(&*self.part.topology, self.extents.dims())).flatten();
        let notes: Vec<_> = notes.into_iter().map(str::to_owned).chain(lost).collect();
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        let terms = built.and_then(|schedule| schedule_terms(schedule).ok());
        Ok(Details { terms, note, ..Details::default() })
    }

    fn predict(&self, schedule: &Schedule, placement: Option<&Placement>) -> Result<Prediction, PlanError> {
        let name = schedule.origin();
        self.check_switches(schedule, placement)?;
        let (time, source) = match &self.model {
            Model::Links | Model::DataSheet => (self.schedule_time(schedule, placement, name)?, TimeSource::Messages),
            Model::Packets(interconnect) => {
                let found = self.packet_time(interconnect, (schedule, placement), name, &mut None)?;
                found.expect("the first is simulated")
            }
        };
        Ok(Prediction::new(time, source, schedule_terms(schedule).ok()))
    }
}
