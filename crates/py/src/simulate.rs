//! `simulate`: the fabric of a wafer.

use std::time::Instant;

use numpy::PyArray1;
use pyo3::prelude::*;
use unisono_lower::{
    GridPlacement, OnGrid, Placement,
    wafer::{LowerError, WaferProgram, lower},
};
use unisono_machine::{Machine as Description, Wafer};
use unisono_schedule::verify::Method;
use unisono_sim::fabric::{self, Calibration, Options, SimError, TraceRequest};

use crate::{
    convert::index,
    errors::{UnsupportedError, detached, input, simulation_error, to_python, verify_error},
    schedule::Schedule,
};

/// The most PEs of a trace: more would be no picture and no file that a viewer opens.
const MOST_TRACED: usize = 4096;

/// What a run of the fabric did.
#[pyclass(frozen, module = "unisono")]
pub struct Simulation {
    run: fabric::Run,
    clock_mhz: f64,
    wall_seconds: f64,
    phases: Vec<String>,
}

#[pymethods]
impl Simulation {
    #[getter]
    fn cycles(&self) -> u64 {
        self.run.cycles
    }

    #[getter]
    fn seconds(&self) -> f64 {
        self.run.cycles as f64 / (self.clock_mhz * 1e6)
    }

    /// When the last operation of each PE ended, cycles; 0 for a PE without any.
    #[getter]
    fn finish<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, &self.run.finish)
    }

    /// Moves of wavelets and element operations.
    #[getter]
    fn events(&self) -> u64 {
        self.run.events
    }

    /// Moves over links between routers.
    #[getter]
    fn hops(&self) -> u64 {
        self.run.hops
    }

    /// Cycles that wavelets waited at routers.
    #[getter]
    fn stalls(&self) -> u64 {
        self.run.stalls
    }

    #[getter]
    fn result_correct(&self) -> bool {
        self.run.result_correct
    }

    /// The first output that differs from plain arithmetic, or None.
    #[getter]
    fn mismatch(&self) -> Option<&str> {
        self.run.mismatch.as_deref()
    }

    #[getter]
    fn wall_seconds(&self) -> f64 {
        self.wall_seconds
    }

    #[getter]
    fn phases(&self) -> Vec<String> {
        self.phases.clone()
    }

    /// `[{pe, thread, instr, phase, elements, start, end}]` of the traced PEs, in cycles.
    #[getter]
    fn trace_events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.run.trace)
    }

    fn __repr__(&self) -> String {
        let correct = if self.run.result_correct { "correct" } else { "wrong" };
        format!("<unisono.Simulation {} cycles, result {correct}>", self.run.cycles)
    }
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
        controls: bool,
        what: impl FnOnce(&WaferProgram, &Options) -> Result<T, SimError> + Send,
    ) -> PyResult<T> {
        let proof = detached(py, || self.schedule.prove(Method::Auto))?;
        if !proof.holds() {
            return Err(verify_error(py, &proof.diagnostics));
        }
        let placed = OnGrid { schedule: &self.schedule.file().schedule, placement: self.placement };
        let done = detached(py, || {
            let program = lower(placed, self.wafer).map_err(Failure::Lower)?;
            let program = if controls { program } else { program.without_controls() };
            what(&program, &self.options).map_err(Failure::Run)
        })?;
        done.map_err(|failure| failure.into_python(py))
    }
}

/// Proves a placed schedule, lowers it to a program of its wafer and runs that, data included.
#[pyfunction]
#[pyo3(signature = (schedule, queue_depth = None, noop_probability = 0.0, seed = 0, trace_pes = None, controls = true))]
pub fn simulate(
    py: Python<'_>,
    schedule: &Schedule,
    queue_depth: Option<&Bound<'_, PyAny>>,
    noop_probability: f64,
    seed: u64,
    trace_pes: Option<Vec<u32>>,
    controls: bool,
) -> PyResult<Simulation> {
    let mut ready = Ready::new(schedule, queue_depth, noop_probability, seed)?;
    let file = schedule.file();
    let mut pes = trace_pes.unwrap_or_default();
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
    let (run, wall_seconds) = ready.run(py, controls, |program, options| {
        let start = Instant::now();
        Ok((fabric::run(program, options)?, start.elapsed().as_secs_f64()))
    })?;
    Ok(Simulation { run, clock_mhz: ready.wafer.clock_mhz, wall_seconds, phases: file.schedule.phases().to_vec() })
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
    let measured = ready.run(py, true, |program, options| fabric::measure(program, options, &calibration))?;
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
