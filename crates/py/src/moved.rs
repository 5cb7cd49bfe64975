//! `Moved`: one exchange of a program of tasks, and `Pricing`, which predicts its time.

use pyo3::prelude::*;
use unisono_discover::DirectSchedule;
use unisono_plan::program::{MovedData, Pricing as Engine};

use crate::{
    discover::nodes_of,
    errors::{detached, failed, plan_error, to_python},
    machine::Machine,
    schedule::Schedule,
};

/// An exchange: a collective, or the messages of one read. `count` tasks with the same name wait for equal exchanges.
#[pyclass(frozen, module = "unisono")]
pub struct Moved(pub MovedData);

#[pymethods]
impl Moved {
    /// The name of the tasks that wait for the exchange.
    #[getter]
    fn task(&self) -> &str {
        &self.0.task
    }

    /// The pattern, or `point-to-point` if no pattern was found.
    #[getter]
    fn pattern(&self) -> &'static str {
        self.0.pattern()
    }

    /// The number of tasks that wait for an equal exchange.
    #[getter]
    fn count(&self) -> u64 {
        self.0.moved.count
    }

    /// Returns `(from, to, elements)` of each message. Empty for a reduction and for a collective, except for a
    /// collective without reduction that has more bytes than one MPI call can count.
    fn message_list(&self) -> Vec<(u32, u32, u64)> {
        self.0.moved.what.messages.clone()
    }

    /// The bytes that messages carry for each element.
    #[getter]
    fn element_bytes(&self) -> u64 {
        self.0.message_bytes()
    }

    /// The name of the schedule of the exchange's messages. None for a collective that combines nothing and that a
    /// library performs.
    #[getter]
    fn schedule_name(&self) -> Option<String> {
        self.0.moved.what.direct().map(|direct| direct.name(self.0.message_bytes()))
    }

    /// Returns the messages of the exchange as a schedule among all nodes. In a reduction each partial result goes
    /// directly to its receiver. A collective that combines nothing has no schedule.
    fn schedule(&self, py: Python<'_>) -> PyResult<Schedule> {
        let DirectSchedule { schedule, expected } = detached(py, || self.0.schedule())?.map_err(plan_error)?;
        Ok(Schedule::of_messages(schedule, expected))
    }
}

/// Predicts the times of exchanges on a part of a machine. Equal operations are timed once.
#[pyclass(module = "unisono")]
pub struct Pricing(Engine);

#[pymethods]
impl Pricing {
    /// Returns the values of `ProgramTime` by key. With `by_messages`, messages between pairs of ranks also perform
    /// reductions.
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

/// Makes a `Pricing` for the first `nodes` ranks of a machine, or for the grid of its shape if that grid has `nodes`
/// ranks.
#[pyfunction]
#[pyo3(signature = (machine, nodes, model = None, simulate = false))]
pub fn pricing(
    py: Python<'_>,
    machine: &Machine,
    nodes: &Bound<'_, PyAny>,
    model: Option<&str>,
    simulate: bool,
) -> PyResult<Pricing> {
    let nodes = nodes_of(nodes)?;
    let made = detached(py, || Engine::new(machine.description(), machine.part(), nodes, model, simulate))?;
    made.map(Pricing).map_err(plan_error)
}
