//! `TaskList`, a program of tasks that is stored as a list, without discovery of its communication.

use pyo3::prelude::*;
use unisono_base::BufferId;
use unisono_discover::{Buffer, ListedTask, Program, Rules, Submitted, TaskList as List, device_report};
use unisono_plan::program::MovedData;

use super::{
    arguments::{fenced, numbers, submitted},
    nodes_of, refused,
};
use crate::{
    convert::index,
    errors::{detached, input, to_python},
    mapper::Mapper,
    moved::Moved,
};

/// Buffers, tasks and fences as a program submits them. `WorkloadGraph.of_tasks` discovers their communication.
#[pyclass(module = "unisono")]
pub struct TaskList(pub(crate) List);

#[pymethods]
impl TaskList {
    /// Reads the tasks of a program from JSON text.
    #[staticmethod]
    fn of_json(program: &str) -> PyResult<Self> {
        Ok(Self(Program::parse(program).and_then(|program| program.list()).map_err(refused)?))
    }

    /// Makes an empty list. If arrays have more dimensions than a task's range, each point covers whole rows.
    #[new]
    fn new() -> Self {
        Self(List { rows: true, ..List::default() })
    }

    /// Declares a buffer and returns its number, like `Discovery.buffer`.
    #[pyo3(signature = (name, shape, element_bytes=8, initialized=false))]
    fn buffer(
        &mut self,
        name: &str,
        shape: &Bound<'_, PyAny>,
        element_bytes: u64,
        initialized: bool,
    ) -> PyResult<usize> {
        let shape = numbers(&format!("buffer '{name}': shape"), shape)?;
        self.0.buffers.push(Buffer::new(name, &shape, element_bytes, initialized).map_err(refused)?);
        Ok(self.0.buffers.len() - 1)
    }

    /// Adds a task and returns its number, like `Discovery.task`. `operations` is the number of arithmetic operations
    /// for one point of the range, if known. If `on_host` is true, the kernel runs on the host even if processes have
    /// devices.
    #[pyo3(signature = (
        name, sizes, accesses, offset=None, granularity=None, split="1d", operations=None, on_host=false
    ))]
    #[allow(clippy::too_many_arguments)]
    fn task(
        &mut self,
        name: &str,
        sizes: &Bound<'_, PyAny>,
        accesses: Vec<(u32, Bound<'_, PyAny>, Mapper)>,
        offset: Option<&Bound<'_, PyAny>>,
        granularity: Option<&Bound<'_, PyAny>>,
        split: &str,
        operations: Option<f64>,
        on_host: bool,
    ) -> PyResult<usize> {
        ListedTask::check_operations(name, operations).map_err(refused)?;
        let (geometry, accesses) = submitted(name, sizes, accesses, (offset, granularity, split))?;
        Ok(self.add(name, operations, on_host, Submitted::Task { geometry, accesses }))
    }

    /// Adds a fence and returns its number, like `Discovery.fence`.
    fn fence(&mut self, name: &str, buffer: u32, low: &Bound<'_, PyAny>, high: &Bound<'_, PyAny>) -> PyResult<usize> {
        let window = fenced(low, high)?;
        Ok(self.add(name, None, false, Submitted::Fence { buffer: BufferId(buffer), window }))
    }

    /// Reports the copies among the memories of process `rank` with `count` devices, and returns the data that these
    /// copies move.
    fn devices<'py>(
        &self,
        py: Python<'py>,
        nodes: &Bound<'py, PyAny>,
        rules: &str,
        rank: &Bound<'py, PyAny>,
        count: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, Vec<Moved>)> {
        let (nodes, rank, count) = (nodes_of(nodes)?, index("rank", rank)?, index("devices", count)?);
        let rules = rules.parse::<Rules>().map_err(input)?;
        let made = detached(py, || {
            let (discovery, devices, report) = device_report(&self.0, nodes, rules, rank, count)?;
            Ok((report, MovedData::on_devices(&discovery, &devices)))
        })?;
        let (report, moved) = made.map_err(refused)?;
        Ok((to_python(py, &report)?, moved.into_iter().map(Moved).collect()))
    }
}

impl TaskList {
    fn add(&mut self, name: &str, operations: Option<f64>, on_host: bool, submitted: Submitted) -> usize {
        self.0.tasks.push(ListedTask { name: name.to_owned(), operations, on_host, submitted });
        self.0.tasks.len() - 1
    }
}
