//! Planned collectives on memory of this process: one communicator with plans, one call at a time.
//!
//! The calls of a channel are made in the same order on all ranks. Calls that are to overlap take channels of their own,
//! each with its private communicator, so that their messages never meet.
//!
//! Lifetimes: MPI may write to the memory of a call until the call is over. So a channel with a call under way is held by
//! the list [`UNDER_WAY`], not by Python alone, together with the arrays, the scratch memory and the communicator. Where
//! Python drops the channel, or a signal ends the wait, later calls of this module carry the call on, and [`finish`] does
//! when the program ends. What never ends is never freed.
//!
//! Locks: a mutex here is held to move a value in or out, and never while anything waits, calls MPI or runs Python. A
//! thread that works on a channel takes the state out ([`Work`]); another one finds none there and is refused.

use std::{
    cell::Cell,
    fmt::Display,
    io::Write,
    mem,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use pyo3::{buffer::PyUntypedBuffer, prelude::*};
use unisono_collective::Kind;
use unisono_mpi::{Call, Comm, Failed, Library, Outcome, Planned, Reduction, Rows, ThreadLevel, library};
use unisono_schedule::plan_file::PlanFile;

use crate::errors::{Error, detached, input};

/// Channels with a call under way.
static UNDER_WAY: Mutex<Vec<Arc<Shared>>> = Mutex::new(Vec::new());
/// Some channel under way may have nobody who polls it.
static LEFT: AtomicBool = AtomicBool::new(false);
/// The program ends: no thread may call MPI any more.
static ENDING: AtomicBool = AtomicBool::new(false);
/// Threads that are in a call of this module.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// The one thread in a call, where MPI serves one at a time.
static ALONE: Mutex<Option<ThreadId>> = Mutex::new(None);

/// Polls of a call that waits, before each of them lets other threads and ranks of this core have their turn.
const SPINS: u32 = 32;
/// Polls between two looks at the clock, and the time between two looks for signals.
const POLLS: u32 = 16;
const SIGNALS: Duration = Duration::from_millis(50);
/// How long the end of the program waits for calls that do not move, unless [`PATIENCE_VARIABLE`] has other seconds.
const PATIENCE: Duration = Duration::from_secs(30);
const PATIENCE_VARIABLE: &str = "UNISONO_PATIENCE";

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

struct Shared {
    library: &'static Library,
    level: ThreadLevel,
    /// None while a thread works with it.
    state: Mutex<Option<Box<State>>>,
    /// For threads that only look. None: the plan says nothing of this number of ranks.
    rows: Mutex<Vec<Option<Arc<Rows>>>>,
    /// Nobody polls it any more: Python dropped the channel, or a signal ended the wait.
    left: AtomicBool,
}

struct State {
    comm: Comm,
    plans: Vec<Option<Planned>>,
    phase: Phase,
    /// What the input was copied to.
    copy: Vec<u128>,
    /// The program's memory, which stays while the call runs.
    held: Vec<PyUntypedBuffer>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    /// The call under way is one of this plan.
    Running(usize),
    /// The same, and the program no longer waits for it.
    Interrupted(usize),
    /// The call that was interrupted is over.
    Broken,
    /// MPI or this module failed in the midst of a call. Its memory is never freed.
    Failed,
    Closed,
}

impl Phase {
    fn refusal(self) -> Option<&'static str> {
        Some(match self {
            Phase::Idle => return None,
            Phase::Running(_) => "a call is under way on this channel; wait for it first",
            Phase::Interrupted(_) | Phase::Broken => {
                "a call on this channel was interrupted, so the ranks no longer agree on its calls; make another world"
            }
            Phase::Failed => "an earlier call on this channel failed; make another world",
            Phase::Closed => "this channel is closed; make another world",
        })
    }
}

const IN_USE: &str =
    "a call is under way on this channel in another thread; wait for it, or give each thread a world of its own";

