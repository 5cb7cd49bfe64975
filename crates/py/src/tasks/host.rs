//! The functions of Python that a run of tasks calls.

use std::{sync::Arc, thread};

use pyo3::{
    prelude::*,
    types::{PyBytes, PyString, PyTuple},
};
use unisono_discover::{Box3, DiscoverError};
use unisono_taskrun::{Act, Command, Host, Objects, Reducing as Engine, Route, RunError, Served, WorldCall as Call};

use super::{memory::Reducing, schedule::TaskSchedule, world_call::WorldCall};
use crate::{
    discover::{boxes, refused},
    errors::detached,
    mpi::run_error,
};

/// An exception that ends a run.
pub struct Raised(pub PyErr);

impl From<RunError> for Raised {
    fn from(error: RunError) -> Self {
        Self(run_error(error))
    }
}

impl From<PyErr> for Raised {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

/// The Python tuple of a command, for traces and devices. Also the event of the trace while the command runs.
pub struct Details {
    pub tuple: Py<PyTuple>,
    pub event: Option<Py<PyAny>>,
}

/// The types of the Python objects that a run keeps.
pub struct PythonObjects;

impl Objects for PythonObjects {
    type Details = Details;
    /// A planned call: a Python object with the methods `poll` and `finish`, and this object's bound method `poll`.
    type Planned = (Py<PyAny>, Py<PyAny>);
}

/// A task schedule while a thread runs it. `kernels` are `execute`, which runs a task's kernel, and `attendant`, the
/// context manager around kernels during exchanges.
pub struct PythonHost<'a, 'py> {
    pub py: Python<'py>,
    pub schedule: &'a TaskSchedule,
    pub kernels: Option<(&'a Bound<'py, PyAny>, &'a Bound<'py, PyAny>)>,
}

impl<'py> PythonHost<'_, 'py> {
    fn exchanges(&self) -> &Bound<'py, PyAny> {
        self.schedule.exchanges.bind(self.py)
    }

    fn local(&self, array: usize) -> PyResult<Bound<'py, PyAny>> {
        self.schedule.local_arrays.bind(self.py).get_item(array)
    }

    fn call(&self, call: Arc<Call>, array: usize) -> Result<WorldCall, Raised> {
        Ok(WorldCall { call, array: self.schedule.run.memory().array(array)? })
    }
}

impl Host for PythonHost<'_, '_> {
    type Objects = PythonObjects;
    type Error = Raised;

    fn execute(&self, command: &Command<PythonObjects>, alone: bool) -> Result<(), Raised> {
        let (py, Some((execute, attendant))) = (self.py, self.kernels) else { return Ok(()) };
        let given = (command.task, command.details.as_ref().map(|details| details.tuple.bind(py)));
        if alone {
            execute.call1(given)?;
        } else {
            attendant.call_method0("__enter__")?;
            let ran = execute.call1(given);
            attendant.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
            ran?;
        }
        Ok(())
    }

    fn begins(&self, command: &mut Command<PythonObjects>) -> Result<(), Raised> {
        let Some(details) = &mut command.details else { return Ok(()) };
        let (py, tuple) = (self.py, &details.tuple);
        let trace = self.schedule.trace.as_ref();
        let event = trace.map(|trace| trace.call_method1(py, "begin", (tuple,))).transpose()?;
        self.local(command.array)?.call_method1("to_host_for", (tuple,))?;
        details.event = event;
        Ok(())
    }

    fn ended(
        &self,
        command: &mut Command<PythonObjects>,
        route: Option<&Route>,
        served: Served<'_, (Py<PyAny>, Py<PyAny>)>,
    ) -> Result<(), Raised> {
        let bytes = route.map_or(command.message_bytes() as u64, |route| route.bytes);
        let Some(details) = &mut command.details else { return Ok(()) };
        let (py, tuple) = (self.py, details.tuple.bind(self.py));
        if !matches!(command.act, Act::Push { .. }) {
            self.local(command.array)?.call_method1("host_wrote_by", (tuple,))?;
        }
        let Some((trace, event)) = self.schedule.trace.as_ref().zip(details.event.take()) else { return Ok(()) };
        let served = match served {
            Served::Messages => PyString::new(py, "messages").into_any(),
            Served::Library => PyString::new(py, "library").into_any(),
            Served::Planned((planned, _)) => planned.bind(py).getattr("served")?,
        };
        let name = match route {
            Some(Route { schedule: Some(name), .. }) => PyString::new(py, name).into_any(),
            Some(_) => py.None().into_bound(py),
            None => tuple.get_item(tuple.len() - 1)?,
        };
        trace.call_method1(py, "end", (event, tuple, served, bytes, name))?;
        Ok(())
    }

    fn reducing(&self, array: usize) -> Result<Engine, Raised> {
        let found = self.exchanges().call_method1("reducing", (self.local(array)?,))?;
        Ok(found.cast::<Reducing>().map_err(PyErr::from)?.get().0.clone())
    }

    fn combine(&self, array: usize, part: &Box3, values: &[u8], codes: Option<&[u8]>) -> Result<(), Raised> {
        let (py, local) = (self.py, self.local(array)?);
        let dims = local.getattr("data")?.getattr("ndim")?.extract()?;
        let part = boxes(py, &[*part], dims)?.get_item(0)?;
        // The bytes are copied, because Python may keep views of them after this call.
        let codes = codes.map(|codes| PyBytes::new(py, codes));
        local.call_method1("combine", (part, PyBytes::new(py, values), codes))?;
        Ok(())
    }

    fn communicator(&self, participants: &[u32]) -> Result<usize, Raised> {
        let participants = PyTuple::new(self.py, participants)?;
        Ok(self.exchanges().call_method1("communicator", (participants,))?.extract()?)
    }

    fn is_planned(&self, call: &Arc<Call>, array: usize) -> Result<bool, Raised> {
        let call = self.call(call.clone(), array)?;
        Ok(self.exchanges().call_method1("is_planned", (call, self.local(array)?))?.extract()?)
    }

    fn can_start(&self) -> Result<bool, Raised> {
        Ok(self.exchanges().call_method0("can_start")?.extract()?)
    }

    fn start(&self, call: &Arc<Call>, array: usize, in_place: bool) -> Result<(Py<PyAny>, Py<PyAny>), Raised> {
        let call = self.call(call.clone(), array)?;
        let planned = self.exchanges().call_method1("start", (call, self.local(array)?, in_place))?;
        let poll = planned.getattr("poll")?.unbind();
        Ok((planned.unbind(), poll))
    }

    fn is_over(&self, (_, poll): &mut (Py<PyAny>, Py<PyAny>)) -> Result<bool, Raised> {
        Ok(poll.call0(self.py)?.extract(self.py)?)
    }

    fn finish(&self, (planned, _): &mut (Py<PyAny>, Py<PyAny>)) -> Result<(), Raised> {
        planned.call_method0(self.py, "finish")?;
        Ok(())
    }

    fn unproved(&self, error: DiscoverError) -> Raised {
        let error = refused(error);
        let told = self.exchanges().call_method1("unproved", (error.clone_ref(self.py),));
        Raised(told.err().unwrap_or(error))
    }

    fn guarded<R: Send>(&self, act: impl FnOnce() -> R + Send) -> Result<R, Raised> {
        Ok(detached(self.py, act)?)
    }

    fn unlocked<R: Send>(&self, act: impl FnOnce() -> R + Send) -> R {
        self.py.detach(act)
    }

    fn idle(&self) -> Result<(), Raised> {
        self.py.check_signals()?;
        self.py.detach(thread::yield_now);
        Ok(())
    }
}
