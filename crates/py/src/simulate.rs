//! `simulate` and `measure`, which run schedules on simulated machines.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use unisono_lower::VerifiedFile;
use unisono_plan::{PlanError, RunOptions, TARGETS, measure_on_fabric, simulate as run, simulate_beside as run_beside};
use unisono_sim::fabric::Calibration;

use crate::{
    convert::index,
    endpoint::noise_of,
    errors::{detached, failed, plan_error, to_python},
    schedule::Schedule,
    simulation::Simulation,
};

/// Returns `{name: (summary, takes_model, records)}` of all simulators; `records` is what traces record: `nothing`,
/// `pes` or `ranks`.
#[pyfunction]
pub fn simulators() -> BTreeMap<&'static str, (&'static str, bool, &'static str)> {
    TARGETS.iter().map(|kind| kind.simulator).map(|s| (s.name, (s.summary, s.takes_model, s.records.name()))).collect()
}

/// Proves a schedule and runs it with the simulator of its machine.
#[pyfunction]
#[pyo3(signature = (schedule, model = None, queue_depth = None, noop_probability = 0.0, start_ns = None, noise = None, seed = 0, traced = None))]
#[expect(clippy::too_many_arguments, reason = "the keywords of the Python function")]
pub fn simulate(
    py: Python<'_>,
    schedule: &Schedule,
    model: Option<String>,
    queue_depth: Option<&Bound<'_, PyAny>>,
    noop_probability: f64,
    start_ns: Option<Vec<f64>>,
    noise: Option<(String, f64, f64)>,
    seed: u64,
    traced: Option<Vec<u32>>,
) -> PyResult<Simulation> {
    let options = RunOptions {
        model,
        start_ns,
        noise: noise_of(noise)?,
        queue_depth: queue_depth.map(|depth| index("queue_depth", depth)).transpose()?,
        noop_probability,
        seed,
        traced: traced.unwrap_or_default(),
    };
    let proven = ready(py, schedule)?;
    let done = detached(py, || run(&proven, &options))?;
    done.map(Simulation).map_err(|e| failed(py, e))
}

/// Proves schedules on one machine and runs them together. All schedules start at the same time.
#[pyfunction]
pub fn simulate_beside(py: Python<'_>, schedules: Vec<PyRef<'_, Schedule>>) -> PyResult<Vec<Simulation>> {
    let proven = schedules.iter().map(|schedule| ready(py, schedule)).collect::<PyResult<Vec<_>>>()?;
    let done = detached(py, || run_beside(&proven))?;
    done.map(|runs| runs.into_iter().map(Simulation).collect()).map_err(|e| failed(py, e))
}

/// Proves a schedule; returns an error if the schedule has no machine or the proof fails.
fn ready<'a>(py: Python<'_>, schedule: &'a Schedule) -> PyResult<VerifiedFile<'a>> {
    if schedule.file().machine.is_none() {
        return Err(plan_error(PlanError::NoMachine));
    }
    schedule.verified(py)
}

/// Measures a schedule on a wafer by the method of "Near-Optimal Wafer-Scale Reduce", section 8.3; the keys are those
/// of `fabric::Measurement`.
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
    let queue_depth = queue_depth.map(|depth| index("queue_depth", depth)).transpose()?;
    let options = RunOptions { queue_depth, noop_probability, seed, ..RunOptions::default() };
    let calibration = Calibration { clock_skew, wanted_spread, ..Calibration::default() };
    let proven = ready(py, schedule)?;
    let measured = detached(py, || measure_on_fabric(&proven, &options, &calibration))?;
    to_python(py, &measured.map_err(|e| failed(py, e))?)
}
