//! Work on all cores.
//!
//! [`map`] is `iter().map()` with the same values, in the same order and under the same limits, whatever the number of
//! cores: other threads compute values ahead of the caller, who computes anew what they could not finish.

use std::{
    iter,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicIsize, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    interrupt::{self, Interrupted},
    limits, narrow,
};

/// Work that ends earlier starts no thread.
const PATIENCE: Duration = Duration::from_millis(2);
/// Time between two looks of a caller that waits for its threads, whether the user asked to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Cores without work: all but one at first. Less than 0 while callers that waited go on.
fn idle() -> &'static AtomicIsize {
    static IDLE: OnceLock<AtomicIsize> = OnceLock::new();
    IDLE.get_or_init(|| AtomicIsize::new(thread::available_parallelism().map_or(1, |n| narrow(n.get())) - 1))
}

/// The right to start a thread, which ends with the thread.
struct Core;

impl Core {
    fn take() -> Option<Self> {
        let take = |idle: isize| (idle > 0).then(|| idle - 1);
        idle().fetch_update(Relaxed, Relaxed, take).ok().map(|_| Self)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        idle().fetch_add(1, Relaxed);
    }
}

/// A caller that waits for its threads, whose core is idle.
struct Waiting;

impl Waiting {
    fn new() -> Self {
        idle().fetch_add(1, Relaxed);
        Self
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        idle().fetch_sub(1, Relaxed);
    }
}

/// Tells the other threads to end if the caller unwinds.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Relaxed);
        }
    }
}

/// Returns the values of `work`, most of which are computed when this function returns.
pub fn map<'a, T: Sync, R: Send + 'a>(
    items: &'a [T],
    work: impl Fn(&T) -> R + Sync + 'a,
) -> impl Iterator<Item = R> + 'a {
    let before = limits::counted_steps();
    let mut done: Vec<Option<(R, u64)>> = Vec::with_capacity(items.len());
    let (start, mut spent) = (Instant::now(), 0);
    while let [item, others @ ..] = &items[done.len()..] {
        if !limits::has_left(spent) {
            break;
        }
        // Cores that are busy now may be idle after some items.
        if !others.is_empty()
            && start.elapsed() >= PATIENCE
            && let Some(core) = Core::take()
        {
            let cores = iter::once(core).chain(iter::from_fn(Core::take)).take(others.len()).collect();
            done.extend(at_once(&items[done.len()..], &work, before, cores));
            break;
        }
        let found = alone(item, &work, before);
        spent += found.as_ref().map_or(0, |found| found.1);
        done.push(found);
    }
    let mut done = done.into_iter();
    let mut items = items.iter();
    iter::from_fn(move || {
        let item = items.next()?;
        // Steps that do not fit beside those of the items before are refused as on one thread.
        match done.next().flatten().filter(|(_, steps)| limits::has_left(*steps)) {
            Some((value, steps)) => {
                limits::add(steps);
                Some(value)
            }
            None => Some(work(item)),
        }
    })
}

/// Computes items on this thread and others. `None` for those whose work unwound or was not begun because the steps of
/// all reach the limit.
fn at_once<T: Sync, R: Send>(
    items: &[T],
    work: &(impl Fn(&T) -> R + Sync),
    before: Option<u64>,
    cores: Vec<Core>,
) -> Vec<Option<(R, u64)>> {
    let (next, spent, ended) = (AtomicUsize::new(0), AtomicU64::new(0), Arc::new(AtomicBool::new(false)));
    let done: Vec<Mutex<Option<(R, u64)>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let (caller, running) = (thread::current(), AtomicUsize::new(cores.len()));
    let run = &|| {
        while limits::has_left(spent.load(Relaxed)) {
            let at = next.fetch_add(1, Relaxed);
            let Some(item) = items.get(at) else { break };
            let found = alone(item, work, before);
            spent.fetch_add(found.as_ref().map_or(0, |found| found.1), Relaxed);
            *done[at].lock().unwrap_or_else(PoisonError::into_inner) = found;
        }
    };
    thread::scope(|scope| {
        let _end = End(&ended);
        for core in cores {
            let ended = Arc::clone(&ended);
            let hook = Box::new(move || ended.load(Relaxed));
            let (caller, running) = (&caller, &running);
            scope.spawn(move || {
                limits::counted_after(before, || interrupt::watch(hook, run));
                drop(core);
                running.fetch_sub(1, Relaxed);
                caller.unpark();
            });
        }
        run();
        let _waiting = Waiting::new();
        while running.load(Relaxed) > 0 {
            interrupt::check();
            thread::park_timeout(LOOK);
        }
    });
    done.into_iter().map(|found| found.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Computes an item, with its steps. `None` if its work unwound, except for an interruption, which passes.
fn alone<T, R>(item: &T, work: &impl Fn(&T) -> R, before: Option<u64>) -> Option<(R, u64)> {
    let run = || limits::counted_after(before, || work(item));
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(value) => Some((value, limits::last_counted() - before.unwrap_or(0))),
        Err(payload) if payload.is::<Interrupted>() => resume_unwind(payload),
        Err(_) => None,
    }
}
