//! Memory that an input takes: an allocator that counts.
//!
//! The counts are of the whole process, which runs one input at a time. An allocation that would go over the hard bound
//! ends the process with a line that says so: an allocator may not unwind, and the input would take the machine's
//! memory. Memory between the two bounds is reported once the input is done.
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

/// The line of standard error that an input over the hard bound leaves.
pub const OVER: &str = "fuzz: memory is over the hard bound";

fn count(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed).wrapping_add(bytes);
    if live > PEAK.load(Relaxed) {
        PEAK.store(live, Relaxed);
    }
    // Nothing may be allocated from here on.
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
        // SAFETY: the caller's promise for `alloc` is the one that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as for `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the block comes from `System`, as all blocks of this allocator do.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the block comes from `System`, and the caller's promise is the one that it asks for.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts from here on; the process ends where more than `most` further bytes are live at once.
pub fn start(most: usize) -> usize {
    let live = LIVE.load(Relaxed);
    PEAK.store(live, Relaxed);
    MOST.store(live.saturating_add(most), Relaxed);
    live
}

/// Stops bounding, and returns the most bytes that were live at once beyond those at the start.
pub fn stop(live_at_start: usize) -> usize {
    MOST.store(usize::MAX, Relaxed);
    PEAK.load(Relaxed).saturating_sub(live_at_start)
}
