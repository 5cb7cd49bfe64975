//! The admission of threads that call MPI, and their end with the program.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
};

use unisono_mpi::{Library, ThreadLevel};

use crate::{error::RunError, lock};

/// True once the program is ending; threads must not call MPI then.
pub static ENDING: AtomicBool = AtomicBool::new(false);
/// The number of permissions ([`Inside`]) in use; a thread may have several.
pub static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// The thread in a call of this crate, if MPI permits one thread at a time; None if there is no call, and at other
/// thread levels.
pub static ALONE: Mutex<Option<ThreadId>> = Mutex::new(None);

/// The permission of a thread to call MPI.
pub struct Inside {
    /// True if the thread is recorded in [`ALONE`].
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
/// Returns an error if MPI has ended or does not permit calls of this thread now.
pub fn enter(library: &Library, level: ThreadLevel) -> Result<Inside, RunError> {
    // This thread increments the count before it reads the flag, and the end of the program sets the flag before it
    // reads the count. So at least one of the two sees the other.
    INSIDE.fetch_add(1, Ordering::SeqCst);
    let mut inside = Inside { alone: false };
    if ENDING.load(Ordering::SeqCst) || !library.is_running() {
        return Err(RunError::refused(NOT_RUNNING));
    }
    let name = level.name();
    let remedy = "initialise MPI with MPI_THREAD_MULTIPLE to call from several threads";
    if level <= ThreadLevel::Funneled && !library.is_main_thread()? {
        return Err(RunError::refused(format!(
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
                return Err(RunError::refused(format!(
                    "MPI was initialised with {name}, and another thread is in a call; call one at a time, or {remedy}"
                )));
            }
        }
    }
    Ok(inside)
}

/// Gives up one permission of this thread and blocks the thread forever. MPI is about to end, and Python cannot resume
/// the thread.
pub fn park() -> ! {
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    loop {
        thread::park();
    }
}
