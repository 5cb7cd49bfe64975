//! Work on all cores.
//!
//! [`map`] is `iter().map()` with the same values, in the same order and under the same limit of steps, for any number
//! of cores: other threads compute values ahead of the caller, and the caller computes the values that they could not
//! finish. Concurrent values share the limit of memory: a value that does not fit into memory together with the others
//! is computed again after them.
//!
//! All callers of the process share its cores. While a [`Caller`] exists, the thread of the user that calls Unisono
//! counts as a busy core, so many concurrent callers start no further threads.

use std::{
    cell::Cell,
    iter,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicIsize, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

use crate::{
    interrupt::{self, Interrupted},
    limits, narrow,
};

/// The time after which work starts threads. Shorter work runs on its caller alone.
const PATIENCE: Duration = Duration::from_millis(2);
/// The interval at which a caller that waits for its threads checks if the user asked to stop.
const LOOK: Duration = Duration::from_millis(20);

/// The bytes of a thread's stack, as for a main thread on Linux.
const STACK_BYTES: usize = 8 << 20;

/// True if all work stays on the threads of its callers.
static ALONE: AtomicBool = AtomicBool::new(false);

/// Keeps all further work on the threads of its callers, because it may run functions that belong to those threads.
pub fn stay_on_one_thread() {
    ALONE.store(true, Relaxed);
}

/// The cores that the work of this process may use.
struct Cores {
    all: AtomicIsize,
    /// The number of cores without work: at first all except one. It is negative if there are more threads with work
    /// than cores.
    idle: AtomicIsize,
}

fn of_process() -> &'static Cores {
    static CORES: OnceLock<Cores> = OnceLock::new();
    CORES.get_or_init(|| {
        let all = thread::available_parallelism().map_or(1, |n| narrow(n.get()));
        Cores { all: all.into(), idle: (all - 1).into() }
    })
}

fn idle() -> &'static AtomicIsize {
    &of_process().idle
}

pub fn cores() -> usize {
    narrow(of_process().all.load(Relaxed))
}

/// Sets the number of cores that further work may use; 0 is treated as 1. The default is the number of cores on which
/// the operating system lets this process run.
pub fn set_cores(count: usize) {
    let count = narrow(count.max(1));
    let before = of_process().all.swap(count, Relaxed);
    idle().fetch_add(count - before, Relaxed);
}

/// A call of Unisono on a thread of the user. Each further concurrent call on another thread reduces the number of idle
/// cores by one.
pub struct Caller {
    is_outer: bool,
}

thread_local! {
    static IS_CALLING: Cell<bool> = const { Cell::new(false) };
}

static CALLERS: AtomicUsize = AtomicUsize::new(0);

impl Caller {
    #[must_use]
    pub fn enter() -> Self {
        let is_outer = !IS_CALLING.replace(true);
        if is_outer && CALLERS.fetch_add(1, Relaxed) > 0 {
            idle().fetch_sub(1, Relaxed);
        }
        Self { is_outer }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if self.is_outer {
            IS_CALLING.set(false);
            if CALLERS.fetch_sub(1, Relaxed) > 1 {
                idle().fetch_add(1, Relaxed);
            }
        }
    }
}

/// A permit to start a thread on one idle core. It is dropped when the thread ends.
struct Core;

impl Core {
    fn take() -> Option<Self> {
        let take = |idle: isize| (idle > 0 && !ALONE.load(Relaxed)).then(|| idle - 1);
        idle().fetch_update(Relaxed, Relaxed, take).ok().map(|_| Self)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        idle().fetch_add(1, Relaxed);
    }
}

/// A caller that waits for its threads. Its core counts as idle.
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

/// A guard that signals the other threads to end if the caller unwinds.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Relaxed);
        }
    }
}

/// Returns the values of `work` for all items, in order. Threads compute values before the function returns. The
/// iterator then computes the values whose work unwound or exceeded the limit of steps. For the first 2 ms, this thread
/// computes items alone, which may suffice for all items.
pub fn map<'a, T: Sync, R: Send + 'a>(
    items: &'a [T],
    work: impl Fn(&T) -> R + Sync + 'a,
) -> impl Iterator<Item = R> + 'a {
    map_after(PATIENCE, items, work)
}

/// Returns values as [`map`] does, but starts threads at once. It is for items that each take longer than the start of
/// a thread, 0.1 ms.
pub fn map_long<'a, T: Sync, R: Send + 'a>(
    items: &'a [T],
    work: impl Fn(&T) -> R + Sync + 'a,
) -> impl Iterator<Item = R> + 'a {
    map_after(Duration::ZERO, items, work)
}

