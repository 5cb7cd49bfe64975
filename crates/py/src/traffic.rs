//! Simulations on networks: GOAL programs, messages, and traffic patterns by packets or by flows.

use std::time::Instant;

use numpy::PyArray1;
use pyo3::prelude::*;
use unisono_base::rounded;
use unisono_cost::endpoint::TICKS_PER_NS;
use unisono_lower::tasks::{TaskError, TaskGraph, pattern};
use unisono_machine::network::Network;
use unisono_plan::Run;
use unisono_sim::network::{self, Interconnect, Options, TrafficEstimate};

use crate::{
    endpoint::{options, task_graph},
    errors::{detached, failed, input},
    machine::Machine,
    network::{network as network_of, whole_network},
    simulation::Simulation,
    workload_graph::WorkloadGraph,
};

/// Returns the largest injection rate of an accelerator, summed over all planes, in bytes per second.
#[pyfunction]
pub fn injection(machine: &Machine) -> PyResult<f64> {
    let network = network_of(machine)?;
    let topology = network.topology(&network.name).map_err(input)?;
    Ok(network.injection_bytes_per_ns(&*topology) * 1e9)
}

/// Simulates the program of a GOAL file, or `program`, on a network. Its calcs are in nanoseconds.
#[pyfunction]
#[pyo3(signature = (machine, path, start_ns = None, noise = None, seed = 0, trace_ranks = None, program = None))]
#[expect(clippy::too_many_arguments, reason = "the keywords of the Python function")]
pub fn simulate_network_goal(
    py: Python<'_>,
    machine: &Machine,
    path: &str,
    start_ns: Option<Vec<f64>>,
    noise: Option<(String, f64, f64)>,
    seed: u64,
    trace_ranks: Option<Vec<u32>>,
    program: Option<&WorkloadGraph>,
) -> PyResult<Simulation> {
    let network = whole_network(machine, "the ranks of a GOAL program are")?;
    let graph = task_graph(py, path, program)?;
    let hosts = options(start_ns, noise, seed, trace_ranks, TICKS_PER_NS)?;
    let interconnect = detached(py, || Interconnect::new(network))?.map_err(input)?;
    simulated(
        py,
        network,
        &interconnect,
        &graph,
        &Options { hosts, ps_per_calc: rounded(TICKS_PER_NS), ..Options::default() },
    )
}

/// Simulates traffic among all accelerators packet by packet, on `jobs` threads: `alltoall` with `bytes` bytes for each
/// ordered pair, or a `permutation` drawn by `seed`, with `messages` messages of `bytes` bytes from each accelerator.
/// `messages` has no effect on `alltoall`.
#[pyfunction]
pub fn traffic_packets(
    py: Python<'_>,
    machine: &Machine,
    pattern: &str,
    bytes: u64,
    messages: u32,
    seed: u64,
    jobs: u32,
) -> PyResult<Simulation> {
    let network = whole_network(machine, &format!("{pattern} runs"))?;
    let interconnect = detached(py, || Interconnect::new(network))?.map_err(input)?;
    let accelerators = interconnect.plane.accelerators();
    admit(pattern, accelerators, bytes, messages, jobs, &interconnect)?;
    let graph: Result<TaskGraph, TaskError> = detached(py, || match pattern {
        "alltoall" => Ok(pattern::linear_alltoall(accelerators, bytes)),
        "permutation" => Ok(pattern::permutation(accelerators, bytes, messages, seed)),
        other => Err(input(format!("'{other}' is no pattern; accepted are alltoall and permutation"))),
    })??;
    let mut options = Options { jobs, ..Options::default() };
    options.hosts.seed = seed;
    simulated(py, network, &interconnect, &graph.map_err(input)?, &options)
}

/// Returns an error if the simulation of the traffic would exceed a limit. The check is before the build of the task
/// graph, which takes most of the memory.
fn admit(
    pattern: &str,
    accelerators: u32,
    bytes: u64,
    messages: u32,
    jobs: u32,
    interconnect: &Interconnect,
) -> PyResult<()> {
    let of_message = bytes.div_ceil(u64::from(interconnect.planes.max(1)));
    if of_message.div_ceil(u64::from(interconnect.timing.packet_bytes)) > u64::from(u32::MAX) {
        // In this case the simulator reports that it cannot number the packets of such a message.
        return Ok(());
    }
    let others = u64::from(accelerators.saturating_sub(1));
    let each = if pattern == "alltoall" { others } else { u64::from(messages) };
    let estimate = TrafficEstimate::new(u64::from(accelerators).saturating_mul(each), bytes, jobs, interconnect);
    let size =
        || format!("{pattern} of {bytes} bytes on {accelerators} accelerators is {estimate}; --level flow is quicker");
    estimate.check().map_err(|over| input(format!("{}; {over}", size())))
}