/// The state of a channel while one thread works with it; it goes back when this is dropped.
struct Work<'a> {
    shared: &'a Arc<Shared>,
    state: Option<Box<State>>,
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        *lock(&self.shared.state) = self.state.take();
    }
}

/// A thread that may call MPI now.
struct Inside {
    /// It took the place in [`ALONE`].
    alone: bool,
}

impl Drop for Inside {
    fn drop(&mut self) {
        if self.alone {
            *lock(&ALONE) = None;
        }
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How a wait ended.
enum Waited {
    Over,
    Failed(Failed),
    /// A signal handler of the program raised this.
    Interrupted(PyErr),
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn mpi_error(Failed(code): Failed) -> PyErr {
    Error::new_err(format!("MPI ended a call with error code {code}"))
}

fn refused(message: impl Display) -> PyErr {
    Error::new_err(message.to_string())
}

#[pymethods]
impl Channel {
    /// All ranks of the communicator make one together.
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

    /// Adds a plan, the same on all ranks, which all do this together. Its number.
    fn add(&self, py: Python<'_>, plan: &[u8]) -> PyResult<usize> {
        let plan = detached(py, || PlanFile::read(plan.to_vec()))?;
        let plan = Arc::new(plan.map_err(input)?);
        let shared = &self.shared;
        let _inside = enter(shared.library, shared.level)?;
        carry_on(py)?;
        let mut work = shared.work().ok_or_else(|| refused(IN_USE))?;
        let state = work.state();
        // A call under way has messages of its own, which collectives on its communicator never meet.
        if let Some(refusal) = state.phase.refusal().filter(|_| !matches!(state.phase, Phase::Running(_))) {
            return Err(refused(refusal));
        }
        let comm = state.comm;
        let planned = detached(py, || Planned::on(shared.library, comm, &plan))?.map_err(mpi_error)?;
        let mut rows = lock(&shared.rows);
        rows.push(planned.as_ref().map(|planned| Arc::clone(planned.rows())));
        state.plans.push(planned);
        Ok(state.plans.len() - 1)
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
        let rows = lock(&self.shared.rows).get(plan).and_then(Option::clone);
        Ok(rows.and_then(|rows| rows.find(&call).map(|entry| rows.row(call.kind, entry))))
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
                // SAFETY: the input has so many bytes, as `address` saw, and the copy was made for them.
                unsafe { std::ptr::copy_nonoverlapping(call.input, to, given_bytes) };
                call.input = to;
            }
        }
        state.held = given.into_iter().chain(got).collect();
        state.phase = Phase::Running(plan);
        // From here on the list keeps the memory, whatever happens to this thread.
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

    /// Carries on the call under way, and says whether it is over. Where another thread carries it on, it is not.
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

    /// Frees the communicator; all ranks do this together, after which no call can be made.
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

    /// Keeps an object for as long as the process lives: what MPI may still write to when Python ends.
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
                // The sums go by the datatype, so elements of another size would reach beyond the arrays.
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

    /// Bytes of the input and the output of this rank.
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

    /// Refuses arrays that overlap, and an input in place that does not lie in the output as MPI has it.
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

impl Shared {
    /// None while another thread works with the channel.
    fn work<'a>(self: &'a Arc<Self>) -> Option<Work<'a>> {
        let state = lock(&self.state).take()?;
        Some(Work { shared: self, state: Some(state) })
    }

    /// Nobody polls the channel from here on; where a call is under way, others carry it on.
    fn leave(&self) {
        self.left.store(true, Ordering::SeqCst);
        LEFT.store(true, Ordering::SeqCst);
    }
}

impl Work<'_> {
    fn state(&mut self) -> &mut State {
        self.state.as_mut().expect("it goes back only when this is dropped")
    }

    /// The call is over: the program's memory is the program's again. Called where nothing is locked, as what Python
    /// frees may run code of the program.
    fn end(mut self) {
        let held = mem::take(&mut self.state().held);
        let shared = Arc::clone(self.shared);
        drop(self);
        let listed = {
            let mut under_way = lock(&UNDER_WAY);
            let at = under_way.iter().position(|other| Arc::ptr_eq(other, &shared));
            at.map(|at| under_way.swap_remove(at))
        };
        drop((listed, held));
    }
}

