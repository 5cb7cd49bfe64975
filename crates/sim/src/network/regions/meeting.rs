//! The barrier at which the threads of all regions meet between windows.

use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread::yield_now,
};

/// Number of polls before a thread yields: about as long as a window takes.
const SPINS: u32 = 2000;

pub(super) struct Meeting {
    threads: usize,
    here: AtomicUsize,
    round: AtomicUsize,
    failed: AtomicBool,
}

impl Meeting {
    pub fn new(threads: usize) -> Self {
        Self { threads, here: AtomicUsize::new(0), round: AtomicUsize::new(0), failed: AtomicBool::new(false) }
    }

    /// Waits for all threads; returns whether none has failed. Not inlined, so that profiles show its name.
    #[inline(never)]
    pub fn meet(&self) -> bool {
        let round = self.round.load(Ordering::Acquire);
        if self.here.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.here.store(0, Ordering::Release);
            self.round.store(round.wrapping_add(1), Ordering::Release);
        } else {
            let mut spins = 0;
            while self.round.load(Ordering::Acquire) == round {
                if self.failed.load(Ordering::Acquire) {
                    return false;
                }
                if spins < SPINS {
                    spins += 1;
                    spin_loop();
                } else {
                    yield_now();
                }
            }
        }
        !self.failed.load(Ordering::Acquire)
    }

    /// Makes all waiting threads return.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::Release);
    }
}

/// Fails the meeting when a thread unwinds, so that the other threads do not wait for it.
pub(super) struct Attending<'a>(pub &'a Meeting);

impl Drop for Attending<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail();
        }
    }
}
