//! Threads that call MPI: their admission, and their end with the program.

use std::{
    cell::Cell,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
};

use pyo3::prelude::*;
use unisono_mpi::{Library, ThreadLevel};

use super::{lock, mpi_error, refused};

/// The program is ending: threads may no longer call MPI.
pub static ENDING: AtomicBool = AtomicBool::new(false);
/// The number of threads in a call of this module.
pub static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// The one thread in a call, if MPI serves one thread at a time.
pub static ALONE: Mutex<Option<ThreadId>> = Mutex::new(None);

/// The permission of a thread to call MPI.
pub struct Inside {
    /// The thread is recorded in [`ALONE`].
    alone: bool,
}

impl Drop for Inside {
    fn drop(&mut self) {
        if self.alone {
            *lock(&ALONE) = None;
        }
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

pub const NOT_RUNNING: &str = "MPI was finalized or never initialised; no call can be made";

/// Returns the permission for this thread to call MPI.
///
/// # Errors
/// MPI has ended, or cannot serve this thread now.
pub fn enter(library: &Library, level: ThreadLevel) -> PyResult<Inside> {
    // Increment before the flag is read: the end of the program sets the flag before it reads the count.
    INSIDE.fetch_add(1, Ordering::SeqCst);
    let mut inside = Inside { alone: false };
    if ENDING.load(Ordering::SeqCst) || !library.is_running() {
        return Err(refused(NOT_RUNNING));
    }
    let name = level.name();
    let remedy = "initialise MPI with MPI_THREAD_MULTIPLE to call from several threads";
    if level <= ThreadLevel::Funneled && !library.is_main_thread().map_err(mpi_error)? {
        return Err(refused(format!(
            "MPI was initialised with {name}, and this is not the thread that did it; call from that one, or {remedy}"
        )));
    }
    if level == ThreadLevel::Serialized {
        let me = thread::current().id();
        let mut alone = lock(&ALONE);
        match *alone {
            None => (*alone, inside.alone) = (Some(me), true),
            Some(thread) if thread == me => {}
            Some(_) => {
                return Err(refused(format!(
                    "MPI was initialised with {name}, and another thread is in a call; call one at a time, or {remedy}"
                )));
            }
        }
    }
    Ok(inside)
}

/// Blocks this thread for ever: MPI is about to end, and Python cannot take the thread back.
pub fn park() -> ! {
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    loop {
        thread::park();
    }
}

/// Returns whether signal handlers run in this thread, which is Python's main thread.
pub fn may_have_signals(py: Python<'_>) -> bool {
    thread_local! {
        static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
    }
    IS_MAIN.get().unwrap_or_else(|| {
        let found = || -> PyResult<bool> {
            let threading = py.import("threading")?;
            Ok(threading.call_method0("current_thread")?.is(&threading.call_method0("main_thread")?))
        };
        let is_main = found().unwrap_or(false);
        IS_MAIN.set(Some(is_main));
        is_main
    })
}
