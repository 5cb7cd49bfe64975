//! Simulations of GOAL files under LogGOPS, and the options of runs among ranks.

use std::{fs::File as OsFile, io::BufReader, time::Instant};

use pyo3::prelude::*;
use unisono_cost::endpoint::{Goal, Prices, ZeroBytes};
use unisono_formats::chakra::to_tasks;
use unisono_lower::tasks::TaskGraph;
use unisono_plan::{Run, RunOptions};
use unisono_sim::endpoint::{self, Noise, Options};

use crate::{
    errors::{detached, failed, input},
    simulation::Simulation,
    workload_graph::WorkloadGraph,
};

/// Returns the task graph of `program`, which was read from `path`. Without `program`, returns the task graph of the
/// GOAL file at `path`. Its calcs are in nanoseconds.
pub fn task_graph(py: Python<'_>, path: &str, program: Option<&WorkloadGraph>) -> PyResult<TaskGraph> {
    if let Some(program) = program {
        return detached(py, || to_tasks(&program.0, 1e-9))?.map_err(|e| input(format!("{path}: {e}")));
    }
    let file = OsFile::open(path).map_err(|e| input(format!("{path}: {e}")))?;
    detached(py, || unisono_formats::goal::read(BufReader::with_capacity(1 << 16, file), path))?.map_err(input)
}

/// Simulates the program of a GOAL file, or `program`, under LogGOPS. `parameters` are L, o and g in ticks, G and O in
/// ticks per byte, and S in bytes. None stands for the default.
#[pyfunction]
#[pyo3(signature = (path, parameters, sane_zero_bytes = false, start_ns = None, noise = None, seed = 0, trace_ranks = None,
                    program = None, ticks_per_ns = 1))]
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
    program: Option<&WorkloadGraph>,
    ticks_per_ns: u32,
) -> PyResult<Simulation> {
    let graph = task_graph(py, path, program)?;
    let ticks = u64::from(ticks_per_ns);
    let usual = Goal::default();
    let [latency, o, g, big_g, big_o, eager] = parameters;
    let prices = Goal {
        L: latency.unwrap_or(usual.L * ticks),
        o: o.unwrap_or(usual.o * ticks),
        g: g.unwrap_or(usual.g * ticks),
        G: big_g.unwrap_or(usual.G * ticks),
        O: big_o.unwrap_or(usual.O * ticks),
        S: eager.unwrap_or(usual.S),
        zero_bytes: if sane_zero_bytes { ZeroBytes::Sane } else { ZeroBytes::Wrapped },
        ticks_per_ns: ticks,
    };
    let options = options(start_ns, noise, seed, trace_ranks, f64::from(ticks_per_ns))?;
    simulated(py, &graph, &prices, &options, f64::from(ticks_per_ns))
}

/// Converts the kind of noise and its two parameters, in nanoseconds. Only `normal` uses the second parameter.
pub fn noise_of(noise: Option<(String, f64, f64)>) -> PyResult<Option<Noise>> {
    let Some((kind, a, b)) = noise else { return Ok(None) };
    match kind.as_str() {
        "uniform" => Ok(Some(Noise::Uniform { most: a })),
        "normal" => Ok(Some(Noise::Normal { mean: a, deviation: b })),
        "exponential" => Ok(Some(Noise::Exponential { mean: a })),
        _ => Err(input(format!("'{kind}' is not a noise; accepted are uniform, normal and exponential"))),
    }
}

/// Returns the options of a simulation among ranks whose clock has `ticks_per_ns` ticks per nanosecond.
pub fn options(
    start_ns: Option<Vec<f64>>,
    noise: Option<(String, f64, f64)>,
    seed: u64,
    trace_ranks: Option<Vec<u32>>,
    ticks_per_ns: f64,
) -> PyResult<Options> {
    let noise = noise_of(noise)?;
    let asked = RunOptions { start_ns, noise, seed, traced: trace_ranks.unwrap_or_default(), ..RunOptions::default() };
    asked.of_ranks(ticks_per_ns).map_err(input)
}

fn simulated<P: Prices + Sync>(
    py: Python<'_>,
    graph: &TaskGraph,
    prices: &P,
    options: &Options,
    ticks_per_ns: f64,
) -> PyResult<Simulation> {
    let start = Instant::now();
    let run = detached(py, || endpoint::run(graph, prices, options))?.map_err(|e| failed(py, e.into()))?;
    Ok(Simulation(Run::among_ranks(run, ticks_per_ns, start.elapsed().as_secs_f64())))
}
