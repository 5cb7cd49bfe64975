//! `Moved`: what a program of tasks exchanges, and `Pricing`, which puts a price on it.

use pyo3::prelude::*;
use unisono_lower::File;
use unisono_plan::program::{MovedData, Pricing as Engine};

use crate::{
    convert::index,
    errors::{detached, plan_error, to_python},
    machine::Machine,
    schedule::Schedule,
    simulate::failed,
};

/// A collective, or the messages of one read; `count` tasks of one name wait for one like it.
#[pyclass(frozen, module = "unisono")]
pub struct Moved(pub MovedData);

#[pymethods]
impl Moved {
    /// The tasks that it is for.
    #[getter]
    fn task(&self) -> &str {
        &self.0.task
    }

    /// `point-to-point` where no pattern was found.
    #[getter]
    fn pattern(&self) -> &'static str {
        self.0.pattern()
    }

    /// How often.
    #[getter]
    fn count(&self) -> u64 {
        self.0.moved.count
    }

    /// `(from, to, elements)` of each message; none of a collective.
    fn message_list(&self) -> Vec<(u32, u32, u64)> {
        self.0.moved.what.messages.clone()
    }

    /// Its messages as a schedule among all nodes; of a reduction, in which each partial result goes straight to whom it
    /// is for, among the ranks that take part.
    fn schedule(&self, py: Python<'_>) -> PyResult<Schedule> {
        let (schedule, required) = detached(py, || self.0.schedule())?.map_err(plan_error)?;
        Ok(match required {
            Some(required) => Schedule::of_messages(schedule, required),
            None => Schedule::new(File { schedule, placement: None, machine: None }),
        })
    }
}

/// Prices what programs move on a part of a machine; equal operations are priced once.
#[pyclass(module = "unisono")]
pub struct Pricing(Engine);

#[pymethods]
impl Pricing {
    /// The keys of `ProgramTime`; `by_messages`: reductions too are messages between pairs.
    fn predict<'py>(
        &mut self,
        py: Python<'py>,
        moved: Vec<Py<Moved>>,
        by_messages: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows: Vec<&MovedData> = moved.iter().map(|row| &row.get().0).collect();
        let priced = detached(py, || self.0.predict(&rows, by_messages))?;
        to_python(py, &priced.map_err(|e| failed(py, e))?)
    }
}

/// Pricing on the first `nodes` ranks of a machine, or on the grid of its shape where that has as many ranks.
#[pyfunction]
#[pyo3(signature = (machine, nodes, model = None, simulate = false))]
pub fn pricing(
    py: Python<'_>,
    machine: &Machine,
    nodes: &Bound<'_, PyAny>,
    model: Option<&str>,
    simulate: bool,
) -> PyResult<Pricing> {
    let nodes = index("the number of nodes", nodes)?;
    let made = detached(py, || Engine::new(machine.description(), machine.part(), nodes, model, simulate))?;
    made.map(Pricing).map_err(plan_error)
}