fn map_after<'a, T: Sync, R: Send + 'a>(
    patience: Duration,
    items: &'a [T],
    work: impl Fn(&T) -> R + Sync + 'a,
) -> impl Iterator<Item = R> + 'a {
    let before = limits::counted_steps();
    let mut done: Vec<Option<(R, u64)>> = Vec::with_capacity(items.len());
    let (start, spent) = (Instant::now(), AtomicU64::new(0));
    while let [item, others @ ..] = &items[done.len()..] {
        if !limits::has_left(spent.load(Relaxed)) {
            break;
        }
        // Idle cores are looked for before each item, because busy cores may become idle.
        if !others.is_empty()
            && start.elapsed() >= patience
            && let Some(core) = Core::take()
        {
            let cores = iter::once(core).chain(iter::from_fn(Core::take)).take(others.len()).collect();
            done.extend(at_once(&items[done.len()..], &work, (before, &spent), cores));
            break;
        }
        done.push(alone(item, &work, (before, &spent)));
    }
    let mut done = done.into_iter();
    let mut items = items.iter();
    iter::from_fn(move || {
        let item = items.next()?;
        // If the steps of an item and of the items before it exceed the limit, the item is computed again on this
        // thread, and refused as with one thread.
        match done.next().flatten().filter(|(_, steps)| limits::has_left(*steps)) {
            Some((value, steps)) => {
                limits::add(steps);
                Some(value)
            }
            None => Some(work(item)),
        }
    })
}

/// Returns the values of two functions, which are computed concurrently if a core is idle.
pub fn both<A: Send, B: Send>(a: impl Fn() -> A + Sync, b: impl Fn() -> B + Sync) -> (A, B) {
    enum Value<A, B> {
        First(A),
        Second(B),
    }
    let work = |first: &bool| if *first { Value::First(a()) } else { Value::Second(b()) };
    let mut values = map_long(&[true, false], work);
    let (Some(Value::First(a)), Some(Value::Second(b))) = (values.next(), values.next()) else {
        unreachable!("the values are in the order of the items")
    };
    (a, b)
}

/// Runs `work` with the number of threads on which it may run, at most `most`: this thread, and one for each idle core.
/// These cores count as busy until `work` returns.
pub fn with_idle<R>(most: usize, work: impl FnOnce(usize) -> R) -> R {
    let cores: Vec<Core> = iter::from_fn(Core::take).take(most.saturating_sub(1)).collect();
    work(1 + cores.len())
}

/// A guard of a running thread. At the end of the thread, it frees the core and wakes the caller.
struct Running<'a> {
    _core: Core,
    running: &'a AtomicUsize,
    caller: &'a Thread,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Relaxed);
        self.caller.unpark();
    }
}

/// Computes items on this thread and others, and adds their steps to `spent`. The entry of an item is `None` if its
/// work unwound, or did not begin because all steps together exceed the limit.
fn at_once<T: Sync, R: Send>(
    items: &[T],
    work: &(impl Fn(&T) -> R + Sync),
    (before, spent): (Option<u64>, &AtomicU64),
    cores: Vec<Core>,
) -> Vec<Option<(R, u64)>> {
    let (next, ended) = (AtomicUsize::new(0), Arc::new(AtomicBool::new(false)));
    let done: Vec<Mutex<Option<(R, u64)>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let (caller, running) = (thread::current(), AtomicUsize::new(cores.len()));
    let run = &|| {
        while limits::has_left(spent.load(Relaxed)) {
            let at = next.fetch_add(1, Relaxed);
            let Some(item) = items.get(at) else { break };
            let found = alone(item, &|item: &T| limits::beside(|| work(item)), (before, spent));
            *done[at].lock().unwrap_or_else(PoisonError::into_inner) = found;
        }
    };
    thread::scope(|scope| {
        let _end = End(&ended);
        for core in cores {
            let ended = Arc::clone(&ended);
            let hook = Box::new(move || ended.load(Relaxed));
            let own = Running { _core: core, running: &running, caller: &caller };
            let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, move || {
                let _own = own;
                limits::counted_after(before, || interrupt::watch(hook, run));
            });
            // If the operating system refuses to start a thread, the other threads compute its items.
            drop(thread);
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

/// Computes an item, and adds its steps to `spent`. `before` are the caller's steps before all items. Returns the value
/// and its steps; `None` if the item's work unwound. An interrupt unwinds further.
fn alone<T, R>(item: &T, work: &impl Fn(&T) -> R, (before, spent): (Option<u64>, &AtomicU64)) -> Option<(R, u64)> {
    let run = || {
        limits::after_others(spent, || {
            let value = limits::counted_after(before, || work(item));
            (value, limits::last_counted() - before.unwrap_or(0))
        })
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(found) => Some(found),
        Err(payload) if payload.is::<Interrupted>() => resume_unwind(payload),
        Err(_) => None,
    }
}
