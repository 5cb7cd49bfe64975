//! Training workloads on machines.

use pyo3::prelude::*;
use serde::Serialize;
use unisono_machine::network::Network;
use unisono_plan::{
    RunError,
    workload::{
        Iteration, NetworkWorkload, WORKLOADS, Workload,
        graph::{Level, Prices, Step},
        iterate, tasks,
    },
};
use unisono_sim::{
    endpoint,
    network::{Interconnect, Options, run},
};

use crate::{
    errors::{detached, input, plan_error, to_python},
    machine::Machine,
    simulate::failed,
    workload_graph::part_of,
};

#[derive(Serialize)]
struct Report<'a> {
    workload: &'a str,
    machine: &'a str,
    accelerators: u32,
    reference: &'a str,
    level: &'a str,
    overlap: bool,
    /// Only for workloads on switches that reduce.
    minibatch: Option<u32>,
    algorithm: Option<&'a str>,
    #[serde(flatten)]
    iteration: &'a Iteration,
    packets: Option<u64>,
    events: Option<u64>,
}

/// Returns `[{name, accelerators, compute_seconds, summary, reference}]` of the preset workloads. The compute is that
/// of the rank that computes longest.
#[pyfunction]
pub fn workload_presets(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    #[derive(Serialize)]
    struct Row {
        name: &'static str,
        accelerators: u32,
        compute_seconds: f64,
        summary: String,
        reference: String,
    }
    let mut rows = Vec::new();
    for preset in WORKLOADS {
        let w = Workload::preset(preset.name).map_err(input)?;
        rows.push(Row {
            name: preset.name,
            accelerators: w.accelerators(),
            compute_seconds: w.compute_seconds(),
            summary: w.summary,
            reference: w.reference,
        });
    }
    to_python(py, &rows)
}

/// Times one iteration of the workload `text` from the file `origin`, or of the preset `origin` if there is no text.
#[pyfunction]
#[pyo3(signature = (origin, text, machine, level, overlap))]
pub fn workload<'py>(
    py: Python<'py>,
    origin: &str,
    text: Option<&str>,
    machine: &Machine,
    level: &str,
    overlap: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let read = text.map_or_else(|| Workload::preset(origin), |text| Workload::from_toml(text, origin));
    let workload = read.map_err(input)?;
    let Some(network) = machine.description().get::<Network>() else {
        let (name, kind) = (machine.description().name(), machine.description().kind());
        return Err(input(format!("{name} is of kind {kind}; workloads run on machines of kind network")));
    };
    machine.check_whole("a workload chooses its accelerators from")?;
    let on = detached(py, || NetworkWorkload::new(&workload, network))?.map_err(plan_error)?;
    // Ranks that go through different steps are classes of a program.
    let is_uniform = !workload.is_concurrent();
    let (iteration, packets, events) = match level {
        "model" if is_uniform => {
            let done = detached(py, || iterate(&workload, overlap, |c| on.take(&workload, c)))?.map_err(plan_error)?;
            (done, None, None)
        }
        "packet" if is_uniform => {
            let made = detached(py, || tasks(&workload, overlap, &on))?.map_err(plan_error)?;
            let interconnect = detached(py, || Interconnect::new(network))?.map_err(input)?;
            let hosts = endpoint::Options { watch: made.watch.clone(), ..endpoint::Options::default() };
            let options = Options { hosts, places: on.places().to_vec(), ..Options::default() };
            let done = detached(py, || run(&made.graph, &interconnect, &options))?;
            let done = done.map_err(|e| failed(py, e.into()))?;
            let iteration = made.iteration(&workload, &done.hosts.watched, done.hosts.makespan);
            (iteration, Some(done.packets), Some(done.events))
        }
        other => {
            // As a program, whose levels are all that there are.
            let level = Level::named(other, &workload.name).map_err(input)?;
            let timed = detached(py, || {
                let graph = workload.program();
                let part = part_of(machine, Some(&workload))?;
                let prices = Prices::new(&graph, machine.description(), &part)?;
                Step { prices, accelerator: None, overlap, level }.report()
            })?;
            let done = timed.map_err(|e: RunError| failed(py, e))?;
            (done.iteration, done.packets, done.events)
        }
    };
    let report = Report {
        workload: &workload.name,
        machine: &network.name,
        accelerators: workload.accelerators(),
        reference: &workload.reference,
        level,
        overlap,
        minibatch: None,
        algorithm: None,
        iteration: &iteration,
        packets,
        events,
    };
    to_python(py, &report)
}
