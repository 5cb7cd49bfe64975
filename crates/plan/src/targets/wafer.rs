//! Wafers: rank k is PE k of a grid, times are in cycles, and a model computes times from the cost terms of phases.

use std::{any::Any, time::Instant};

use unisono_algorithms::{Algorithm, Case, Means, Params, Profile, resolve};
use unisono_base::{interrupt, limits, narrow};
use unisono_collective::{Collective, Kind};
use unisono_cost::{
    Time,
    wafer::{MODELS, Model, WaferPart, find_model, measure},
};
use unisono_lower::{
    Estimate, File, GridPlacement, OnGrid, Placed, Placement, VerifiedFile,
    wafer::{LowerError, WaferProgram, lower, packing},
};
use unisono_machine::{Machine, Shape, Wafer};
use unisono_schedule::{Schedule, stored::unpacked, verify::Method};
use unisono_sim::fabric::{self, Calibration, Measurement, TraceRequest};

use super::{Placing, TargetKind, machine_of, no_part, opened, require};
use crate::{
    MemoryReport, Part, PhaseReport, Plan, PlanError, Prediction, Request, Run, RunError, RunOptions, Target,
    TimeSource, Timed,
    candidates::{NEAR, TIMING, build, simulate_nearest},
    run,
    target::Details,
};

struct OnWafer {
    machine: Machine,
    shape: Shape,
    part: WaferPart,
    model: &'static dyn Model,
    /// The model of rings. Lemma 6.1, which `paper` follows, counts half of a ring's work, so `paper` would predict
    /// half the time of a ring. Only users who name `paper` get this model for rings.
    of_rings: &'static dyn Model,
    /// True if the best candidates are simulated, because the user named no model.
    is_checked: bool,
}

pub const KIND: TargetKind = TargetKind {
    name: "wafer",
    offers: &[Means::Grid],
    compares: &[],
    baseline,
    open: |request| opened(request, on_wafer),
    place,
    simulator: &run::FABRIC,
    simulate,
    simulate_beside: None,
    part: part_of,
};

fn on_wafer(request: &Request, wafer: &Wafer) -> Result<OnWafer, PlanError> {
    // A wavelet carries 32 bits. Of the types of 16 bits, programs of PEs support only integers, two in a wavelet.
    if request.dtype.bytes() < 4 && packing(request.dtype).is_none() {
        return Err(LowerError::Dtype { found: request.dtype.name() }.into());
    }
    let shape = wafer.choose(match request.part {
        Part::All => None,
        Part::Shape(shape) => Some(shape),
        Part::Nodes(_) | Part::Places(_) => return Err(no_part(request, "a shape, N or MxN")),
    })?;
    // The model `paper` averages the load of all links, which is misleading on a grid.
    let own = if shape.grid.is_line() { "paper" } else { "links" };
    let part = WaferPart { grid: shape.grid, depth_cycles: wafer.depth_cycles(), clock_mhz: wafer.clock_mhz };
    let [named, of_rings] = [own, "links"].map(|own| model(request.model.unwrap_or(own)));
    Ok(OnWafer {
        machine: request.machine.clone(),
        shape,
        part,
        model: named?,
        of_rings: of_rings?,
        is_checked: request.model.is_none(),
    })
}

/// Places node k on PE k of a shape: the requested shape, or the shape of the present placement on this or another
/// machine, the machine's own shape, or a row.
fn place(placing: &Placing) -> Result<Option<Placement>, PlanError> {
    placing.refuse_places()?;
    let wafer: &Wafer = placing.machine.get().expect("the kind of the machine");
    let nodes = placing.schedule.node_count() as u64;
    let kept = placing.kept.and_then(Placement::grid);
    let request = placing.shape().or(kept.map(GridPlacement::shape));
    let shape = match wafer.choose(request.or(placing.was)) {
        Ok(shape) if request.is_some() || shape.grid.count() == nodes => shape,
        _ => wafer.choose(Some(Shape::line(narrow(nodes))))?,
    };
    if shape.grid.count() != nodes {
        return Err(placing.other_size(nodes, "nodes", shape.grid.count(), "PEs"));
    }
    let kept = kept.filter(|kept| kept.grid == shape.grid).cloned();
    Ok(Some(Placement::Grid(kept.unwrap_or_else(|| GridPlacement::new(shape.grid)))))
}

const RANKS_ONLY: &str = "model, late and noise are for ranks; on a wafer there are queue_depth and noop_probability";
/// The most PEs in a trace. Viewers cannot open larger files.
const MOST_TRACED: usize = 4096;

