//! The preset training workloads.

use crate::errors::{input, to_python};
use pyo3::prelude::*;
use serde::Serialize;
use unisono_plan::workload::{WORKLOADS, Workload};

/// Returns `[{name, accelerators, compute_seconds, summary, reference}]` of the preset workloads. `compute_seconds` is
/// the compute time of the rank that computes longest.
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
