//! [`Channel`], which makes a program's planned calls on one communicator, and [`LibraryCall`], a call that the MPI
//! library performs.

use std::{
    cell::Cell,
    sync::atomic::{AtomicBool, Ordering},
};

use pyo3::{buffer::PyUntypedBuffer, prelude::*};
use unisono_taskrun::{
    CallArguments, CallMemory, Channel as Engine, Found as Row, LibraryRequest, Program, Signals, finish,
};

use super::run_error;
use crate::{errors::detached, tasks::Raised};

/// A private duplicate of a communicator, with the plans that were added to it.
#[pyclass(frozen, module = "unisono")]
pub struct Channel(Engine);

/// The index of the row that serves a call, or the reason why no row does.
#[derive(IntoPyObject)]
enum Found {
    Row(usize),
    Unserved(&'static str),
}

#[pymethods]
impl Channel {
    /// Makes a channel. All ranks of the communicator call this together.
    #[new]
    fn new(py: Python<'_>, comm: usize) -> PyResult<Self> {
        finish_at_exit(py)?;
        Engine::new(&Calls(py), comm).map(Self).map_err(|Raised(error)| error)
    }

    #[getter]
    fn ranks(&self) -> u32 {
        self.0.ranks
    }

    #[getter]
    fn rank(&self) -> u32 {
        self.0.rank
    }

    #[getter]
    fn per_node(&self) -> u32 {
        self.0.per_node
    }

    /// Adds a plan and returns its index. All ranks call this together, with the same plan. `anywhere` permits rows
    /// that were measured under other conditions, and must be equal on all ranks.
    #[pyo3(signature = (plan, anywhere = false))]
    fn add(&self, py: Python<'_>, plan: &[u8], anywhere: bool) -> PyResult<usize> {
        self.0.add(&Calls(py), plan, anywhere).map_err(|Raised(error)| error)
    }

    /// Returns the index of the row of a plan that serves a call, or the reason why no row serves it. `unit` is the
    /// size of an element in bytes.
    #[pyo3(signature = (plan, collective, root, elements, unit, datatype = 0, op = None))]
    #[expect(clippy::too_many_arguments, reason = "what all ranks of a call know")]
    fn find(
        &self,
        plan: usize,
        collective: &str,
        root: u32,
        elements: usize,
        unit: usize,
        datatype: usize,
        op: Option<usize>,
    ) -> PyResult<Found> {
        let found = self.0.find(&CallArguments { plan, collective, root, elements, unit, datatype, op });
        Ok(match found.map_err(run_error)? {
            Row::Row(row) => Found::Row(row),
            Row::Unserved(reason) => Found::Unserved(reason),
        })
    }

    /// Begins a call that a row serves ([`Channel::find`]). Returns true if the call is complete. With `wait`, first
    /// polls until the call is complete. With `in_place`, the input is in the array of the output.
    #[pyo3(signature = (plan, collective, root, elements, unit, datatype, op, given, got, in_place, wait))]
    #[expect(clippy::too_many_arguments, reason = "a call and its memory")]
    fn start(
        &self,
        py: Python<'_>,
        plan: usize,
        collective: &str,
        root: u32,
        elements: usize,
        unit: usize,
        datatype: usize,
        op: Option<usize>,
        given: Option<&Bound<'_, PyAny>>,
        got: Option<&Bound<'_, PyAny>>,
        in_place: bool,
        wait: bool,
    ) -> PyResult<bool> {
        let arguments = CallArguments { plan, collective, root, elements, unit, datatype, op };
        let (given, got) = (given.map(memory).transpose()?, got.map(memory).transpose()?);
        self.0.start(&Calls(py), &arguments, (given, got), in_place, wait).map_err(|Raised(error)| error)
    }

    /// Advances the call under way. Returns true if the call is complete, or if there is no call; false while another
    /// thread advances the call.
    fn poll(&self, py: Python<'_>) -> PyResult<bool> {
        self.0.poll(&Calls(py)).map_err(|Raised(error)| error)
    }

    /// Frees the communicator, unless MPI has ended. All ranks call this together, while no call is under way. No call
    /// can follow.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close(&Calls(py)).map_err(|Raised(error)| error)
    }
}

/// A call that the MPI library performs, given by the handle of its request. `held` keeps the memory and the request
/// alive.
#[pyclass(frozen, module = "unisono")]
pub struct LibraryCall(LibraryRequest);

#[pymethods]
impl LibraryCall {
    #[new]
    fn new(request: usize, held: Py<PyAny>) -> PyResult<Self> {
        LibraryRequest::new(request, Box::new(held)).map(Self).map_err(run_error)
    }

    /// Advances the call. Returns true if the call is complete; false while another thread advances the call.
    fn poll(&self, py: Python<'_>) -> PyResult<bool> {
        self.0.poll(&Calls(py)).map_err(|Raised(error)| error)
    }
}

/// The Python interpreter as the program that makes the calls.
struct Calls<'py>(Python<'py>);

impl Program for Calls<'_> {
    type Error = Raised;

    fn guarded<R: Send>(&self, act: impl FnOnce() -> R + Send) -> Result<R, Raised> {
        Ok(detached(self.0, act)?)
    }

    /// Returns a check of signals in Python's main thread, where signal handlers run; None in other threads.
    fn signals(&self) -> Option<Signals<Raised>> {
        thread_local! {
            static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
        }
        let found = || -> PyResult<bool> {
            let threading = self.0.import("threading")?;
            Ok(threading.call_method0("current_thread")?.is(&threading.call_method0("main_thread")?))
        };
        let is_main = IS_MAIN.get().unwrap_or_else(|| found().unwrap_or(false));
        IS_MAIN.set(Some(is_main));
        is_main.then_some(check_signals)
    }
}

fn check_signals() -> Result<(), Raised> {
    Python::try_attach(|py| py.check_signals()).unwrap_or(Ok(())).map_err(Raised)
}

fn memory(array: &Bound<'_, PyAny>) -> PyResult<CallMemory> {
    let buffer = PyUntypedBuffer::get(array)?;
    let (address, bytes) = (buffer.buf_ptr().cast(), buffer.len_bytes());
    let (contiguous, writable) = (buffer.is_c_contiguous(), !buffer.readonly());
    // SAFETY: the buffer keeps its memory valid as long as it exists.
    Ok(unsafe { CallMemory::new(address, bytes, contiguous, writable, Box::new(buffer)) })
}

/// Registers [`finish_calls`] to run when Python exits, before mpi4py finalizes MPI.
fn finish_at_exit(py: Python<'_>) -> PyResult<()> {
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.swap(true, Ordering::SeqCst) {
        py.import("atexit")?.call_method1("register", (wrap_pyfunction!(finish_calls, py)?,))?;
    }
    Ok(())
}

#[pyfunction]
fn finish_calls(py: Python<'_>) -> PyResult<()> {
    finish(&Calls(py)).map_err(|Raised(error)| error)
}