/// Simulates a schedule with data on the fabric, wavelet by wavelet.
fn simulate(proven: &VerifiedFile, options: &RunOptions) -> Result<Run, RunError> {
    let (program, wafer, options) = lowered(proven, options)?;
    let begin = Instant::now();
    let run = fabric::run(&program, &options)?;
    let schedule = &proven.file().schedule;
    let (phases, elements) = (schedule.phases().to_vec(), schedule.collective().elements);
    Ok(Run::on_fabric(run, elements, wafer.clock_mhz, phases, begin.elapsed().as_secs_f64()))
}

/// Measures a schedule on a wafer by the method of "Near-Optimal Wafer-Scale Reduce", section 8.3.
///
/// # Errors
/// Returns the errors of [`crate::simulate`], or an error if the machine is not a wafer.
pub fn measure_on_fabric(
    proven: &VerifiedFile,
    options: &RunOptions,
    calibration: &Calibration,
) -> Result<Measurement, RunError> {
    let machine = proven.file().machine.as_ref().ok_or(PlanError::NoMachine)?;
    require(machine, Means::Grid, "measurements are made on")?;
    let (program, _, options) = lowered(proven, options)?;
    Ok(fabric::measure(&program, &options, calibration)?)
}

/// Returns the program of a schedule, its wafer, and the options of the simulator.
fn lowered<'a>(
    proven: &VerifiedFile<'a>,
    options: &RunOptions,
) -> Result<(WaferProgram, &'a Wafer, fabric::Options), RunError> {
    if options.for_ranks() {
        return Err(RunError::Options(RANKS_ONLY));
    }
    let file = proven.file();
    let wafer: &Wafer = machine_of(file);
    let no_placement = || PlanError::NoPlacement { machine: wafer.name.clone() };
    let placement = file.placement.as_ref().and_then(Placement::grid).ok_or_else(no_placement)?;
    if !(0.0..1.0).contains(&options.noop_probability) {
        return Err(RunError::Probability { found: options.noop_probability });
    }
    let mut pes = options.traced.clone();
    pes.sort_unstable();
    pes.dedup();
    if pes.len() > MOST_TRACED {
        return Err(RunError::Traced { found: pes.len(), most: MOST_TRACED });
    }
    let nodes = file.schedule.node_count();
    if let Some(&found) = pes.last().filter(|&&pe| pe as usize >= nodes) {
        return Err(RunError::NoSuchPe { found, last: nodes - 1 });
    }
    let fabric = fabric::Options {
        ramp_latency: wafer.ramp_latency_cycles,
        queue_depth: options.queue_depth.unwrap_or(wafer.queue_depth),
        noop_probability: options.noop_probability,
        seed: options.seed,
        trace: TraceRequest { pes },
        ..fabric::Options::default()
    };
    Ok((lower(proven.verified(), placement, wafer)?, wafer, fabric))
}

fn part_of(file: &File) -> Result<Part, PlanError> {
    let grid = file.placement.as_ref().and_then(Placement::grid);
    Ok(grid.map_or(Part::All, |grid| Part::Shape(grid.shape())))
}

fn model(name: &str) -> Result<&'static dyn Model, PlanError> {
    find_model(name).ok_or_else(|| PlanError::Model {
        found: name.to_owned(),
        accepted: MODELS.iter().map(|m| m.name()).collect::<Vec<_>>().join(", "),
    })
}

const IMPROVED_STAR: &str = "the paper's improved form for star leaves out the first hop, so the ratio may go under 1";
const LEMMA_RING: &str = "Lemma 6.1 counts the larger of what a PE of the ring sends and receives, and its datapath does \
    both: on the fabric the ring may take twice as long, as the model links counts";
const RING_BY_LINKS: &str = "the time of the ring is by the model links, because Lemma 6.1 of the model paper counts half of \
    its work";
const WIDE: &str = "an element takes two wavelets here, which no program of a PE does: such schedules are proved, and neither \
    simulated nor emitted";
const SIMULATED: &str = "the time is of a simulation, since the model errs by more than the best candidates differ; \
    cycles and terms of phases are by the model, so they do not add up to the time";
const AVERAGED: &str = "Eq. 1 averages the load over all links, so on a grid it may go under what its busiest link can \
    carry; the model links does not";

const NOT_SIMULATED: &str = "not all candidates near the best one were simulated, because that takes long; another one may be \
    faster";

