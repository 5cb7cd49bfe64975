//! Training workloads on machines.

use crate::{
    errors::{detached, input, to_python},
    machine::Machine,
    simulate::failed,
    workload_graph::part_of,
};
use pyo3::prelude::*;
use serde::Serialize;
use unisono_machine::network::Network;
use unisono_plan::{
    RunError,
    workload::{
        Iteration, WORKLOADS, Workload,
        graph::{Level, Prices, Step},
    },
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
    notes: &'a [String],
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
    let level = Level::named(level, &workload.name).map_err(input)?;
    let timed = detached(py, || {
        let graph = workload.program();
        let part = part_of(machine, Some(&workload))?;
        let prices = Prices::new(&graph, machine.description(), &part)?;
        Step { prices, accelerator: None, overlap, level }.report()
    })?;
    let done = timed.map_err(|e: RunError| failed(py, e))?;
    let report = Report {
        workload: &workload.name,
        machine: &network.name,
        accelerators: workload.accelerators(),
        reference: &workload.reference,
        level: level.name(),
        overlap,
        minibatch: None,
        algorithm: None,
        iteration: &done.iteration,
        notes: &done.notes,
        packets: done.packets,
        events: done.events,
    };
    to_python(py, &report)
}
