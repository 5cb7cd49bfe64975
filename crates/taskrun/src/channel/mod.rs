//! Planned collectives on memory of this process: a communicator with plans, and at most one call at a time.
//!
//! Calls that overlap in time use different channels, so their messages never match each other. All ranks make the
//! calls of a channel in the same order.
//!
//! Lifetimes: MPI may write to the memory of a call until the call is complete. So the list [`CALLS`] owns each channel
//! with a call under way, its arrays and its scratch memory. If the host drops the channel, or a signal ends the wait,
//! later calls of this module advance the call, and [`finish`] does so at the end of the program. A call that never
//! completes is never freed.

mod library_request;
mod memory;
mod under_way;

use std::{
    io::Write,
    mem,
    sync::{Arc, Mutex, atomic::Ordering},
    thread,
    time::Instant,
};

use unisono_collective::Kind;
use unisono_mpi::{
    Begun, Call, Comm, Failed, Library, Outcome, Planned, Reduction, Rows, ThreadLevel, Unserved, is_first, library,
    longest_wait,
};
use unisono_schedule::plan_file::PlanFile;

pub use library_request::LibraryRequest;
pub use memory::Side;
use memory::{address, check_places, sizes};
use under_way::SIGNALS;
pub use under_way::{CallList, Phase, Polled, Slot, Work};

use crate::{
    admission::{self, Inside, NOT_RUNNING, enter, park},
    error::RunError,
    layer::loaded,
    lock,
};

static CALLS: CallList<MpiCall> = CallList::new();
/// The number of polls after which a waiting call yields its core to other threads and ranks at each further poll.
const SPINS: u32 = 32;
/// The number of polls between two readings of the clock.
const POLLS: u32 = 16;
const IN_USE: &str =
    "a call is under way on this channel in another thread; wait for it, or give each thread a world of its own";

/// A function that checks for signals.
pub type Signals<E> = fn() -> Result<(), E>;

/// The host program that makes the calls.
pub trait Program {
    type Error: From<RunError> + Send;

    /// Runs a function that uses no object of the host.
    ///
    /// # Errors
    /// Returns an error if the function panicked.
    fn guarded<R: Send>(&self, act: impl FnOnce() -> R + Send) -> Result<R, Self::Error>;

    /// Returns the check for signals, if signal handlers run in this thread.
    fn signals(&self) -> Option<Signals<Self::Error>>;
}

/// A call by a plan, or by the MPI library itself.
enum MpiCall {
    Planned(&'static Library, Box<Planned>),
    Library(&'static Library, Begun),
}

impl Polled for MpiCall {
    fn poll(&mut self) -> Outcome<bool> {
        match self {
            Self::Planned(library, planned) => planned.poll(library),
            Self::Library(library, request) => library.is_over(request),
        }
    }

    /// Returns 0 for calls of the MPI library, which does not report progress.
    fn moves(&self) -> u64 {
        match self {
            Self::Planned(_, planned) => planned.moves(),
            Self::Library(..) => 0,
        }
    }
}

impl MpiCall {
    fn plan(&mut self) -> Option<&mut Planned> {
        match self {
            Self::Planned(_, planned) => Some(planned),
            Self::Library(..) => None,
        }
    }
}

/// The arguments of a call that are equal on all ranks, with the host's handles.
#[derive(Clone, Copy, Debug)]
pub struct CallArguments<'a> {
    pub plan: usize,
    pub collective: &'a str,
    pub root: u32,
    pub elements: usize,
    /// The bytes of an element.
    pub unit: usize,
    pub datatype: usize,
    pub op: Option<usize>,
}

/// The index of the plan's row that executes a call, or the reason why there is none ([`Unserved::name`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    Row(usize),
    Unserved(&'static str),
}

/// A duplicate of a communicator for this module alone, with its plans.
pub struct Channel {
    library: &'static Library,
    level: ThreadLevel,
    comm: Mutex<Comm>,
    slot: Arc<Slot<MpiCall>>,
    /// The rows of each plan, for threads that only look up rows; `None` for a plan that contains a program that some
    /// rank cannot decode.
    rows: Mutex<Vec<Option<Arc<Rows>>>>,
    pub ranks: u32,
    pub rank: u32,
    pub per_node: u32,
}

/// The reason why a wait ended.
enum Waited<E> {
    Over,
    Failed(Failed),
    /// The error that a signal handler of the program raised.
    Interrupted(E),
}

impl Channel {
    /// Creates a channel on a communicator. All ranks of the communicator must call this together.
    ///
    /// # Errors
    /// Returns an error if MPI is not running, does not permit calls of this thread, or the communicator is an
    /// intercommunicator.
    pub fn new<P: Program>(program: &P, comm: usize) -> Result<Self, P::Error> {
        let library = loaded()?;
        if !library.is_running() {
            return Err(RunError::refused(NOT_RUNNING).into());
        }
        let level = library.thread_level().map_err(RunError::from)?;
        let _inside = enter(library, level)?;
        carry_on(program)?;
        let made = program.guarded(|| -> Outcome<_> {
            let comm = library.constants.handle(comm);
            if library.is_inter(comm)? {
                return Ok(None);
            }
            let private = library.dup(comm)?;
            Ok(Some((private, library.size(private)?, library.rank(private)?, library.per_node(private)?)))
        })?;
        let Some((comm, ranks, rank, per_node)) = made.map_err(RunError::from)? else {
            let refusal = "the communicator connects two groups; a channel needs an intra-communicator";
            return Err(RunError::input(refusal).into());
        };
        let (comm, slot, rows) = (Mutex::new(comm), Slot::new(), Mutex::new(Vec::new()));
        Ok(Self { library, level, comm, slot, rows, ranks, rank, per_node })
    }