/// A simulated time and the model's time agree if each is at most this multiple of the other.
const AGREES: f64 = 1.02;
/// The most steps of the simulations that check a choice (about 0.2 s).
const MOST_STEPS: f64 = 2_097_152.0;
/// The steps of a simulation that take as long as one instruction of an alltoall, and as one cycle of a PE in an
/// alltoall. They are few, because the simulator skips the repeated moves of the alltoall's long operations. Both are
/// measured on lines and grids of 12 to 256 PEs.
const STEPS_OF_INSTRUCTION: f64 = 14.0;
const STEPS_OF_CYCLE: f64 = 0.125;
/// The elementary steps that the limit must still admit before a choice is checked: for the simulations, and for the
/// proofs before them.
const ADMITTED_STEPS: u128 = 1 << 28;

fn baseline(kind: Kind) -> &'static str {
    match kind {
        Kind::Broadcast => "flood",
        Kind::Message => "message",
        _ => "chain",
    }
}

/// Returns the number of elements of a collective in one wavelet.
fn shared(collective: &Collective) -> u32 {
    if collective.unit == 1 { packing(collective.dtype).unwrap_or(1) } else { 1 }
}

/// Returns an error unless the elements of a collective fill all of their wavelets.
fn whole_wavelets(collective: &Collective) -> Result<(), PlanError> {
    let (each, dtype) = (shared(collective), collective.dtype.name());
    if collective.elements.is_multiple_of(each) { Ok(()) } else { Err(LowerError::Packed { dtype, each }.into()) }
}

/// Returns true if an algorithm, or one of its parts, is the ring.
fn is_ring(origin: &str) -> bool {
    origin.split_whitespace().any(|word| word == "ring" || word.ends_with("=ring"))
}

impl OnWafer {
    fn wafer(&self) -> &Wafer {
        self.machine.get().expect("the kind of the machine")
    }

    /// Returns the model for the algorithm whose name and parameters are `origin`.
    fn model_of(&self, origin: &str) -> &'static dyn Model {
        if is_ring(origin) { self.of_rings } else { self.model }
    }

    fn cycles(&self, estimate: &Estimate, origin: &str) -> Time {
        Time::from_cycles(self.model_of(origin).cycles(estimate, self.part.depth_cycles), self.part.clock_mhz)
    }

    /// Returns the cost terms of a placed schedule; a phase has the terms of its slowest line.
    fn measured(&self, placed: OnGrid, algorithm: &str) -> Result<Estimate, PlanError> {
        let phases = measure(placed).map_err(|found| PlanError::NotProved {
            algorithm: algorithm.to_owned(),
            message: found.first().map_or_else(String::new, ToString::to_string),
        })?;
        Ok(self.model.slowest(phases, self.part.depth_cycles))
    }

    /// Returns the cost that the schedule's own algorithm states, if this cost is more exact than the cost terms and
    /// the algorithm builds the same schedule.
    fn stated(&self, placed: OnGrid) -> Result<Option<Estimate>, PlanError> {
        let (schedule, case) = (placed.schedule, self.case(*placed.schedule.collective()));
        let mut words = schedule.origin().split_whitespace();
        let name = words.next().unwrap_or_default();
        let given = words.filter_map(|word| word.split_once('=')).fold(Params::new(), |all, (k, v)| all.with(k, v));
        let Ok((algorithm, params)) = resolve(name, &case, &given) else { return Ok(None) };
        limits::admit(TIMING, 0, algorithm.size(&case, &params).profile_steps)?;
        let Some(Profile::Terms(estimate)) = algorithm.profile(&case, &params) else { return Ok(None) };
        if estimate.phases.iter().all(|phase| phase.sharper.is_none() && phase.in_turn.is_none()) {
            return Ok(None);
        }
        let mut again = self.built(*placed.schedule.collective(), algorithm, &params)?;
        again.schedule.set_origin(schedule.origin());
        // A code target may change colors and the pace of leaves, which do not affect the terms.
        let timed = |p: &GridPlacement| GridPlacement { colors: Vec::new(), pace: 1, ..p.clone() };
        let same = again.schedule == *schedule
            && again.grid().is_some_and(|grid| timed(grid.placement) == timed(placed.placement));
        Ok(same.then_some(estimate))
    }

    /// Builds the schedule of an algorithm over the elements of a collective.
    fn built(&self, collective: Collective, algorithm: &dyn Algorithm, params: &Params) -> Result<Placed, PlanError> {
        whole_wavelets(&collective)?;
        let placed = build(algorithm, &self.case(collective), params)?;
        if shared(&collective) == 1 {
            return Ok(placed);
        }
        Ok(Placed { schedule: unpacked(&placed.schedule), ..placed })
    }

    /// Returns true if the candidates of a collective are simulated, as long as this does not take too long.
    fn checks(&self, collective: Collective) -> bool {
        self.is_checked && collective.element_bytes() <= 4 && collective.unit == 1
    }

    /// Returns the most cycles of PEs in the simulations that check a choice.
    fn most_steps(&self, collective: Collective, timed: &[Timed]) -> f64 {
        let case = self.case(collective);
        let instructions = |one: &Timed| one.algorithm.size(&case, &one.params).instructions;
        match timed.first().and_then(instructions) {
            Some(count) if collective.kind == Kind::Alltoall => {
                MOST_STEPS.max((MOST_STEPS - STEPS_OF_INSTRUCTION * count as f64) / STEPS_OF_CYCLE)
            }
            _ => MOST_STEPS,
        }
    }

    fn phases(&self, estimate: &Estimate, origin: &str) -> Vec<PhaseReport> {
        let report = |p: &unisono_lower::Phase| PhaseReport {
            name: p.name.clone(),
            cycles: self.model_of(origin).phase(p, self.part.depth_cycles).0,
            terms: p.terms,
            note: p.note.clone().or_else(|| p.sharper.map(|s| s.why.to_owned())),
        };
        estimate.phases.iter().map(report).collect()
    }
}

