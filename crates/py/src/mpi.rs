//! Planned collectives on memory of this process: one communicator with plans, one call at a time.
//!
//! The calls of a channel are made in the same order on all ranks. Calls that are to overlap take channels of their own,
//! each with its private communicator, so that their messages never meet.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::{buffer::PyUntypedBuffer, prelude::*};
use unisono_collective::Kind;
use unisono_mpi::{Call, Comm, Failed, Library, Outcome, Planned, Reduction, library};
use unisono_schedule::plan_file::PlanFile;

use crate::errors::{Error, detached, input};

/// A private duplicate of a communicator, with the plans added to it.
#[pyclass(frozen, module = "unisono")]
pub struct Channel {
    library: &'static Library,
    state: Mutex<State>,
    #[pyo3(get)]
    ranks: u32,
    #[pyo3(get)]
    rank: u32,
    #[pyo3(get)]
    per_node: u32,
}

struct State {
    comm: Comm,
    /// None: the plan says nothing of this number of ranks.
    plans: Vec<Option<Planned>>,
    /// The plan of the call under way.
    running: Option<usize>,
    /// What its input was copied to.
    copy: Vec<u128>,
    /// The program's memory, which must stay while the call runs.
    held: Vec<PyUntypedBuffer>,
}

fn mpi_error(Failed(code): Failed) -> PyErr {
    Error::new_err(format!("MPI ended a call with error code {code}"))
}

#[pymethods]
impl Channel {
    /// All ranks of the communicator make one together.
    #[new]
    fn new(py: Python<'_>, comm: usize) -> PyResult<Self> {
        let Some(library) = library() else { return Err(input("no MPI library is loaded in this process")) };
        let made = detached(py, || -> Outcome<_> {
            let private = library.dup(library.constants.handle(comm))?;
            Ok((private, library.size(private)?, library.rank(private)?, library.per_node(private)?))
        })?;
        let (comm, ranks, rank, per_node) = made.map_err(mpi_error)?;
        let state = State { comm, plans: Vec::new(), running: None, copy: Vec::new(), held: Vec::new() };
        Ok(Self { library, state: Mutex::new(state), ranks, rank, per_node })
    }

    /// Adds a plan, the same on all ranks, which all do this together. Its number.
    fn add(&self, py: Python<'_>, plan: &[u8]) -> PyResult<usize> {
        let plan = Arc::new(PlanFile::read(plan.to_vec()).map_err(input)?);
        detached(py, || {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let planned = Planned::on(self.library, state.comm, &plan)?;
            state.plans.push(planned);
            Ok(state.plans.len() - 1)
        })?
        .map_err(mpi_error)
    }