    /// Permits this thread to call MPI, and advances abandoned calls.
    fn enter<P: Program>(&self, program: &P) -> Result<Inside, P::Error> {
        let inside = enter(self.library, self.level)?;
        carry_on(program)?;
        Ok(inside)
    }

    fn work(&self) -> Result<Work<MpiCall>, RunError> {
        self.slot.work().ok_or_else(|| RunError::refused(IN_USE))
    }

    /// Adds a plan and returns its index. All ranks must call this together, with the same plan. `anywhere` permits
    /// rows that were measured under other conditions; it must be equal on all ranks.
    ///
    /// # Errors
    /// Returns an error if the plan cannot be read, or the channel accepts no plan now.
    pub fn add<P: Program>(&self, program: &P, plan: &[u8], anywhere: bool) -> Result<usize, P::Error> {
        let plan = program.guarded(|| PlanFile::read(plan.to_vec()))?;
        let plan = Arc::new(plan.map_err(RunError::input)?);
        let _inside = self.enter(program)?;
        let mut work = self.work()?;
        let state = work.state();
        // A running call is no obstacle, because its messages cannot match those of collectives on the channel's
        // communicator.
        if let Some(refusal) = state.phase.refusal().filter(|_| !matches!(state.phase, Phase::Running(_))) {
            return Err(RunError::refused(refusal).into());
        }
        let (library, comm) = (self.library, *lock(&self.comm));
        let made = program.guarded(|| Planned::on(library, comm, &plan, anywhere))?;
        let planned = made.map_err(RunError::from)?;
        lock(&self.rows).push(planned.as_ref().map(|planned| Arc::clone(planned.rows())));
        state.plans.push(planned.map(|planned| MpiCall::Planned(library, Box::new(planned))));
        Ok(state.plans.len() - 1)
    }

    /// Returns the row of a plan that executes a call, or the reason why the plan has none.
    ///
    /// # Errors
    /// Returns an error if the arguments are not valid for the collective.
    pub fn find(&self, arguments: &CallArguments<'_>) -> Result<Found, RunError> {
        let call = self.call(arguments)?;
        let rows = lock(&self.rows).get(arguments.plan).and_then(Option::clone);
        let Some(rows) = rows else { return Ok(Found::Unserved("unreadable")) };
        Ok(match rows.find(&call) {
            Some(entry) => Found::Row(rows.row(call.kind, entry)),
            None => Found::Unserved(rows.unserved(&call).map_or("unreadable", Unserved::name)),
        })
    }