impl State {
    /// Polls the call under way. True: there is none any more.
    fn poll(&mut self, library: &Library) -> Outcome<bool> {
        let (Phase::Running(plan) | Phase::Interrupted(plan)) = self.phase else { return Ok(true) };
        let planned = self.plans[plan].as_mut().expect("a call runs only by a plan that serves it");
        let done = planned.poll(library);
        self.phase = match (&done, self.phase) {
            (Ok(false), phase) => phase,
            (Ok(true), Phase::Running(_)) => Phase::Idle,
            (Ok(true), _) => Phase::Broken,
            (Err(_), _) => Phase::Failed,
        };
        done
    }

    /// How often the call under way moved on; none where nothing will move it.
    fn moves(&self) -> Option<u64> {
        let (Phase::Running(plan) | Phase::Interrupted(plan)) = self.phase else { return None };
        self.plans[plan].as_ref().map(Planned::moves)
    }
}

const NOT_RUNNING: &str = "MPI was finalized or never initialised; no call can be made";

/// The right of this thread to call MPI.
///
/// # Errors
/// MPI has ended, or does not serve this thread now.
fn enter(library: &Library, level: ThreadLevel) -> PyResult<Inside> {
    // Counted before the flag is read: the end of the program sets the flag before it reads the count.
    INSIDE.fetch_add(1, Ordering::SeqCst);
    let mut inside = Inside { alone: false };
    if ENDING.load(Ordering::SeqCst) || !library.is_running() {
        return Err(refused(NOT_RUNNING));
    }
    let name = level.name();
    let remedy = "initialise MPI with MPI_THREAD_MULTIPLE to call from several threads";
    if level <= ThreadLevel::Funneled && !library.is_main_thread().map_err(mpi_error)? {
        return Err(refused(format!(
            "MPI was initialised with {name}, and this is not the thread that did it; call from that one, or {remedy}"
        )));
    }
    if level == ThreadLevel::Serialized {
        let me = thread::current().id();
        let mut alone = lock(&ALONE);
        match *alone {
            None => (*alone, inside.alone) = (Some(me), true),
            Some(thread) if thread == me => {}
            Some(_) => {
                return Err(refused(format!(
                    "MPI was initialised with {name}, and another thread is in a call; call one at a time, or {remedy}"
                )));
            }
        }
    }
    Ok(inside)
}

/// Polls until the call is over.
fn wait_for(planned: &mut Planned, library: &Library, watches: bool) -> Waited {
    let (mut polls, mut last) = (0u32, Instant::now());
    loop {
        match planned.poll(library) {
            Ok(true) => return Waited::Over,
            Ok(false) => {}
            Err(failed) => return Waited::Failed(failed),
        }
        poll_left();
        if ENDING.load(Ordering::SeqCst) {
            park();
        }
        polls = polls.wrapping_add(1);
        if polls > SPINS {
            thread::yield_now();
        }
        if watches && polls.is_multiple_of(POLLS) && last.elapsed() >= SIGNALS {
            last = Instant::now();
            if let Some(Err(error)) = Python::try_attach(|py| py.check_signals()) {
                return Waited::Interrupted(error);
            }
        }
    }
}

/// Ends this thread's part in the program: MPI is about to end, and Python takes no thread back.
fn park() -> ! {
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    loop {
        thread::park();
    }
}

/// Whether signal handlers run in this thread: in Python's main one.
fn may_have_signals(py: Python<'_>) -> bool {
    thread_local! {
        static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
    }
    IS_MAIN.get().unwrap_or_else(|| {
        let found = || -> PyResult<bool> {
            let threading = py.import("threading")?;
            Ok(threading.call_method0("current_thread")?.is(&threading.call_method0("main_thread")?))
        };
        let is_main = found().unwrap_or(false);
        IS_MAIN.set(Some(is_main));
        is_main
    })
}

