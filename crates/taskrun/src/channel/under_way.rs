//! Calls under way: the list that owns them, and their progress in several threads.
//!
//! A channel with a call under way outlives the host's object, because MPI may write to the memory of the call until it
//! is complete. The mutex of the list is locked only to move a value. A thread that works on a channel takes the
//! channel's state out of its mutex, so that no mutex is locked during the work.

use std::{
    any::Any,
    mem,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use unisono_mpi::Outcome;

use crate::lock;

/// The time between two checks for signals.
pub const SIGNALS: Duration = Duration::from_millis(50);

/// A plan or library request with at most one call under way.
pub trait Polled: Send {
    /// Advances the call and returns whether it is complete.
    ///
    /// # Errors
    /// Returns the errors of the message layer.
    fn poll(&mut self) -> Outcome<bool>;

    /// Returns a number that grows when a poll advances a call; always 0 if progress is not known.
    fn moves(&self) -> u64;
}

/// The part of a channel that the list of calls under way also owns.
pub struct Slot<P> {
    /// The state; `None` while a thread works with it.
    state: Mutex<Option<Box<State<P>>>>,
    /// True if the call is abandoned: the host dropped the channel, or a signal ended the wait.
    left: AtomicBool,
}

pub struct State<P> {
    pub plans: Vec<Option<P>>,
    pub phase: Phase,
    /// A copy of an input in place, for calls whose schedule cannot run in place.
    pub copy: Vec<u128>,
    /// The program's arrays, kept alive while the call runs.
    pub held: Vec<Box<dyn Any + Send>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    Idle,
    /// A call by the plan with this index is under way.
    Running(usize),
    /// The call by this plan is under way, but the program has stopped waiting.
    Interrupted(usize),
    /// The program stopped waiting for a call, which has completed since. The channel accepts no further calls.
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

/// The state of a channel while one thread works with it. Dropping this value returns the state to the slot.
pub struct Work<P> {
    slot: Arc<Slot<P>>,
    state: Option<Box<State<P>>>,
}

impl<P> Drop for Work<P> {
    fn drop(&mut self) {
        *lock(&self.slot.state) = self.state.take();
    }
}

impl<P> Work<P> {
    pub fn state(&mut self) -> &mut State<P> {
        self.state.as_mut().expect("it goes back only when this is dropped")
    }
}

impl<P> Slot<P> {
    pub fn new() -> Arc<Self> {
        let state = State { plans: Vec::new(), phase: Phase::Idle, copy: Vec::new(), held: Vec::new() };
        Arc::new(Self { state: Mutex::new(Some(Box::new(state))), left: AtomicBool::new(false) })
    }

    /// Takes the state; `None` while another thread works with it.
    pub fn work(self: &Arc<Self>) -> Option<Work<P>> {
        let state = lock(&self.state).take()?;
        Some(Work { slot: self.clone(), state: Some(state) })
    }
}

impl<P: Polled> State<P> {
    /// Polls the call under way, and returns whether it has ended; true if there is none.
    ///
    /// # Errors
    /// Returns the errors of the message layer, after which the phase is `Failed`.
    pub fn poll(&mut self) -> Outcome<bool> {
        let (Phase::Running(plan) | Phase::Interrupted(plan)) = self.phase else { return Ok(true) };
        let planned = self.plans[plan].as_mut().expect("a call runs only by a plan that serves it");
        let done = planned.poll();
        self.phase = match (&done, self.phase) {
            (Ok(false), phase) => phase,
            (Ok(true), Phase::Running(_)) => Phase::Idle,
            (Ok(true), _) => Phase::Broken,
            (Err(_), _) => Phase::Failed,
        };
        done
    }

    /// Returns [`Polled::moves`] of the call under way; `None` if there is none.
    fn moves(&self) -> Option<u64> {
        let (Phase::Running(plan) | Phase::Interrupted(plan)) = self.phase else { return None };
        self.plans[plan].as_ref().map(Polled::moves)
    }
}

/// The channels with a call under way.
pub struct CallList<P> {
    under_way: Mutex<Vec<Arc<Slot<P>>>>,
    /// True if a channel in the list may have an abandoned call.
    left: AtomicBool,
}

impl<P> Default for CallList<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P> CallList<P> {
    pub const fn new() -> Self {
        Self { under_way: Mutex::new(Vec::new()), left: AtomicBool::new(false) }
    }

    /// Returns the number of channels with a call under way.
    pub fn count(&self) -> usize {
        lock(&self.under_way).len()
    }

    /// Adds a channel. From here on the list owns the channel's memory.
    pub fn begin(&self, slot: &Arc<Slot<P>>) {
        lock(&self.under_way).push(slot.clone());
    }

    /// Removes a completed call and releases the program's arrays. The caller must hold no lock, because releasing an
    /// object of the host may run code of the program.
    pub fn end(&self, mut work: Work<P>) {
        let held = mem::take(&mut work.state().held);
        let slot = work.slot.clone();
        drop(work);
        let listed = {
            let mut under_way = lock(&self.under_way);
            let at = under_way.iter().position(|other| Arc::ptr_eq(other, &slot));
            at.map(|at| under_way.swap_remove(at))
        };
        drop((listed, held));
    }

    /// Marks a channel's call as abandoned, which [`Self::poll_left`] then advances.
    pub fn leave(&self, slot: &Slot<P>) {
        slot.left.store(true, Ordering::SeqCst);
        self.left.store(true, Ordering::SeqCst);
    }

    /// Returns whether a call under way may be abandoned.
    pub fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }
}

impl<P: Polled> CallList<P> {
    /// Polls each abandoned call, and frees completed ones. The caller must have permission to call MPI.
    pub fn poll_left(&self) {
        if !self.has_left() || !self.left.swap(false, Ordering::SeqCst) {
            return;
        }
        let left: Vec<_> =
            lock(&self.under_way).iter().filter(|slot| slot.left.load(Ordering::SeqCst)).cloned().collect();
        let mut remain = false;
        for slot in &left {
            let Some(mut work) = slot.work() else {
                remain = true;
                continue;
            };
            match work.state().poll() {
                Ok(true) if work.state().phase != Phase::Failed => self.end(work),
                Ok(false) => remain = true,
                // The call is not complete or has failed. The list still owns its memory.
                _ => {}
            }
        }
        if remain {
            self.left.store(true, Ordering::SeqCst);
        }
    }

    /// Polls every call under way once, with the permission that `enter` returns. Returns the number of calls still
    /// under way, without failed ones, and the sum of their [`Polled::moves`] plus one for each call that ended. A call
    /// that another thread is advancing is counted, but its moves are not.
    pub fn poll_all<I>(&self, enter: impl Fn() -> Option<I>) -> (usize, u64) {
        let all = lock(&self.under_way).clone();
        let (mut under_way, mut moves) = (0, 0u64);
        for slot in &all {
            let Some((_inside, mut work)) = enter().and_then(|inside| Some((inside, slot.work()?))) else {
                // Another thread is advancing the call, or this thread has no permission to call MPI.
                under_way += 1;
                continue;
            };
            let state = work.state();
            match state.poll() {
                Ok(true) if state.phase != Phase::Failed => {
                    moves += 1;
                    self.end(work);
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

    /// Advances every call under way until it is complete, or until no call has progressed for `patience`. `poll` polls
    /// all calls once, like [`Self::poll_all`], and `signals` checks for signals.
    ///
    /// # Errors
    /// Returns the errors of `poll` and of `signals`.
    pub fn finish<E>(
        patience: Duration,
        mut poll: impl FnMut() -> Result<(usize, u64), E>,
        mut signals: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut moved, mut since, mut last) = (0, Instant::now(), Instant::now());
        loop {
            let (under_way, moves) = poll()?;
            if moves != moved {
                (moved, since) = (moves, Instant::now());
            }
            if under_way == 0 || since.elapsed() >= patience {
                return Ok(());
            }
            if last.elapsed() >= SIGNALS {
                last = Instant::now();
                signals()?;
            }
        }
    }
}
