//! [`Channel`]: the calls of a program on one communicator.
//!
//! A channel is a communicator with one call under way. Overlapping calls use several channels in turn, so their
//! messages never match each other. Calls may overlap if all ranks issue them in one order.

use std::{
    mem,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use pyo3::{buffer::PyUntypedBuffer, prelude::*};
use unisono_collective::Kind;
use unisono_mpi::{Call, Outcome, Planned, Reduction, Unserved, library};
use unisono_schedule::plan_file::PlanFile;

use super::{
    lock, mpi_error, refused,
    threads::{ENDING, NOT_RUNNING, enter, may_have_signals},
    under_way::{Phase, Shared, State, UNDER_WAY, Waited, carry_on, finish_at_exit, wait_for},
};
use crate::errors::{detached, input};

/// A private duplicate of a communicator, with the plans added to it.
#[pyclass(frozen, module = "unisono")]
pub struct Channel {
    shared: Arc<Shared>,
    #[pyo3(get)]
    ranks: u32,
    #[pyo3(get)]
    rank: u32,
    #[pyo3(get)]
    per_node: u32,
}

/// The number of a row, or the reason why no row serves.
#[derive(IntoPyObject)]
enum Found {
    Row(usize),
    Unserved(&'static str),
}

const IN_USE: &str =
    "a call is under way on this channel in another thread; wait for it, or give each thread a world of its own";

#[pymethods]
impl Channel {
    /// Makes a channel. All ranks of the communicator call this together.
    #[new]
    fn new(py: Python<'_>, comm: usize) -> PyResult<Self> {
        let Some(library) = library() else { return Err(input("no MPI library is loaded in this process")) };
        if !library.is_running() {
            return Err(refused(NOT_RUNNING));
        }
        finish_at_exit(py)?;
        let level = library.thread_level().map_err(mpi_error)?;
        let _inside = enter(library, level)?;
        carry_on(py)?;
        let made = detached(py, || -> Outcome<_> {
            let comm = library.constants.handle(comm);
            if library.is_inter(comm)? {
                return Ok(None);
            }
            let private = library.dup(comm)?;
            Ok(Some((private, library.size(private)?, library.rank(private)?, library.per_node(private)?)))
        })?;
        let Some((comm, ranks, rank, per_node)) = made.map_err(mpi_error)? else {
            return Err(input("the communicator connects two groups; a channel needs an intra-communicator"));
        };
        let (plans, phase, copy, held) = (Vec::new(), Phase::Idle, Vec::new(), Vec::new());
        let state = Mutex::new(Some(Box::new(State { comm, plans, phase, copy, held })));
        let (rows, left) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        Ok(Self { shared: Arc::new(Shared { library, level, state, rows, left }), ranks, rank, per_node })
    }

    /// Adds a plan and returns its number. All ranks call this together, with the same plan. `anywhere` permits rows
    /// that were measured under other conditions; it must be equal on all ranks.
    #[pyo3(signature = (plan, anywhere = false))]
    fn add(&self, py: Python<'_>, plan: &[u8], anywhere: bool) -> PyResult<usize> {
        let plan = detached(py, || PlanFile::read(plan.to_vec()))?;
        let plan = Arc::new(plan.map_err(input)?);
        let shared = &self.shared;
        let _inside = enter(shared.library, shared.level)?;
        carry_on(py)?;
        let mut work = shared.work().ok_or_else(|| refused(IN_USE))?;
        let state = work.state();
        // A call under way uses its own messages, which collectives on its communicator cannot match.
        if let Some(refusal) = state.phase.refusal().filter(|_| !matches!(state.phase, Phase::Running(_))) {
            return Err(refused(refusal));
        }
        let comm = state.comm;
        let made = detached(py, || Planned::on(shared.library, comm, &plan, anywhere))?;
        let planned = made.map_err(mpi_error)?;
        let mut rows = lock(&shared.rows);
        rows.push(planned.as_ref().map(|planned| Arc::clone(planned.rows())));
        state.plans.push(planned);
        Ok(state.plans.len() - 1)
    }

    /// Returns the row of a plan that serves a call, or the reason why no row does. `unit` is the bytes of an element.
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
        let call = self.call(collective, root, elements, unit, datatype, op)?;
        let rows = lock(&self.shared.rows).get(plan).and_then(Option::clone);
        let Some(rows) = rows else { return Ok(Found::Unserved("unreadable")) };
        Ok(match rows.find(&call) {
            Some(entry) => Found::Row(rows.row(call.kind, entry)),
            None => Found::Unserved(rows.unserved(&call).map_or("unreadable", Unserved::name)),
        })
    }

    /// Begins a call with a row from [`Channel::find`], and returns whether it is complete; with `wait` it polls until
    /// then. With `in_place` the input is in the output's array.
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
        let shared = &self.shared;
        let library = shared.library;
        let _inside = enter(library, shared.level)?;
        carry_on(py)?;
        let mut call = self.call(collective, root, elements, unit, datatype, op)?;
        let given = given.map(PyUntypedBuffer::get).transpose()?;
        let got = got.map(PyUntypedBuffer::get).transpose()?;
        let (given_bytes, got_bytes) = self.sizes(&call)?;
        call.input = address(given.as_ref(), given_bytes, false)?.cast_const();
        call.output = address(got.as_ref(), got_bytes, true)?;
        let mut work = shared.work().ok_or_else(|| refused(IN_USE))?;
        let state = work.state();
        if let Some(refusal) = state.phase.refusal() {
            return Err(refused(refusal));
        }
        let planned = state.plans.get_mut(plan).and_then(Option::as_mut);
        let Some((planned, entry)) = planned.and_then(|p| p.rows().find(&call).map(|entry| (p, entry))) else {
            return Err(input("the plan has no row for this call"));
        };
        if given_bytes > 0 && got_bytes > 0 {
            let room = got.as_ref().map_or(0, PyUntypedBuffer::len_bytes);
            self.check_places(&call, (given_bytes, got_bytes), in_place, room)?;
            call.in_place = in_place && planned.rows().runs_in_place(call.kind, entry);
            if in_place && !call.in_place {
                let words = given_bytes.div_ceil(size_of::<u128>());
                state.copy.resize(state.copy.len().max(words), 0);
                let to = state.copy.as_mut_ptr().cast::<u8>();
                // SAFETY: `address` checked that the input has this number of bytes, and the copy has at least as many.
                unsafe { std::ptr::copy_nonoverlapping(call.input, to, given_bytes) };
                call.input = to;
            }
        }
        state.held = given.into_iter().chain(got).collect();
        state.phase = Phase::Running(plan);
        // From here on the list keeps the memory, even if this thread is interrupted.
        lock(&UNDER_WAY).push(Arc::clone(shared));
        let watches = wait && may_have_signals(py);
        let waited = detached(py, move || {
            // SAFETY: the arrays have the sizes of the call (`address`) and overlap only in place (`check_places`); the
            // state holds their buffers and the copy, and the list holds the state until the call is over, for good
            // after a failure.
            match unsafe { planned.start(library, call, entry) } {
                Ok(true) => Ok(Waited::Over),
                Ok(false) if wait => Ok(wait_for(planned, library, watches)),
                Ok(false) => Err(()),
                Err(failed) => Ok(Waited::Failed(failed)),
            }
        });
        state.phase = match &waited {
            Ok(Ok(Waited::Over)) => Phase::Idle,
            Ok(Err(())) => return Ok(false),
            Ok(Ok(Waited::Interrupted(_))) => Phase::Interrupted(plan),
            Ok(Ok(Waited::Failed(_))) | Err(_) => Phase::Failed,
        };
        match waited? {
            Ok(Waited::Over) | Err(()) => {}
            Ok(Waited::Failed(failed)) => return Err(mpi_error(failed)),
            Ok(Waited::Interrupted(error)) => {
                shared.leave();
                return Err(error);
            }
        }
        work.end();
        Ok(true)
    }

    /// Advances the call under way and returns whether it is complete. While another thread advances it, returns false.
    fn poll(&self, py: Python<'_>) -> PyResult<bool> {
        let shared = &self.shared;
        let _inside = enter(shared.library, shared.level)?;
        carry_on(py)?;
        let Some(mut work) = shared.work() else { return Ok(false) };
        let state = work.state();
        match state.phase {
            Phase::Idle | Phase::Closed => return Ok(true),
            Phase::Running(_) => {}
            phase => return Err(refused(phase.refusal().unwrap_or_default())),
        }
        let done = detached(py, || state.poll(shared.library));
        if done.is_err() {
            state.phase = Phase::Failed;
        }
        let done = done?.map_err(mpi_error)?;
        if done {
            work.end();
        }
        Ok(done)
    }

    /// Frees the communicator. All ranks call this together, and no call can be made afterwards.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let shared = &self.shared;
        let library = shared.library;
        if ENDING.load(Ordering::SeqCst) || !library.is_running() {
            return Ok(());
        }
        let _inside = enter(library, shared.level)?;
        carry_on(py)?;
        let mut work = shared.work().ok_or_else(|| refused(IN_USE))?;
        let state = work.state();
        match state.phase {
            Phase::Closed => return Ok(()),
            phase => phase.refusal().map_or(Ok(()), |refusal| Err(refused(refusal)))?,
        }
        state.phase = Phase::Closed;
        state.plans.clear();
        lock(&shared.rows).clear();
        let comm = mem::replace(&mut state.comm, library.constants.comm_null);
        detached(py, || library.free(comm))?.map_err(mpi_error)
    }

    /// Leaks an object, because MPI may still write to its memory when Python ends.
    #[staticmethod]
    fn keep_for_good(kept: Py<PyAny>) {
        mem::forget(kept);
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.shared.leave();
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
        let reduces = matches!(kind, Kind::Allreduce | Kind::Reduce | Kind::ReduceScatter);
        if reduces != op.is_some() {
            let needs = if reduces { "an operator" } else { "no operator" };
            return Err(input(format!("{kind} takes {needs}")));
        }
        let (library, c) = (self.shared.library, &self.shared.library.constants);
        let reduction = match op {
            None => None,
            Some(op) => {
                let (datatype, op_handle) = (c.handle(datatype), c.handle(op));
                let (op, element) = (c.op(op_handle), c.element(datatype));
                let asks = op.is_none() || element.is_none();
                let _inside = if asks { Some(enter(library, self.shared.level)?) } else { None };
                let commutes = op.is_some() || library.commutes(op_handle).map_err(mpi_error)?;
                // MPI combines by the datatype, so elements of another size would reach beyond the arrays.
                let (bytes, plain) = library.layout(datatype).map_err(mpi_error)?;
                if !plain || bytes != unit {
                    return Err(input(format!("elements of {unit} bytes are none of a datatype of {bytes} bytes")));
                }
                Some(Reduction { op, commutes, op_handle, datatype, element })
            }
        };
        let (input, output) = (std::ptr::null(), std::ptr::null_mut());
        Ok(Call { kind, root, elements, element_bytes: unit, reduction, input, output, in_place: false })
    }

    /// Returns the bytes of the input and the output of this rank.
    fn sizes(&self, call: &Call) -> PyResult<(usize, usize)> {
        let too_large = || input(format!("{} elements of {} bytes are too many", call.elements, call.element_bytes));
        let (given, got) = call.sizes(self.ranks).ok_or_else(too_large)?;
        let is_root = call.root == self.rank;
        Ok(match call.kind {
            Kind::Broadcast if is_root => (given, 0),
            Kind::Broadcast => (0, got),
            Kind::Reduce if !is_root => (given, 0),
            _ => (given, got),
        })
    }

    /// Refuses arrays that overlap, and an in-place input that is not at its MPI position in the output.
    fn check_places(&self, call: &Call, (given, got): (usize, usize), in_place: bool, room: usize) -> PyResult<()> {
        let (from, to) = (call.input.addr(), call.output.addr());
        if !in_place {
            return match from < to.saturating_add(got) && to < from.saturating_add(given) {
                true => Err(input("the arrays of the input and of the result share memory")),
                false => Ok(()),
            };
        }
        let offset = if call.kind == Kind::Allgather { self.rank as usize * given } else { 0 };
        match to.checked_add(offset) == Some(from) && offset + given <= room {
            true => Ok(()),
            false => Err(input("an input in place has to lie in the array of the result")),
        }
    }
}

/// Returns the address of an array of at least `bytes` bytes; null if `bytes` is 0.
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
