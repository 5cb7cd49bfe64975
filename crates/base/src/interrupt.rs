//! Interruption of long work.
//!
//! Loops that can run for more than a moment call [`poll`]. The caller wraps the work in [`watch`] with a hook that
//! reports whether the user asked to stop. In this case, [`poll`] unwinds with the payload [`Interrupted`]. Unwinding
//! frees memory, and functions between [`watch`] and [`poll`] need no error type for interrupts. Without a watch,
//! [`poll`] does nothing.
//!
//! A watch belongs to one thread. Of the threads that the work starts, only those of [`crate::parallel`] have a watch.

use std::{
    cell::{Cell, RefCell},
    panic::resume_unwind,
    time::{Duration, Instant},
};

/// The payload of the unwinding that [`poll`] starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupted;

/// A function that returns true if the user asked to stop.
pub type Hook = Box<dyn FnMut() -> bool>;

/// The least time between two calls of the hook.
const PERIOD: Duration = Duration::from_millis(50);
/// The number of calls of [`poll`] between two reads of the clock. A read of the clock costs more than a poll.
const POLLS: u32 = 64;

thread_local! {
    static LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
    static WATCH: RefCell<Option<(Hook, Instant)>> = const { RefCell::new(None) };
}

/// Runs `work`. In the meantime, [`poll`] and [`check`] on this thread call `hook`, at most every 50 ms. An inner watch
/// replaces the outer watch until it ends.
pub fn watch<R>(hook: Hook, work: impl FnOnce() -> R) -> R {
    struct Restore(Option<(Hook, Instant)>, u32);
    impl Drop for Restore {
        fn drop(&mut self) {
            WATCH.set(self.0.take());
            LEFT.set(self.1);
        }
    }
    let _restore = Restore(WATCH.replace(Some((hook, Instant::now()))), LEFT.replace(POLLS));
    work()
}

/// Unwinds with [`Interrupted`] if the hook of this thread's watch reports a stop. One of 64 calls reads the clock; the
/// other calls cost a few instructions.
#[inline]
pub fn poll() {
    // This accesses the variable only once, because in a library each access to a thread's variable is a function call.
    LEFT.with(|left| match left.get() {
        0 => look(),
        polls => left.set(polls - 1),
    });
}

/// Polls as [`poll`] does, but reads the clock in each call, for loops in which an iteration takes a microsecond or
/// more.
pub fn check() {
    look();
}

#[cold]
fn look() {
    LEFT.set(POLLS);
    let stop = WATCH.with_borrow_mut(|watch| match watch {
        Some((hook, last)) if last.elapsed() >= PERIOD => {
            *last = Instant::now();
            hook()
        }
        Some(_) => false,
        None => {
            LEFT.set(u32::MAX);
            false
        }
    });
    if stop {
        resume_unwind(Box::new(Interrupted));
    }
}
