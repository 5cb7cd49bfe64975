//! A program of tasks that is only listed, in the place of a `Discovery`.

use pyo3::prelude::*;
use unisono_base::BufferId;
use unisono_discover::{Buffer, ListedTask, Submitted, TaskList as List};

use super::{fenced, numbers, refused, submitted};
use crate::mapper::Mapper;

/// Buffers, tasks and fences as a program submits them. `WorkloadGraph.of_tasks` discovers their communication.
#[pyclass(module = "unisono")]
pub struct TaskList(pub(crate) List);

#[pymethods]
impl TaskList {
    /// Arrays may have more dimensions than ranges, which then stand for whole rows.
    #[new]
    fn new() -> Self {
        Self(List { rows: true, ..List::default() })
    }

    /// Declares a buffer and returns its number, as `Discovery.buffer`.
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

    /// Lists a task and returns its number, as `Discovery.task`. `operations` are those for a point of its range.
    #[pyo3(signature = (name, sizes, accesses, offset=None, granularity=None, split="1d", operations=None))]
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
    ) -> PyResult<usize> {
        ListedTask::check_operations(name, operations).map_err(refused)?;
        let (geometry, accesses) = submitted(name, sizes, accesses, (offset, granularity, split))?;
        Ok(self.add(name, operations, Submitted::Task { geometry, accesses }))
    }

    /// Lists a fence and returns its number, as `Discovery.fence`.
    fn fence(&mut self, name: &str, buffer: u32, low: &Bound<'_, PyAny>, high: &Bound<'_, PyAny>) -> PyResult<usize> {
        let window = fenced(low, high)?;
        Ok(self.add(name, None, Submitted::Fence { buffer: BufferId(buffer), window }))
    }
}

impl TaskList {
    fn add(&mut self, name: &str, operations: Option<f64>, submitted: Submitted) -> usize {
        self.0.tasks.push(ListedTask { name: name.to_owned(), operations, submitted });
        self.0.tasks.len() - 1
    }
}
