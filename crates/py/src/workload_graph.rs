//! Programs of other tools on machines.

use std::{borrow::Cow, collections::BTreeMap};

use pyo3::prelude::*;
use unisono_emit::PROGRAM_FORMATS;
use unisono_machine::network::Network;
use unisono_plan::workload::graph::{Prices, graph_report};
use unisono_workload::{Accelerator, SourceFile, WorkloadGraph as Graph, chakra, read_also};

use crate::{
    errors::{detached, input, plan_error, to_python},
    machine::Machine,
};

/// A program that computes and communicates, read from files of other tools.
#[pyclass(frozen, module = "unisono")]
pub struct WorkloadGraph(pub(crate) Graph);

#[pymethods]
impl WorkloadGraph {
    /// Reads a program from files, each with its name for messages.
    #[staticmethod]
    #[pyo3(signature = (files, strict = false))]
    fn read(py: Python<'_>, files: Vec<SourceFile>, strict: bool) -> PyResult<Self> {
        detached(py, || read_also(PROGRAM_FORMATS, &files, strict))?.map(Self).map_err(input)
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The format that it was read from.
    #[getter]
    fn format(&self) -> &'static str {
        self.0.format
    }

    #[getter]
    fn ranks(&self) -> u32 {
        self.0.ranks
    }

    /// The nodes of each class of equal ranks.
    #[getter]
    fn nodes(&self) -> Vec<usize> {
        self.0.classes.iter().map(|class| class.nodes.len()).collect()
    }

    /// The program as Chakra execution traces, by the names of their files.
    fn to_chakra(&self, py: Python<'_>) -> PyResult<BTreeMap<String, Cow<'static, [u8]>>> {
        let files = detached(py, || chakra::write(&self.0))?.map_err(input)?;
        Ok(files.into_iter().map(|(name, bytes)| (name, bytes.into())).collect())
    }

    /// One step on a machine. The rates of the accelerator are operations and bytes of memory a second; without them those
    /// of the machine file are taken.
    #[pyo3(signature = (machine, accelerator = None, overlap = true))]
    fn time<'py>(
        &self,
        py: Python<'py>,
        machine: &Machine,
        accelerator: Option<(f64, f64)>,
        overlap: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let own = machine.description().get::<Network>().and_then(|network| network.accelerator);
        let given = accelerator.or_else(|| own.map(|own| (own.tflops * 1e12, own.memory_gb_per_second * 1e9)));
        let accelerator = given.map(|(operations_per_second, memory_bytes_per_second)| Accelerator {
            operations_per_second,
            memory_bytes_per_second,
        });
        let timed = detached(py, || {
            let prices = Prices::new(&self.0, machine.description(), machine.part())?;
            graph_report(&self.0, prices, accelerator, overlap)
        })?;
        to_python(py, &timed.map_err(plan_error)?)
    }

    fn __repr__(&self) -> String {
        format!("<unisono.WorkloadGraph {}, {} ranks, from {}>", self.0.name, self.0.ranks, self.0.format)
    }
}