impl Target for OnWafer {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn shape(&self) -> Vec<u32> {
        self.shape.dims()
    }

    fn model(&self) -> &'static str {
        self.model.name()
    }

    fn part(&self) -> &dyn Any {
        &self.part
    }

    /// Returns the case of a collective for algorithms, which count in wavelets: the elements that share a wavelet are
    /// one unit.
    fn case(&self, collective: Collective) -> Case<'_> {
        let unit = shared(&collective);
        let collective =
            Collective { elements: collective.elements / unit, unit: collective.unit * unit, ..collective };
        Case::on_grid(collective, self.shape.grid, self.part.depth_cycles)
    }

    fn steps(&self, collective: Collective, algorithm: &dyn Algorithm, params: &Params) -> u128 {
        algorithm.size(&self.case(collective), params).profile_steps
    }

    /// Times a candidate by its closed form, or by its schedule if it has no closed form.
    fn time_within(
        &self,
        collective: Collective,
        algorithm: &'static dyn Algorithm,
        params: Params,
        _: Option<Time>,
    ) -> Result<Option<Timed>, PlanError> {
        interrupt::check();
        limits::admit(TIMING, 0, self.steps(collective, algorithm, &params))?;
        whole_wavelets(&collective)?;
        let case = self.case(collective);
        let estimate = match algorithm.profile(&case, &params) {
            Some(Profile::Terms(estimate)) => estimate,
            _ => {
                let placed = self.built(collective, algorithm, &params)?;
                self.measured(placed.grid().expect("a schedule on a wafer is placed"), algorithm.name())?
            }
        };
        let time = self.cycles(&estimate, &format!("{} {params}", algorithm.name()));
        Ok(Some(Timed { algorithm, params, time, source: TimeSource::Terms, estimate: Some(estimate) }))
    }

    /// Simulates the candidates with the shortest predictions. If the simulations confirm the first candidate and its
    /// time within [`AGREES`], all candidates keep the model's times.
    fn simulate_best(&self, collective: Collective, timed: &mut [Timed], is_choice: bool) -> Result<bool, PlanError> {
        if !is_choice || !self.checks(collective) {
            return Ok(false);
        }
        let predicted: Vec<_> = timed.iter().map(|one| (one.time, one.source)).collect();
        let file = |one: &Timed| {
            let Placed { schedule, placement } = self.build(collective, one)?;
            Ok(File { schedule, placement, machine: Some(self.machine.clone()), blocks: None })
        };
        if limits::check(TIMING, 0, ADMITTED_STEPS).is_ok() {
            let most = self.most_steps(collective, timed);
            match simulate_nearest(self, timed.iter_mut(), most, &file) {
                Ok(_) | Err(PlanError::OverLimit(_)) => {}
                Err(e) => return Err(e),
            }
        }
        let seconds = |one: &Timed| one.time.seconds;
        let is_simulated = |one: &&Timed| one.source == TimeSource::Simulated;
        let best = timed.iter().filter(is_simulated).map(seconds).fold(f64::INFINITY, f64::min);
        let near = NEAR * if best.is_finite() { best } else { timed.first().map_or(0.0, seconds) };
        let is_unchecked = timed.iter().any(|one| !is_simulated(&one) && one.time.seconds < near);
        if let (Some(first), Some((time, _))) = (timed.first(), predicted.first()) {
            let [least, most] = [time.seconds / AGREES, time.seconds * AGREES];
            if is_simulated(&first)
                && (least..=most).contains(&first.time.seconds)
                && first.time.seconds <= best * AGREES
            {
                for (one, before) in timed.iter_mut().zip(predicted) {
                    (one.time, one.source) = before;
                }
            }
        }
        Ok(is_unchecked)
    }

    fn is_estimated(&self, timed: &Timed) -> bool {
        self.is_checked && timed.source != TimeSource::Simulated
    }

    /// Simulates a schedule on the fabric. A step is one predicted cycle of one PE.
    fn simulated(
        &self,
        predicted: Time,
        left: &mut f64,
        file: &dyn Fn() -> Result<File, PlanError>,
    ) -> Result<Option<Time>, PlanError> {
        let steps = predicted.cycles.map_or(f64::INFINITY, |cycles| cycles * self.shape.grid.count() as f64);
        if steps > *left {
            return Ok(None);
        }
        *left -= steps;
        let file = file()?;
        let algorithm = || file.schedule.origin().to_owned();
        let proven = VerifiedFile::new(&file, Method::Auto).map_err(|proof| PlanError::NotProved {
            algorithm: algorithm(),
            message: proof.diagnostics.first().map_or_else(String::new, ToString::to_string),
        })?;
        match simulate(&proven, &RunOptions::default()) {
            Ok(run) => Ok(run.cycles.map(|cycles| Time { seconds: run.seconds, cycles: Some(cycles as f64) })),
            Err(RunError::Plan(e)) => Err(e),
            Err(RunError::OverLimit(_) | RunError::Fabric(fabric::SimError::OverLimit(_))) => Ok(None),
            Err(e) => {
                Err(PlanError::NotTimed { algorithm: algorithm(), model: run::FABRIC.name, message: e.to_string() })
            }
        }
    }

    fn build(&self, collective: Collective, candidate: &Timed) -> Result<Placed, PlanError> {
        limits::admit(TIMING, 0, self.steps(collective, candidate.algorithm, &candidate.params))?;
        self.built(collective, candidate.algorithm, &candidate.params)
    }

    fn details(&self, plan: &Plan) -> Result<Details, PlanError> {
        let best = plan.best();
        let estimate = best.estimate.as_ref().expect("a time on a wafer has its terms");
        let note = plan.ratio().filter(|&ratio| ratio < 1.0).map(|_| {
            let sharper = estimate.phases.iter().any(|p| p.sharper.is_some());
            if sharper { IMPROVED_STAR } else { AVERAGED }
        });
        let origin = format!("{} {}", best.algorithm.name(), best.params);
        let note = match best.source {
            TimeSource::Simulated => Some(SIMULATED),
            _ if is_ring(&origin) && self.of_rings.name() == "paper" => Some(LEMMA_RING),
            _ if is_ring(&origin) && self.model.name() == "paper" => Some(RING_BY_LINKS),
            _ => note,
        };
        let schedule = plan.schedule()?;
        let width = plan.problem.collective.element_bytes();
        let wide = (width > 4).then_some(WIDE);
        let not_simulated = (plan.form.is_none() && plan.is_unchecked).then_some(NOT_SIMULATED);
        let notes: Vec<&str> = wide.into_iter().chain(note).chain(not_simulated).collect();
        let needed_bytes = schedule.all_nodes().map(|node| schedule.memory_elements(node) * width).max().unwrap_or(0);
        Ok(Details {
            memory: Some(MemoryReport { needed_bytes, pe_bytes: self.wafer().sram_bytes }),
            terms: Some(estimate.total()),
            phases: Some(self.phases(estimate, &origin)),
            note: (!notes.is_empty()).then(|| notes.join("; ")),
        })
    }

    fn predict(&self, schedule: &Schedule, placement: Option<&Placement>) -> Result<Prediction, PlanError> {
        let placement = placement.and_then(Placement::grid);
        let placement = placement.ok_or_else(|| PlanError::NoPlacement { machine: self.wafer().name.clone() })?;
        let placed = OnGrid { schedule, placement };
        let estimate = match self.stated(placed)? {
            Some(estimate) => estimate,
            None => self.measured(placed, schedule.origin())?,
        };
        let origin = schedule.origin();
        let of = Prediction::new(self.cycles(&estimate, origin), TimeSource::Terms, Some(estimate.total()));
        Ok(Prediction { phases: Some(self.phases(&estimate, origin)), ..of })
    }
}
