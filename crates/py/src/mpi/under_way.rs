//! Calls under way: the list that keeps them, and the threads that advance them.
//!
//! A channel with a call under way outlives its Python object, because MPI may write to the memory of the call until it
//! is complete. The mutex of the list is held only to move a value. A thread that works on a channel takes the
//! channel's state out first.

use std::{
    io::Write,
    mem,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use pyo3::{buffer::PyUntypedBuffer, prelude::*};
use unisono_mpi::{Comm, Failed, Library, Outcome, Planned, Rows, ThreadLevel, library};

use super::{
    lock,
    threads::{ENDING, INSIDE, enter, park},
};
use crate::errors::detached;

/// Channels with a call under way.
pub static UNDER_WAY: Mutex<Vec<Arc<Shared>>> = Mutex::new(Vec::new());
/// True if a channel under way may have lost the thread that polls it.
static LEFT: AtomicBool = AtomicBool::new(false);
/// Polls of a waiting call before each further poll yields to other threads and ranks of this core.
const SPINS: u32 = 32;
/// Polls between two readings of the clock, and the time between two checks for signals.
const POLLS: u32 = 16;
const SIGNALS: Duration = Duration::from_millis(50);
/// The time for which the end of the program waits for calls without progress. [`PATIENCE_VARIABLE`] sets other
/// seconds.
const PATIENCE: Duration = Duration::from_secs(30);
const PATIENCE_VARIABLE: &str = "UNISONO_PATIENCE";

pub struct Shared {
    pub library: &'static Library,
    pub level: ThreadLevel,
    /// None while a thread works with it.
    pub state: Mutex<Option<Box<State>>>,
    /// Rows of each plan, for threads that only read. None: the plan does not serve this number of ranks.
    pub rows: Mutex<Vec<Option<Arc<Rows>>>>,
    /// Nobody polls the call any more: Python dropped the channel, or a signal ended the wait.
    pub left: AtomicBool,
}

pub struct State {
    pub comm: Comm,
    pub plans: Vec<Option<Planned>>,
    pub phase: Phase,
    /// A copy of the input, if the call cannot run in place.
    pub copy: Vec<u128>,
    /// The program's arrays, held while the call runs.
    pub held: Vec<PyUntypedBuffer>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Idle,
    /// A call by this plan is under way.
    Running(usize),
    /// The call is under way, but the program no longer waits for it.
    Interrupted(usize),
    /// The call that was interrupted is complete.
    Broken,
    /// MPI or this module failed during a call. The memory of the call is never freed.
    Failed,
    Closed,
}

impl Phase {
    pub fn refusal(self) -> Option<&'static str> {
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

/// The state of a channel while one thread works with it. Dropping this value puts the state back.
pub struct Work<'a> {
    shared: &'a Arc<Shared>,
    state: Option<Box<State>>,
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        *lock(&self.shared.state) = self.state.take();
    }
}

/// The end of a wait.
pub enum Waited {
    Over,
    Failed(Failed),
    /// A signal handler of the program raised this.
    Interrupted(PyErr),
}

impl Shared {
    /// Takes the state; None while another thread works with it.
    pub fn work<'a>(self: &'a Arc<Self>) -> Option<Work<'a>> {
        let state = lock(&self.state).take()?;
        Some(Work { shared: self, state: Some(state) })
    }

    /// Marks the channel as no longer polled. Other threads then advance its call.
    pub fn leave(&self) {
        self.left.store(true, Ordering::SeqCst);
        LEFT.store(true, Ordering::SeqCst);
    }
}

impl Work<'_> {
    pub fn state(&mut self) -> &mut State {
        self.state.as_mut().expect("it goes back only when this is dropped")
    }

    /// Ends a completed call and releases the program's arrays. No lock may be held: releasing a Python object may run
    /// code of the program.
    pub fn end(mut self) {
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
    /// Polls the call under way and returns whether none is left.
    pub fn poll(&mut self, library: &Library) -> Outcome<bool> {
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

    /// Returns the progress count of the call under way, or None if it cannot progress.
    fn moves(&self) -> Option<u64> {
        let (Phase::Running(plan) | Phase::Interrupted(plan)) = self.phase else { return None };
        self.plans[plan].as_ref().map(Planned::moves)
    }
}

/// Polls until the call is over.
pub fn wait_for(planned: &mut Planned, library: &Library, watches: bool) -> Waited {
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

/// Advances the calls that nobody polls, and frees those that have ended.
pub fn carry_on(py: Python<'_>) -> PyResult<()> {
    if LEFT.load(Ordering::Relaxed) {
        detached(py, poll_left)?;
    }
    Ok(())
}

/// Polls each call under way that nobody else polls. The caller must have permission to call MPI.
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

/// Registers [`finish`] to run when Python ends, which is before mpi4py finalizes MPI.
pub fn finish_at_exit(py: Python<'_>) -> PyResult<()> {
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

/// Advances every call under way until it is complete, or until no call progressed for [`patience`]. Later calls are
/// refused.
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
    // Waiting threads see the flag at their next poll. A thread may still be in an operator of the program.
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

/// Polls every call under way once. Returns the number of these calls, without failed ones, and their progress count.
fn poll_all(library: &Library) -> (usize, u64) {
    let all = lock(&UNDER_WAY).clone();
    let (mut under_way, mut moves) = (0, 0u64);
    for shared in &all {
        let level = shared.level;
        let polled = enter(library, level).ok().and_then(|inside| Some((inside, shared.work()?)));
        let Some((_inside, mut work)) = polled else {
            // Another thread advances it.
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