/// Carries on the calls that nobody polls, and frees what has ended.
fn carry_on(py: Python<'_>) -> PyResult<()> {
    if LEFT.load(Ordering::Relaxed) {
        detached(py, poll_left)?;
    }
    Ok(())
}

/// Polls each call under way that nobody else polls. The caller may call MPI now.
fn poll_left() {
    if !LEFT.load(Ordering::Relaxed) || !LEFT.swap(false, Ordering::SeqCst) {
        return;
    }
    let left: Vec<_> = lock(&UNDER_WAY).iter().filter(|s| s.left.load(Ordering::SeqCst)).cloned().collect();
    let mut remain = false;
    for shared in &left {
        let Some(mut work) = shared.work() else {
            remain = true;
            continue;
        };
        let library = shared.library;
        match work.state().poll(library) {
            Ok(true) if work.state().phase != Phase::Failed => work.end(),
            Ok(false) => remain = true,
            // Its memory stays in the list.
            _ => {}
        }
    }
    if remain {
        LEFT.store(true, Ordering::SeqCst);
    }
}

/// Has Python call [`finish`] when it ends, which is before mpi4py finalizes MPI.
fn finish_at_exit(py: Python<'_>) -> PyResult<()> {
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.swap(true, Ordering::SeqCst) {
        py.import("atexit")?.call_method1("register", (wrap_pyfunction!(finish, py)?,))?;
    }
    Ok(())
}

fn patience() -> Duration {
    let seconds = std::env::var(PATIENCE_VARIABLE).ok().and_then(|text| text.parse().ok());
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(PATIENCE)
}

/// Carries on every call under way until it is over, or until nothing moved for [`patience`]. No call can be made then.
#[pyfunction]
fn finish(py: Python<'_>) -> PyResult<()> {
    let Some(library) = library().filter(|library| library.is_running()) else {
        ENDING.store(true, Ordering::SeqCst);
        return Ok(());
    };
    let patience = patience();
    let (mut moved, mut since, mut last) = (0, Instant::now(), Instant::now());
    let ended = loop {
        let (under_way, moves) = detached(py, || {
            thread::yield_now();
            poll_all(library)
        })?;
        if moves != moved {
            (moved, since) = (moves, Instant::now());
        }
        if under_way == 0 || since.elapsed() >= patience {
            break Ok(());
        }
        if last.elapsed() >= SIGNALS {
            last = Instant::now();
            if let Err(error) = py.check_signals() {
                break Err(error);
            }
        }
    };
    ENDING.store(true, Ordering::SeqCst);
    // Threads that wait see the flag at their next poll. One may be in an operator of the program, which takes its time.
    detached(py, || {
        let since = Instant::now();
        while INSIDE.load(Ordering::SeqCst) > 0 && since.elapsed() < patience {
            thread::yield_now();
        }
    })?;
    let left = lock(&UNDER_WAY).len();
    if left > 0 {
        let text = "collective calls had not ended when the program did; other ranks may wait for them";
        let _ = writeln!(std::io::stderr(), "unisono: {left} {text}");
    }
    ended
}

/// Polls every call under way once: how many there are, without those that failed, and how often they moved on.
fn poll_all(library: &Library) -> (usize, u64) {
    let all = lock(&UNDER_WAY).clone();
    let (mut under_way, mut moves) = (0, 0u64);
    for shared in &all {
        let level = shared.level;
        let polled = enter(library, level).ok().and_then(|inside| Some((inside, shared.work()?)));
        let Some((_inside, mut work)) = polled else {
            // Another thread carries it on.
            under_way += 1;
            continue;
        };
        let state = work.state();
        match state.poll(library) {
            Ok(true) if state.phase != Phase::Failed => {
                moves += 1;
                work.end();
            }
            Ok(false) => {
                under_way += 1;
                moves += state.moves().unwrap_or(0);
            }
            _ => {}
        }
    }
    (under_way, moves)
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
