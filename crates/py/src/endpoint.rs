//! Simulations among ranks: schedules at a machine's prices, and GOAL files under LogGOPS.

use std::{fs::File as OsFile, io::BufReader, time::Instant};

use pyo3::prelude::*;
use unisono_base::rounded;
use unisono_cost::endpoint::{Goal, LevelPrices, Prices, TICKS_PER_NS, ZeroBytes};
use unisono_lower::tasks::{TaskGraph, from_schedule};
use unisono_machine::{Endpoint, EndpointModel};
use unisono_sim::endpoint::{self, Noise, Options, SimError, TraceRequest};

use crate::{
    errors::{detached, input, simulation_error},
    schedule::Schedule,
    simulation::Simulation,
};

/// Proves a schedule and runs it among the ranks of its machine, by the model named or the machine's own.
pub fn among_ranks(
    py: Python<'_>,
    schedule: &Schedule,
    machine: &Endpoint,
    model: Option<&str>,
    options: Options,
) -> PyResult<Simulation> {
    let model = match model {
        None => machine.model,
        Some(name) => EndpointModel::ALL.iter().copied().find(|m| m.name() == name).ok_or_else(|| {
            let accepted = EndpointModel::ALL.iter().map(|m| m.name()).collect::<Vec<_>>().join(", ");
            input(format!("'{name}' is not a model; accepted are {accepted}"))
        })?,
    };
    let table = &schedule.file().schedule;
    let prices = LevelPrices::new(machine, model, table.collective().ranks).map_err(input)?;
    let proven = schedule.verified(py)?;
    let graph = detached(py, || from_schedule(proven.verified()))?.map_err(input)?;
    simulated(py, &graph, &prices, &options, TICKS_PER_NS)
}

/// Runs the program of a GOAL file under LogGOPS; parameters are whole nanoseconds, and bytes.
#[pyfunction]
#[pyo3(signature = (path, parameters, sane_zero_bytes = false, start_ns = None, noise = None, seed = 0, trace_ranks = None))]
#[expect(clippy::too_many_arguments, reason = "the keywords of the Python function")]
pub fn simulate_goal(
    py: Python<'_>,
    path: &str,
    parameters: [Option<u64>; 6],
    sane_zero_bytes: bool,
    start_ns: Option<Vec<f64>>,
    noise: Option<(String, f64, f64)>,
    seed: u64,
    trace_ranks: Option<Vec<u32>>,
) -> PyResult<Simulation> {
    let file = OsFile::open(path).map_err(|e| input(format!("{path}: {e}")))?;
    let graph =
        detached(py, || unisono_emit::goal::read(BufReader::with_capacity(1 << 16, file), path))?.map_err(input)?;
    let usual = Goal::default();
    let [latency, o, g, big_g, big_o, eager] = parameters;
    let prices = Goal {
        L: latency.unwrap_or(usual.L),
        o: o.unwrap_or(usual.o),
        g: g.unwrap_or(usual.g),
        G: big_g.unwrap_or(usual.G),
        O: big_o.unwrap_or(usual.O),
        S: eager.unwrap_or(usual.S),
        zero_bytes: if sane_zero_bytes { ZeroBytes::Sane } else { ZeroBytes::Wrapped },
    };
    let options = options(start_ns, noise, seed, trace_ranks, 1.0)?;
    simulated(py, &graph, &prices, &options, 1.0)
}

/// `start_ns`: when each rank begins. `noise`: its kind and one or two parameters in nanoseconds.
pub fn options(
    start_ns: Option<Vec<f64>>,
    noise: Option<(String, f64, f64)>,
    seed: u64,
    trace_ranks: Option<Vec<u32>>,
    ticks_per_ns: f64,
) -> PyResult<Options> {
    let start = start_ns.unwrap_or_default();
    if let Some(wrong) = start.iter().find(|t| !(0.0..=8.64e13).contains(*t)) {
        return Err(input(format!("a rank begins at {wrong} ns; accepted are numbers from 0 on")));
    }
    let noise = match noise {
        None => None,
        Some((kind, a, b)) => {
            let (a, b) = (a * ticks_per_ns, b * ticks_per_ns);
            Some(match kind.as_str() {
                "uniform" => Noise::Uniform { most: a },
                "normal" => Noise::Normal { mean: a, deviation: b },
                "exponential" => Noise::Exponential { mean: a },
                _ => return Err(input(format!("'{kind}' is no noise; accepted are uniform, normal and exponential"))),
            })
        }
    };
    let mut ranks = trace_ranks.unwrap_or_default();
    ranks.sort_unstable();
    ranks.dedup();
    Ok(Options {
        start: start.iter().map(|t| rounded(t * ticks_per_ns)).collect(),
        noise,
        seed,
        trace: TraceRequest { ranks },
        ..Options::default()
    })
}

fn simulated<P: Prices + Sync>(
    py: Python<'_>,
    graph: &TaskGraph,
    prices: &P,
    options: &Options,
    ticks_per_ns: f64,
) -> PyResult<Simulation> {
    let start = Instant::now();
    let run = detached(py, || endpoint::run(graph, prices, options))?.map_err(|e| failed(py, &e))?;
    Ok(Simulation::among_ranks(run, ticks_per_ns, start.elapsed().as_secs_f64()))
}

/// What a run that did not end well is to Python.
pub fn failed(py: Python<'_>, error: &SimError) -> PyErr {
    match error {
        SimError::Deadlock { stuck, .. } => {
            simulation_error(py, error.to_string(), stuck.iter().map(ToString::to_string).collect())
        }
        SimError::Jammed { stuck, .. } => simulation_error(py, error.to_string(), stuck.clone()),
        SimError::Unsupported { .. }
        | SimError::Overflow { .. }
        | SimError::Routing { .. }
        | SimError::OverLimit(_) => input(error),
    }
}
