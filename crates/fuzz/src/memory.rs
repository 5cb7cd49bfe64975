//! Counts, with an allocator, the memory that an input uses.
//!
//! The counts cover the whole process, which runs one input at a time. An allocation beyond the hard limit prints a
//! line and ends the process: an allocator may not unwind, and the input could use up the machine's memory. Memory use
//! between the soft and the hard limit is reported after the input has run.
#![allow(unsafe_code, reason = "an allocator is an unsafe trait")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    io::Write,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Line on standard error about an input beyond the hard limit.
pub const OVER: &str = "fuzz: memory is over the hard bound";

fn count(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed).wrapping_add(bytes);
    if live > PEAK.load(Relaxed) {
        PEAK.store(live, Relaxed);
    }
    // From here on nothing may be allocated.
    if live > MOST.load(Relaxed) {
        MOST.store(usize::MAX, Relaxed);
        let _ = std::io::stderr().write_all(OVER.as_bytes());
        let _ = std::io::stderr().write_all(b"\n");
        std::process::abort();
    }
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: `System` requires the same guarantees of the caller as `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as for `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: all blocks of this allocator come from `System`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the block comes from `System`, which requires the same guarantees of the caller.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Starts counting; returns the live bytes. The process ends if more than `most` additional bytes are live at once.
pub fn start(most: usize) -> usize {
    let live = LIVE.load(Relaxed);
    PEAK.store(live, Relaxed);
    MOST.store(live.saturating_add(most), Relaxed);
    live
}

/// Removes the limit, and returns the greatest number of live bytes in addition to those at the start.
pub fn stop(live_at_start: usize) -> usize {
    MOST.store(usize::MAX, Relaxed);
    PEAK.load(Relaxed).saturating_sub(live_at_start)
}
