//! `simulate` and `measure`: schedules on simulated machines.

use std::time::Instant;

use pyo3::prelude::*;
use unisono_cost::endpoint::TICKS_PER_NS;
use unisono_lower::{
    GridPlacement, Placement,
    wafer::{LowerError, WaferProgram, lower},
};
use unisono_machine::{Endpoint, Machine as Description, Wafer, network::Network};
use unisono_sim::fabric::{self, Calibration, Options, SimError, TraceRequest};

use crate::{
    convert::index,
    endpoint,
    errors::{UnsupportedError, detached, input, simulation_error, to_python},
    schedule::Schedule,
    simulation::Simulation,
    traffic,
};

/// The most PEs of a trace: more would be no picture and no file that a viewer opens.
const MOST_TRACED: usize = 4096;

/// A simulator refuses what it has no use for.
const RANKS_ONLY: &str = "model, late and noise are for ranks; on a wafer there are queue_depth and noop_probability";
const WAFER_ONLY: &str = "queue_depth and noop_probability are a wafer's; among ranks there are late and noise";
const ONE_MODEL: &str = "queue_depth and noop_probability are a wafer's, and a network has one model; drop them";
const NO_OPTIONS: &str = "switches that reduce run registers as they are; model, queue_depth, noop_probability, late and noise are \
                          for other machines";
const NO_PORTS: &str = "switches that reduce run registers, and this schedule has none; simulate a plan of the algorithm in-network, its \
     .registers, or a .registers file";

/// Proves a schedule and runs it with the simulator of its machine: the one place that chooses among them.
#[pyfunction]
#[pyo3(signature = (schedule, model = None, queue_depth = None, noop_probability = 0.0, start_ns = None, noise = None, seed = 0, traced = None))]
#[expect(clippy::too_many_arguments, reason = "the keywords of the Python function")]
pub fn simulate(
    py: Python<'_>,
    schedule: &Schedule,
    model: Option<&str>,
    queue_depth: Option<&Bound<'_, PyAny>>,
    noop_probability: f64,
    start_ns: Option<Vec<f64>>,
    noise: Option<(String, f64, f64)>,
    seed: u64,
    traced: Option<Vec<u32>>,
) -> PyResult<Simulation> {
    let of_wafer = queue_depth.is_some() || noop_probability != 0.0;
    let of_ranks = model.is_some() || start_ns.is_some() || noise.is_some();
    let no_machine = || input("the schedule has no machine; place it with schedule.on(machine)");
    let machine = schedule.file().machine.as_ref().ok_or_else(no_machine)?;
    if machine.get::<Wafer>().is_some() {
        let refused = of_ranks.then(|| input(RANKS_ONLY));
        return refused.map_or_else(|| on_fabric(py, schedule, queue_depth, noop_probability, seed, traced), Err);
    }
    if let Some(ranks) = machine.get::<Endpoint>() {
        if of_wafer {
            return Err(input(WAFER_ONLY));
        }
        let options = endpoint::options(start_ns, noise, seed, traced, TICKS_PER_NS)?;
        return endpoint::among_ranks(py, schedule, ranks, model, options);
    }
    if let Some(network) = machine.get::<Network>() {
        if of_wafer || model.is_some() {
            return Err(input(ONE_MODEL));
        }
        let options = endpoint::options(start_ns, noise, seed, traced, TICKS_PER_NS)?;
        return traffic::on_network(py, schedule, network, options);
    }
    let registers = schedule.registers().ok_or_else(|| input(NO_PORTS))?;
    if of_wafer || of_ranks { Err(input(NO_OPTIONS)) } else { registers.simulate(py) }
}

/// A schedule that can run on the fabric: its placement, its wafer and what the run is asked for.
struct Ready<'a> {
    schedule: &'a Schedule,
    placement: &'a GridPlacement,
    wafer: &'a Wafer,
    options: Options,
}

