//! `TaskSchedule`, which runs the commands of a program of tasks.

use pyo3::{prelude::*, types::PyList};
use unisono_taskrun::{Mpi, Run};

use super::{
    host::{Details, PythonHost, PythonObjects, Raised},
    memory::TaskMemory,
};
use crate::{discover::Discovery, errors::Error, mpi::run_error};

/// The commands of a rank that have not begun or are under way.
#[pyclass(frozen, module = "unisono")]
pub struct TaskSchedule {
    pub(super) run: Run<PythonObjects, Mpi>,
    memory: Py<TaskMemory>,
    /// The Python object that makes communicators and planned calls.
    pub(super) exchanges: Py<PyAny>,
    pub(super) local_arrays: Py<PyList>,
    pub(super) trace: Option<Py<PyAny>>,
}

#[pymethods]
impl TaskSchedule {
    /// Takes from `discovery` this rank's commands since the last call, with proved messages. If `detailed` is true, or
    /// a `trace` is given, adds the Python tuples that devices and traces need.
    #[new]
    fn new(
        py: Python<'_>,
        discovery: &Bound<'_, Discovery>,
        memory: Py<TaskMemory>,
        exchanges: Py<PyAny>,
        local_arrays: Py<PyList>,
        trace: Option<Py<PyAny>>,
        detailed: bool,
    ) -> PyResult<Self> {
        let (mut discovery, detailed) = (discovery.borrow_mut(), detailed || trace.is_some());
        let listed = discovery.take(py, true)?.into_iter().map(|(command, name)| {
            let tuple = detailed.then(|| discovery.tuple(py, &command, name.as_deref())).transpose()?;
            Ok((command, tuple.map(|tuple| Details { tuple: tuple.unbind(), event: None })))
        });
        let listed = listed.collect::<PyResult<Vec<_>>>()?;
        let run = Run::new(memory.get().memory.clone(), listed).map_err(run_error)?;
        Ok(Self { run, memory, exchanges, local_arrays, trace })
    }

    /// Finds a route for each distinct collective. All ranks call this together, before the first `advance`.
    fn prepare(&self, py: Python<'_>, discovery: &Bound<'_, Discovery>) -> PyResult<()> {
        let (host, mut discovery) = (self.host(py), discovery.borrow_mut());
        let memory = self.memory.get();
        let mut taken = memory.take_routes();
        let find = |operation: &_, buffer| {
            taken.routes.prepare(&host, discovery.engine_and_proofs(), &memory.memory, operation, buffer)
        };
        if self.run.prepare(find).map_err(|Raised(error)| error)? {
            return Ok(());
        }
        Err(Error::new_err("another thread works with this run, which is prepared before its first step"))
    }

    /// True if no exchange is under way. No exchange can then begin before the next kernel has ended. False while
    /// another thread works with the schedule.
    #[getter]
    fn idle(&self) -> bool {
        self.run.is_idle()
    }

    /// The number of exchanges that have not begun; 0 while another thread works with the schedule.
    #[getter]
    fn waiting(&self) -> usize {
        self.run.waiting()
    }

    /// Completes the exchanges that are over and begins the exchanges that may begin, without waiting. Returns true if
    /// there were any.
    fn advance(&self, py: Python<'_>) -> PyResult<bool> {
        self.run.advance(&self.host(py)).map_err(|Raised(error)| error)
    }

    /// Runs all commands, after [`Self::prepare`] has found routes. Returns when all data was sent, or if another
    /// thread works with the schedule. `execute` receives the number of a task, and its command if `detailed`, and runs
    /// the kernel. While exchanges are under way, it runs within the context manager `attendant`.
    fn carry_out(&self, py: Python<'_>, execute: &Bound<'_, PyAny>, attendant: &Bound<'_, PyAny>) -> PyResult<()> {
        let host = PythonHost { kernels: Some((execute, attendant)), ..self.host(py) };
        self.run.carry_out(&host).map_err(|Raised(error)| error)
    }
}

impl TaskSchedule {
    fn host<'a, 'py>(&'a self, py: Python<'py>) -> PythonHost<'a, 'py> {
        PythonHost { py, schedule: self, kernels: None }
    }
}
