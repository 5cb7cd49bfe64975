//! Runs nonblocking collectives, such as `MPI_Iallreduce`, by the plan.
//!
//! If `UNISONO_NONBLOCKING` is on, the rows of the blocking collectives serve nonblocking calls. The switch is off by
//! default because times of nonblocking collectives differ from the measured times of blocking ones. The library makes
//! a call unless an earlier collective made the communicator ready: making it ready waits for other ranks, which a
//! nonblocking call must not do. The calls of one communicator run one after the other, in the order in which they
//! began, with messages separate from blocking calls. The MPI library advances the calls whenever it makes progress
//! ([`unisono_mpi`]'s hook), so the program may wait for anything meanwhile. Calls with the program's own operators are
//! left to the library, because the program may free the operator before the call ends.

use std::{
    cell::Cell,
    collections::VecDeque,
    ffi::c_int,
    sync::{
        Arc, Mutex, PoisonError, TryLockError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use unisono_mpi::{
    Agreement, Call, CallNotes, Failed, GeneralRequest, Home, Library, Outcome, PersistentRequest, Planned, Rows,
    library, noted_length,
};

use crate::{
    arguments::{Arguments, Described},
    comms::{self, Known},
    home,
    intercept::{Buffers, SERVED, prepare, rounds_alike, shielded},
    memory::Memory,
    passed_on::{self, Place},
    report,
};

/// The plan for nonblocking calls on a communicator, and the calls under way.
pub struct Begun {
    pub rows: Arc<Rows>,
    notes: Option<Arc<CallNotes>>,
    queue: Mutex<Queue>,
}

struct Queue {
    planned: Planned,
    /// Calls in order; only the first runs.
    calls: VecDeque<UnderWay>,
}

struct UnderWay {
    call: Call,
    entry: usize,
    /// The program's memory for the result, with a duplicate of its datatype; None if the schedule writes to this
    /// memory itself.
    unpack: Option<Memory>,
    buffers: Buffers,
    completion: Completion,
    since: Instant,
    ranks: u32,
    number: u64,
    has_started: bool,
}

/// The program's request, which is completed when its call is complete.
pub enum Completion {
    Once(GeneralRequest),
    Again(Arc<PersistentRequest>),
}

impl Completion {
    fn complete(self, library: &Library, code: c_int) {
        match self {
            Self::Once(request) => library.complete(request, code),
            Self::Again(request) => library.complete_again(&request, code != 0),
        }
    }
}

/// The queues of all communicators with calls under way.
static BUSY: Mutex<Vec<Arc<Begun>>> = Mutex::new(Vec::new());
static CALLS: AtomicUsize = AtomicUsize::new(0);

impl Begun {
    pub fn new(planned: Planned) -> Arc<Self> {
        let (rows, notes) = (Arc::clone(planned.rows()), planned.notes().map(Arc::clone));
        Arc::new(Self { rows, notes, queue: Mutex::new(Queue { planned, calls: VecDeque::new() }) })
    }

    pub fn note(&self, call: Option<&Call>) -> u64 {
        self.notes.as_ref().map_or(0, |notes| notes.note(call.map(noted_length)))
    }

    /// Applies `work` to the executor of the calls.
    pub fn with<T>(&self, work: impl FnOnce(&Planned) -> T) -> T {
        work(&self.queue.lock().unwrap_or_else(PoisonError::into_inner).planned)
    }

    /// Begins a call by an entry, with the `number` of its note. `request` makes the request, after all steps that can
    /// fail.
    ///
    /// # Errors
    /// Returns errors of the library, or `Failed::OTHER` after a failed call. After an error there is no request.
    pub fn begin(
        self: &Arc<Self>,
        library: &Library,
        home: &Home,
        described: &Described,
        (entry, number, ranks): (usize, u64, u32),
        request: impl FnOnce() -> Outcome<Completion>,
    ) -> Outcome {
        let mut buffers = Buffers::default();
        let call = prepare(library, home, described, &self.rows, &mut buffers, Some(entry))?;
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.has_failed() {
            return Err(Failed::OTHER);
        }
        let unpack = match described.output.filter(|_| described.unpacks) {
            Some(output) => Some(output.of_type(library.keep_type(output.datatype)?)),
            None => None,
        };
        // The call is counted before the registration: if the library runs the hook before the call is in the queue,
        // the hook then sees a call and stays registered.
        CALLS.fetch_add(1, Ordering::Relaxed);
        let made = library.call_on_progress(carry_on).and_then(|()| request());
        let (completion, since) = match made {
            Ok(completion) => (completion, Instant::now()),
            Err(failed) => {
                CALLS.fetch_sub(1, Ordering::Relaxed);
                if let Some(to) = unpack {
                    library.free_type(to.datatype);
                }
                return Err(failed);
            }
        };
        queue.calls.push_back(UnderWay {
            call,
            entry,
            unpack,
            buffers,
            completion,
            since,
            ranks,
            number,
            has_started: false,
        });
        SERVED.fetch_add(1, Ordering::Relaxed);
        let is_first = queue.calls.len() == 1;
        if is_first {
            queue.carry_on(library);
        }
        let is_over = queue.calls.is_empty();
        drop(queue);
        if is_first && !is_over {
            BUSY.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(self));
        }
        Ok(())
    }
}

/// Begins a call by the plan if possible; otherwise calls and counts the library's function. Never unwinds.
pub fn begin(arguments: Arguments, request: usize, place: Place, original: impl Fn() -> c_int) -> c_int {
    let pass = || {
        passed_on::count(place);
        original()
    };
    shielded(arguments.comm, &pass, |started| answer(serve(&arguments, request, started), arguments.comm, pass))
}

/// Returns the error code for the program. If the plan did not serve the call, `pass` makes it. An error calls the
/// communicator's error handler first.
pub fn answer(served: Outcome<bool>, comm: usize, pass: impl Fn() -> c_int) -> c_int {
    match served {
        Ok(true) => 0,
        Ok(false) => pass(),
        Err(failed) => {
            if let Some(library) = library() {
                library.call_error_handler(library.constants.handle(comm), failed);
            }
            failed.0
        }
    }
}

/// Begins a call. Returns false if the library must make the call. The result is the same on all ranks.
fn serve(arguments: &Arguments, request: usize, started: &Cell<bool>) -> Outcome<bool> {
    let (Some(library), Some(home)) = (library(), home::settled()) else { return Ok(false) };
    let comm = library.constants.handle(arguments.comm);
    if home.agreement() != Agreement::Planned || request == 0 {
        return Ok(false);
    }
    comms::with_found(comm, |known| serve_on(library, home, known, arguments, request, started)).unwrap_or(Ok(false))
}

fn serve_on(
    library: &Library,
    home: &Home,
    known: &Known,
    arguments: &Arguments,
    request: usize,
    started: &Cell<bool>,
) -> Outcome<bool> {
    let Some(begun) = known.begun() else { return Ok(false) };
    let described = arguments.describe(library, Some(home.comm()), known.ranks, known.rank);
    let number = begun.note(described.as_ref().ok().and_then(Option::as_ref).map(|described| &described.call));
    let Ok(Some(described)) = described else { return Ok(false) };
    let Some(entry) = entry(arguments, home, begun, known, &described) else { return Ok(false) };
    begun.begin(library, home, &described, (entry, number, known.ranks), || {
        let general = library.start_request()?;
        started.set(true);
        // SAFETY: the program passes memory for a request, as in a call of MPI.
        unsafe { library.give_handle(general.handle(), request) };
        Ok(Completion::Once(general))
    })?;
    Ok(true)
}

/// Returns the entry that serves a nonblocking call, if any. The result is the same on all ranks if the call is
/// correct.
pub fn entry(arguments: &Arguments, home: &Home, begun: &Begun, known: &Known, described: &Described) -> Option<usize> {
    let entry = begun.rows.find(&described.call)?;
    let refused = arguments.is_refused_alias(home, described);
    let users = described.call.reduction.is_some_and(|reduction| reduction.op.is_none());
    let serves = !users && !refused && described.fits(known.ranks);
    (serves && rounds_alike(&begun.rows, &described.call, entry, known)).then_some(entry)
}

/// Advances all calls as far as possible without waiting, and returns whether calls may remain. The library may call
/// this function at any time, also recursively.
fn carry_on() -> bool {
    if CALLS.load(Ordering::Relaxed) == 0 {
        return false;
    }
    let Some(library) = library() else { return false };
    // If the lock is taken, this thread or another thread is advancing the calls.
    let Ok(mut busy) = BUSY.try_lock() else { return true };
    busy.retain(|begun| {
        let mut queue = match begun.queue.try_lock() {
            Ok(queue) => queue,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return true,
        };
        queue.carry_on(library);
        !queue.calls.is_empty()
    });
    drop(busy);
    CALLS.load(Ordering::Relaxed) > 0
}

impl Queue {
    /// Returns whether a call failed before its end, so that its messages may still arrive.
    fn has_failed(&self) -> bool {
        self.calls.is_empty() && self.planned.is_running()
    }

    fn carry_on(&mut self, library: &Library) {
        while let Some(first) = self.calls.front_mut() {
            let over = if std::mem::replace(&mut first.has_started, true) {
                self.planned.poll(library)
            } else {
                self.planned.wait_for(first.number);
                // SAFETY: `prepare` gave the call memory of the sizes that the program states, which the program keeps
                // until its request is complete. Our own memory is kept in the queue, and for ever after a failure.
                unsafe { self.planned.start(library, first.call, first.entry) }
            };
            let ended = match over {
                Ok(false) => return,
                Ok(true) => Ok(()),
                Err(failed) => Err(failed),
            };
            let Some(call) = self.calls.pop_front() else { return };
            call.end(library, &self.planned, ended);
        }
    }
}

impl UnderWay {
    fn end(self, library: &Library, planned: &Planned, ended: Outcome) {
        let Self { call, entry, unpack, buffers, completion, since, ranks, .. } = self;
        let comm = home::settled().map_or(library.constants.comm_self, |home| home.comm());
        let ended = ended.and_then(|()| match unpack {
            // SAFETY: the program's memory as the program describes it, and the output's bytes.
            Some(to) => unsafe { to.copy_in(library, comm, call.output) },
            None => Ok(()),
        });
        if let Some(to) = unpack {
            library.free_type(to.datatype);
        }
        let code = match ended {
            Ok(()) => {
                let row = planned.rows().row(call.kind, entry);
                report::count_begun(call.kind, call.bytes(), ranks, row, since.elapsed());
                0
            }
            Err(Failed(code)) => {
                // Messages of the call may still read these buffers.
                std::mem::forget(buffers);
                code
            }
        };
        CALLS.fetch_sub(1, Ordering::Relaxed);
        completion.complete(library, code);
    }
}
