//! Work that the MPI library calls whenever it makes progress: in every call that waits or tests.
//!
//! MPI requires that a nonblocking collective completes although its program waits for something else, such as a
//! message from a rank that itself waits for the collective. So a planned collective must advance inside the library's
//! own waits. Open MPI calls functions registered with `opal_progress_register` (`opal/runtime/opal_progress.h`), as it
//! does for its own nonblocking collectives. MPICH calls functions registered with `MPIX_Async_start`, which must not
//! cause progress, so messages are tested with `MPIX_Request_is_complete`. A library without such a registration makes
//! all nonblocking calls itself, and so does MPICH with `MPI_THREAD_MULTIPLE`.

use std::{
    ffi::{c_int, c_void},
    mem::transmute,
    ptr,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    abi::Abi,
    library::{Library, Outcome, ThreadLevel, check},
    symbols::Scope,
};

/// A function that does all work possible without waiting, and returns whether more work remains. The library calls
/// this function at any time, also recursively, and from several threads.
pub type Work = fn() -> bool;

static WORK: OnceLock<Work> = OnceLock::new();
/// True while the library has [`WORK`] registered.
static CALLED: AtomicBool = AtomicBool::new(false);

/// The type of `opal_progress_register`.
type Register = unsafe extern "C" fn(extern "C" fn() -> c_int) -> c_int;
/// The type of `MPIX_Async_start`.
type Start = unsafe extern "C" fn(extern "C" fn(*mut c_void) -> c_int, *mut c_void, c_int) -> c_int;
/// `MPIX_Request_is_complete`.
type IsComplete = unsafe extern "C" fn(usize) -> c_int;

/// The library's functions that register work.
#[derive(Clone, Copy)]
pub(crate) enum Hook {
    OpenMpi { register: Register },
    Mpich { start: Start, is_complete: IsComplete },
}

/// `MPIX_STREAM_NULL` of MPICH.
const NO_STREAM: c_int = 0x3c00_0000;

impl Hook {
    pub fn find(abi: Abi, scope: &Scope) -> Option<Self> {
        match abi {
            Abi::OpenMpi => {
                let register = scope.find(c"opal_progress_register")?;
                // SAFETY: the symbol is Open MPI's function of this name, with this signature.
                let register = unsafe { transmute::<*mut c_void, Register>(register) };
                Some(Self::OpenMpi { register })
            }
            Abi::Mpich => {
                let (start, is_complete) =
                    (scope.find(c"PMPIX_Async_start")?, scope.find(c"PMPIX_Request_is_complete")?);
                // SAFETY: the symbol is MPICH's function of this name, with this signature.
                let start = unsafe { transmute::<*mut c_void, Start>(start) };
                // SAFETY: as above.
                let is_complete = unsafe { transmute::<*mut c_void, IsComplete>(is_complete) };
                Some(Self::Mpich { start, is_complete })
            }
            Abi::Standard => None,
        }
    }
}

fn work() -> bool {
    // A panic must not unwind into the library; failed work is not repeated.
    WORK.get().is_some_and(|work| std::panic::catch_unwind(work).unwrap_or(false))
}

extern "C" fn called_by_open_mpi() -> c_int {
    work();
    // The number of events. With 0 the library may yield to other processes.
    0
}

extern "C" fn called_by_mpich(_: *mut c_void) -> c_int {
    const NO_PROGRESS: c_int = 0;
    const DONE: c_int = 1;
    if work() {
        return NO_PROGRESS;
    }
    CALLED.store(false, Ordering::Relaxed);
    DONE
}

impl Library {
    /// Returns whether the library can call work whenever it makes progress. Ranks with the same library and thread
    /// level have the same result.
    pub fn has_progress_hook(&self) -> bool {
        match self.hook {
            Some(Hook::OpenMpi { .. }) => true,
            // With several threads the library would call its functions while it holds its locks.
            Some(Hook::Mpich { .. }) => self.thread_level().is_ok_and(|level| level < ThreadLevel::Multiple),
            None => false,
        }
    }

    /// Registers `work` with the library, which calls `work` at least until `work` returns false. Every call must pass
    /// the same `work`.
    ///
    /// # Errors
    /// Returns errors of the library.
    pub fn call_on_progress(&self, work: Work) -> Outcome {
        WORK.get_or_init(|| work);
        if CALLED.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let registered = match self.hook {
            // SAFETY: the function stays valid as long as this library, which is never unloaded.
            Some(Hook::OpenMpi { register }) => check(unsafe { register(called_by_open_mpi) }),
            // SAFETY: as above; the function does not read its state.
            Some(Hook::Mpich { start, .. }) => check(unsafe { start(called_by_mpich, ptr::null_mut(), NO_STREAM) }),
            None => Ok(()),
        };
        if registered.is_err() {
            CALLED.store(false, Ordering::Relaxed);
        }
        registered
    }

    /// Returns whether a message may have ended, without making progress; always true unless the library is MPICH.
    pub(crate) fn may_have_ended(&self, request: usize) -> bool {
        match self.hook {
            // SAFETY: the request belongs to a call that is under way.
            Some(Hook::Mpich { is_complete, .. }) => unsafe { is_complete(request) != 0 },
            _ => true,
        }
    }
}