impl<'a> Ready<'a> {
    fn new(
        schedule: &'a Schedule,
        queue_depth: Option<&Bound<'_, PyAny>>,
        noop_probability: f64,
        seed: u64,
    ) -> PyResult<Self> {
        let file = schedule.file();
        let (Some(placement), Some(wafer)) = (
            file.placement.as_ref().and_then(Placement::grid),
            file.machine.as_ref().and_then(Description::get::<Wafer>),
        ) else {
            return Err(input("the schedule has no machine; place it with schedule.on(machine)"));
        };
        if !(0.0..1.0).contains(&noop_probability) {
            return Err(input(format!("noop_probability is {noop_probability}; accepted are 0 to below 1")));
        }
        let options = Options {
            ramp_latency: wafer.ramp_latency_cycles,
            queue_depth: queue_depth.map(|d| index("queue_depth", d)).transpose()?.unwrap_or(wafer.queue_depth),
            noop_probability,
            seed,
            ..Options::default()
        };
        Ok(Self { schedule, placement, wafer, options })
    }

    /// Proves the schedule, lowers it and does something with the program.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        what: impl FnOnce(&WaferProgram, &Options) -> Result<T, SimError> + Send,
    ) -> PyResult<T> {
        let proven = self.schedule.verified(py)?;
        let done = detached(py, || {
            let program = lower(proven.verified(), self.placement, self.wafer).map_err(Failure::Lower)?;
            what(&program, &self.options).map_err(Failure::Run)
        })?;
        done.map_err(|failure| failure.into_python(py))
    }
}

/// Runs a placed schedule on the fabric of its wafer, data included.
fn on_fabric(
    py: Python<'_>,
    schedule: &Schedule,
    queue_depth: Option<&Bound<'_, PyAny>>,
    noop_probability: f64,
    seed: u64,
    traced: Option<Vec<u32>>,
) -> PyResult<Simulation> {
    let mut ready = Ready::new(schedule, queue_depth, noop_probability, seed)?;
    let file = schedule.file();
    let mut pes = traced.unwrap_or_default();
    pes.sort_unstable();
    pes.dedup();
    if pes.len() > MOST_TRACED {
        return Err(input(format!(
            "a trace of {} PEs was asked for; at most {MOST_TRACED} are recorded: name some of them, or every n-th",
            pes.len()
        )));
    }
    if let Some(pe) = pes.last().filter(|&&pe| pe as usize >= file.schedule.node_count()) {
        return Err(input(format!("PE {pe} does not exist; accepted are 0 to {}", file.schedule.node_count() - 1)));
    }
    ready.options.trace = TraceRequest { pes };
    let (run, wall_seconds) = ready.run(py, |program, options| {
        let start = Instant::now();
        Ok((fabric::run(program, options)?, start.elapsed().as_secs_f64()))
    })?;
    Ok(Simulation::on_fabric(run, ready.wafer.clock_mhz, file.schedule.phases().to_vec(), wall_seconds))
}

/// Measures a placed schedule as the paper does; the keys are those of `fabric::Measurement`.
#[pyfunction]
#[pyo3(signature = (schedule, queue_depth = None, noop_probability = 0.0, seed = 0, clock_skew = 1000, wanted_spread = None))]
pub fn measure<'py>(
    py: Python<'py>,
    schedule: &Schedule,
    queue_depth: Option<&Bound<'_, PyAny>>,
    noop_probability: f64,
    seed: u64,
    clock_skew: u32,
    wanted_spread: Option<u32>,
) -> PyResult<Bound<'py, PyAny>> {
    let ready = Ready::new(schedule, queue_depth, noop_probability, seed)?;
    let calibration = Calibration { clock_skew, wanted_spread, ..Calibration::default() };
    let measured = ready.run(py, |program, options| fabric::measure(program, options, &calibration))?;
    to_python(py, &measured)
}

enum Failure {
    Lower(LowerError),
    Run(SimError),
}

impl Failure {
    fn into_python(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Lower(e @ (LowerError::Wrong(_) | LowerError::OverLimit(_))) => input(e),
            Self::Run(e @ SimError::OverLimit(_)) => input(e),
            Self::Lower(e) => UnsupportedError::new_err(e.to_string()),
            Self::Run(e @ SimError::Unsupported { .. }) => UnsupportedError::new_err(e.to_string()),
            Self::Run(e) => {
                let stuck = match &e {
                    SimError::Deadlock { stuck, .. } => stuck.iter().map(ToString::to_string).collect(),
                    _ => Vec::new(),
                };
                simulation_error(py, e.to_string(), stuck)
            }
        }
    }
}