    /// The row of a plan that serves a call, if one does. `unit` is the bytes of an element.
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
    ) -> PyResult<Option<usize>> {
        let call = self.call(collective, root, elements, unit, datatype, op)?;
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(planned) = state.plans.get(plan).and_then(Option::as_ref) else { return Ok(None) };
        Ok(planned.find(&call).map(|entry| planned.row(call.kind, entry)))
    }

    /// Begins a call that [`Channel::find`] found a row for, and says whether it is over; with `wait` it is. An input that
    /// is in place is that of the output.
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
        let mut call = self.call(collective, root, elements, unit, datatype, op)?;
        let given = given.map(PyUntypedBuffer::get).transpose()?;
        let got = got.map(PyUntypedBuffer::get).transpose()?;
        let bytes = sizes(&call, self.ranks as usize, self.rank);
        call.input = address(given.as_ref(), bytes.0, false)?.cast_const();
        call.output = address(got.as_ref(), bytes.1, true)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { plans, running, copy, held, .. } = &mut *state;
        if running.is_some() {
            return Err(input("a call is under way on this channel; wait for it first"));
        }
        let planned = plans.get_mut(plan).and_then(Option::as_mut);
        let Some((planned, entry)) = planned.and_then(|p| p.find(&call).map(|entry| (p, entry))) else {
            return Err(input("the plan has no row for this call"));
        };
        if in_place && bytes.0 > 0 && bytes.1 > 0 {
            call.in_place = planned.runs_in_place(call.kind, entry);
            if !call.in_place {
                copy.resize(copy.len().max(bytes.0.div_ceil(size_of::<u128>())), 0);
                let to = copy.as_mut_ptr().cast::<u8>();
                // SAFETY: the input has so many bytes, as `address` saw, and the copy was made for them.
                unsafe { std::ptr::copy_nonoverlapping(call.input, to, bytes.0) };
                call.input = to;
            }
        }
        let library = self.library;
        if wait {
            // SAFETY: the arrays have the sizes of the call, and their buffers are held until it is over.
            let done = detached(py, move || unsafe { planned.run(library, call, entry) })?;
            return done.map(|()| true).map_err(mpi_error);
        }
        *held = given.into_iter().chain(got).collect();
        // SAFETY: as above; `held` keeps the buffers until `poll` has said that the call is over.
        let done = detached(py, move || unsafe { planned.start(library, call, entry) })?.map_err(mpi_error)?;
        if done {
            held.clear();
        } else {
            *running = Some(plan);
        }
        Ok(done)
    }

    /// Carries on the call under way, and says whether it is over.
    fn poll(&self, py: Python<'_>) -> PyResult<bool> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { plans, running, held, .. } = &mut *state;
        let Some(planned) = running.and_then(|plan| plans[plan].as_mut()) else { return Ok(true) };
        let done = detached(py, || planned.poll(self.library))?.map_err(mpi_error)?;
        if done {
            *running = None;
            held.clear();
        }
        Ok(done)
    }

    /// Frees the communicator; all ranks do this together, after which no call can be made.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.running.is_some() {
            return Err(input("a call is under way on this channel; wait for it first"));
        }
        state.plans.clear();
        let comm = std::mem::replace(&mut state.comm, self.library.constants.comm_null);
        if comm == self.library.constants.comm_null || !self.library.is_running() {
            return Ok(());
        }
        detached(py, || self.library.free(comm))?.map_err(mpi_error)
    }
}

impl Channel {
    fn call(
        &self,
        collective: &str,
        root: u32,
        elements: usize,
        unit: usize,
        datatype: usize,
        op: Option<usize>,
    ) -> PyResult<Call> {
        let kind: Kind = collective.parse().map_err(input)?;
        if root >= self.ranks {
            return Err(input(format!("root is {root}; accepted are 0 to {}", self.ranks - 1)));
        }
        let c = &self.library.constants;
        let reduction = match op {
            None => None,
            Some(op) => {
                let (datatype, op_handle) = (c.handle(datatype), c.handle(op));
                let op = c.op(op_handle);
                let commutes = op.is_some() || self.library.commutes(op_handle).map_err(mpi_error)?;
                Some(Reduction { op, commutes, op_handle, datatype, element: c.element(datatype) })
            }
        };
        let (input, output) = (std::ptr::null(), std::ptr::null_mut());
        Ok(Call { kind, root, elements, element_bytes: unit, reduction, input, output, in_place: false })
    }
}

/// Bytes of the input and the output of a rank.
fn sizes(call: &Call, ranks: usize, rank: u32) -> (usize, usize) {
    let unit = call.elements * call.element_bytes;
    let is_root = call.root == rank;
    match call.kind {
        Kind::Broadcast => (if is_root { unit } else { 0 }, if is_root { 0 } else { unit }),
        Kind::Reduce => (unit, if is_root { unit } else { 0 }),
        Kind::Allgather => (unit, unit * ranks),
        Kind::ReduceScatter => (unit * ranks, unit),
        Kind::Alltoall => (unit * ranks, unit * ranks),
        _ => (unit, unit),
    }
}

/// The address of an array of so many bytes at least; none is asked for where there are no bytes.
fn address(buffer: Option<&PyUntypedBuffer>, bytes: usize, writes: bool) -> PyResult<*mut u8> {
    let Some(buffer) = buffer.filter(|_| bytes > 0) else {
        return match bytes {
            0 => Ok(std::ptr::null_mut()),
            _ => Err(input(format!("an array of {bytes} bytes is missing"))),
        };
    };
    if !buffer.is_c_contiguous() || (writes && buffer.readonly()) || buffer.len_bytes() < bytes {
        return Err(input(format!("an array has to be contiguous, {bytes} bytes long, and writable for results")));
    }
    Ok(buffer.buf_ptr().cast())
}