/// Simulates the traffic of [`traffic_packets`] by flows. Returns the makespan in ns, the end in ns of each accelerator
/// (or of an even sample), the bytes on a plane's busiest link, and the wall time in seconds.
#[pyfunction]
pub fn traffic_flows<'py>(
    py: Python<'py>,
    machine: &Machine,
    pattern: &str,
    bytes: u64,
    seed: u64,
) -> PyResult<(f64, Bound<'py, PyArray1<f64>>, f64, f64)> {
    let network = whole_network(machine, &format!("{pattern} runs"))?;
    let begin = Instant::now();
    let fluid = detached(py, || {
        let interconnect = Interconnect::new(network).map_err(input)?;
        match pattern {
            "alltoall" => network::flow::alltoall(&interconnect, bytes).map_err(input),
            "permutation" => {
                let to = pattern::cycle(interconnect.plane.accelerators(), seed);
                network::flow::permutation(&interconnect, &to, bytes).map_err(input)
            }
            other => Err(input(format!("'{other}' is no pattern; accepted are alltoall and permutation"))),
        }
    })??;
    let finish = PyArray1::from_iter(py, fluid.finish_ps.iter().map(|ps| ps / TICKS_PER_NS));
    Ok((fluid.makespan_ps / TICKS_PER_NS, finish, fluid.busiest_bytes, begin.elapsed().as_secs_f64()))
}

/// Returns, for each pair of accelerators, the links of its message, each with its index in a plane and the fraction of
/// the message on it. Every node is assumed to split the message evenly among the permitted hops.
#[pyfunction]
pub fn message_routes(py: Python<'_>, machine: &Machine, pairs: Vec<(u32, u32)>) -> PyResult<Vec<Vec<(u32, f64)>>> {
    let network = whole_network(machine, "messages are sent")?;
    let interconnect = detached(py, || Interconnect::new(network))?.map_err(input)?;
    check_ends(&interconnect, pairs.iter().copied())?;
    detached(py, || network::flow::routes(&interconnect, &pairs))
}

/// Simulates messages `(from, to, bytes)` between accelerators, which are all posted at once. `slow` lists links, each
/// with the fraction of its rate that it has in every plane. Packets take the same routes as without slow links.
#[pyfunction]
#[pyo3(signature = (machine, messages, slow = Vec::new(), seed = 0))]
pub fn simulate_messages(
    py: Python<'_>,
    machine: &Machine,
    messages: Vec<(u32, u32, u64)>,
    slow: Vec<(u32, f64)>,
    seed: u64,
) -> PyResult<Simulation> {
    let network = whole_network(machine, "messages are sent")?;
    let whole = detached(py, || Interconnect::new(network))?.map_err(input)?;
    check_ends(&whole, messages.iter().map(|&(from, to, _)| (from, to)))?;
    let links = whole.plane.links().len();
    if let Some((link, share)) =
        slow.iter().find(|(link, share)| *link as usize >= links || share.is_nan() || *share <= 0.0)
    {
        return Err(input(format!(
            "link {link} at {share} of its rate; accepted are links below {links} and shares above 0"
        )));
    }
    let interconnect = whole.slowed(network, &slow);
    let interconnect = interconnect.ok_or_else(|| input("the links have more than 255 speeds; slow fewer of them"))?;
    let graph = detached(py, || pattern::messages(interconnect.plane.accelerators(), &messages))?.map_err(input)?;
    let mut options = Options::default();
    options.hosts.seed = seed;
    simulated(py, network, &interconnect, &graph, &options)
}

fn check_ends(interconnect: &Interconnect, pairs: impl Iterator<Item = (u32, u32)>) -> PyResult<()> {
    let accelerators = interconnect.plane.accelerators();
    for (from, to) in pairs {
        if from.max(to) >= accelerators || from == to {
            let accepted = format!("two of the accelerators 0 to {}", accelerators - 1);
            return Err(input(format!("a message from {from} to {to}; accepted are {accepted}")));
        }
    }
    Ok(())
}

fn simulated(
    py: Python<'_>,
    network: &Network,
    interconnect: &Interconnect,
    graph: &TaskGraph,
    options: &Options,
) -> PyResult<Simulation> {
    let begin = Instant::now();
    let run = detached(py, || network::run(graph, interconnect, options))?.map_err(|e| failed(py, e.into()))?;
    Ok(Simulation(Run::on_network(run, TICKS_PER_NS, network.working_planes(), begin.elapsed().as_secs_f64())))
}