    /// Starts a call with a row from [`Channel::find`], and returns whether it is complete. With `wait` it polls until
    /// the call is complete. With `in_place` the output's array contains the input.
    ///
    /// # Errors
    /// Returns an error if the memory does not fit the call, the channel accepts no call now, MPI fails, or a signal
    /// arrives.
    pub fn start<P: Program>(
        &self,
        program: &P,
        arguments: &CallArguments<'_>,
        (given, got): (Option<Side>, Option<Side>),
        in_place: bool,
        wait: bool,
    ) -> Result<bool, P::Error> {
        let library = self.library;
        let _inside = self.enter(program)?;
        let mut call = self.call(arguments)?;
        let (given_bytes, got_bytes) = sizes(&call, self.ranks, self.rank)?;
        call.input = address(given.as_ref(), given_bytes, false)?.cast_const();
        call.output = address(got.as_ref(), got_bytes, true)?;
        let mut work = self.work()?;
        let state = work.state();
        if let Some(refusal) = state.phase.refusal() {
            return Err(RunError::refused(refusal).into());
        }
        let plan = state.plans.get_mut(arguments.plan).and_then(Option::as_mut).and_then(MpiCall::plan);
        let found = plan.and_then(|planned| planned.rows().find(&call).map(|entry| (planned, entry)));
        let Some((planned, entry)) = found else {
            return Err(RunError::input("the plan has no row for this call").into());
        };
        if given_bytes > 0 && got_bytes > 0 {
            let room = got.as_ref().map_or(0, |side| side.bytes);
            check_places(&call, self.rank, (given_bytes, got_bytes), in_place, room)?;
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
        state.held = given.into_iter().chain(got).map(|side| side.object).collect();
        state.phase = Phase::Running(arguments.plan);
        // From here on the list owns the memory, even if this thread is interrupted.
        CALLS.begin(&self.slot);
        let signals = if wait { program.signals() } else { None };
        let waited = program.guarded(move || {
            // SAFETY: the arrays have the sizes of the call (`address`) and overlap only in place (`check_places`). The
            // state owns their objects and the copy, and the list owns the state until the call is complete, or for
            // ever after a failure.
            match unsafe { planned.start(library, call, entry) } {
                Ok(true) => Ok(Waited::Over),
                Ok(false) if wait => Ok(wait_for(planned, library, signals)),
                Ok(false) => Err(()),
                Err(failed) => Ok(Waited::Failed(failed)),
            }
        });
        state.phase = match &waited {
            Ok(Ok(Waited::Over)) => Phase::Idle,
            Ok(Err(())) => return Ok(false),
            Ok(Ok(Waited::Interrupted(_))) => Phase::Interrupted(arguments.plan),
            Ok(Ok(Waited::Failed(_))) | Err(_) => Phase::Failed,
        };
        match waited? {
            Ok(Waited::Over) | Err(()) => {}
            Ok(Waited::Failed(failed)) => return Err(RunError::from(failed).into()),
            Ok(Waited::Interrupted(error)) => {
                CALLS.leave(&self.slot);
                return Err(error);
            }
        }
        CALLS.end(work);
        Ok(true)
    }

    /// Advances the call under way and returns whether it is complete; true if there is none, false if another thread
    /// is advancing it.
    ///
    /// # Errors
    /// Returns an error if an earlier call failed or was interrupted, or if this call fails.
    pub fn poll<P: Program>(&self, program: &P) -> Result<bool, P::Error> {
        let _inside = self.enter(program)?;
        poll(program, &self.slot)
    }

    /// Frees the communicator, unless MPI has ended. All ranks must call this together, and no call can be made
    /// afterwards.
    ///
    /// # Errors
    /// Returns an error if a call is under way, failed or was interrupted, or if MPI fails.
    pub fn close<P: Program>(&self, program: &P) -> Result<(), P::Error> {
        let library = self.library;
        if admission::ENDING.load(Ordering::SeqCst) || !library.is_running() {
            return Ok(());
        }
        let _inside = self.enter(program)?;
        let mut work = self.work()?;
        let state = work.state();
        match state.phase {
            Phase::Closed => return Ok(()),
            phase => phase.refusal().map_or(Ok(()), |refusal| Err(RunError::refused(refusal)))?,
        }
        state.phase = Phase::Closed;
        state.plans.clear();
        lock(&self.rows).clear();
        let comm = mem::replace(&mut *lock(&self.comm), library.constants.comm_null);
        Ok(program.guarded(|| library.free(comm))?.map_err(RunError::from)?)
    }

    fn call(&self, arguments: &CallArguments<'_>) -> Result<Call, RunError> {
        let &CallArguments { collective, root, elements, unit, datatype, op, .. } = arguments;
        let kind: Kind = collective.parse().map_err(RunError::input)?;
        if root >= self.ranks {
            return Err(RunError::input(format!("root is {root}; accepted are 0 to {}", self.ranks - 1)));
        }
        let reduces = kind.reduces() && kind != Kind::Barrier;
        if reduces != op.is_some() {
            let needs = if reduces { "an operator" } else { "no operator" };
            return Err(RunError::input(format!("{kind} takes {needs}")));
        }
        let (library, c) = (self.library, &self.library.constants);
        let reduction = match op {
            None => None,
            Some(op) => {
                let (datatype, op_handle) = (c.handle(datatype), c.handle(op));
                let (op, element) = (c.op(op_handle), c.element(datatype));
                let asks = op.is_none() || element.is_none();
                let _inside = if asks { Some(enter(library, self.level)?) } else { None };
                let commutes = op.is_some() || library.commutes(op_handle)?;
                // MPI computes the length from the datatype, so a datatype of another size would access memory beyond
                // the arrays.
                let (bytes, plain) = library.layout(datatype)?;
                if !plain || bytes != unit {
                    let found = format!("elements of {unit} bytes are none of a datatype of {bytes} bytes");
                    return Err(RunError::input(found));
                }
                Some(Reduction { op, commutes, op_handle, datatype, element })
            }
        };
        let (input, output) = (std::ptr::null(), std::ptr::null_mut());
        Ok(Call { kind, root, elements, element_bytes: unit, reduction, input, output, in_place: false })
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        CALLS.leave(&self.slot);
    }
}

/// Advances a call under way, like [`Channel::poll`].
fn poll<P: Program>(program: &P, slot: &Arc<Slot<MpiCall>>) -> Result<bool, P::Error> {
    let Some(mut work) = slot.work() else { return Ok(false) };
    let state = work.state();
    match state.phase {
        Phase::Idle | Phase::Closed => return Ok(true),
        Phase::Running(_) => {}
        phase => return Err(RunError::refused(phase.refusal().unwrap_or_default()).into()),
    }
    let done = program.guarded(|| state.poll());
    if done.is_err() {
        state.phase = Phase::Failed;
    }
    let done = done?.map_err(RunError::from)?;
    if done {
        CALLS.end(work);
    }
    Ok(done)
}

/// Polls until the call is complete, fails, or a signal arrives.
fn wait_for<E>(planned: &mut Planned, library: &Library, signals: Option<Signals<E>>) -> Waited<E> {
    let (mut polls, mut last) = (0u32, Instant::now());
    loop {
        match planned.poll(library) {
            Ok(true) => return Waited::Over,
            Ok(false) => {}
            Err(failed) => return Waited::Failed(failed),
        }
        CALLS.poll_left();
        if admission::ENDING.load(Ordering::SeqCst) {
            park();
        }
        polls = polls.wrapping_add(1);
        if polls > SPINS {
            thread::yield_now();
        }
        if let Some(signals) = signals.filter(|_| polls.is_multiple_of(POLLS) && last.elapsed() >= SIGNALS) {
            last = Instant::now();
            if let Err(error) = signals() {
                return Waited::Interrupted(error);
            }
        }
    }
}

/// Advances abandoned calls, and frees completed ones.
fn carry_on<P: Program>(program: &P) -> Result<(), P::Error> {
    if CALLS.has_left() {
        program.guarded(|| CALLS.poll_left())?;
    }
    Ok(())
}

/// Prints a line to standard error in one write, so that launchers do not mix lines of ranks.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("unisono: {text}\n").as_bytes());
}

/// Advances every call under way until it is complete, or until no call has progressed for the time of
/// `UNISONO_PATIENCE`. Later calls are refused. It runs when the program ends, before MPI is finalized.
///
/// # Errors
/// Returns an error if a signal ended the wait.
pub fn finish<P: Program>(program: &P) -> Result<(), P::Error> {
    let Some(library) = library().filter(|library| library.is_running()) else {
        admission::ENDING.store(true, Ordering::SeqCst);
        return Ok(());
    };
    let patience = longest_wait(|line| {
        if is_first() {
            say(line);
        }
    });
    let level = library.thread_level().map_err(RunError::from)?;
    let poll = || {
        program.guarded(|| {
            thread::yield_now();
            CALLS.poll_all(|| enter(library, level).ok())
        })
    };
    let ended = CallList::<MpiCall>::finish(patience, poll, || program.signals().map_or(Ok(()), |check| check()));
    admission::ENDING.store(true, Ordering::SeqCst);
    // Waiting threads notice the flag at their next poll. A thread that is executing an operator of the program needs
    // longer, so this function waits for it.
    program.guarded(|| {
        let since = Instant::now();
        while admission::INSIDE.load(Ordering::SeqCst) > 0 && since.elapsed() < patience {
            thread::yield_now();
        }
    })?;
    let left = CALLS.count();
    if left > 0 {
        say(&format!("{left} collective calls had not ended when the program did; other ranks may wait for them"));
    }
    ended
}
