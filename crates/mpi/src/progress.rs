//! Work that goes on whenever the MPI library makes progress: in every call that waits or tests, whoever makes it.
//!
//! MPI requires that a non-blocking collective ends although its program waits for something else, such as a message of
//! a rank that waits for this collective. So a planned one must go on inside the library's own waits. Open MPI calls
//! functions that were registered with `opal_progress_register` (`opal/runtime/opal_progress.h`), as its own
//! non-blocking collectives are; MPICH those of `MPIX_Async_start`, from which progress must not be made again, so that
//! messages are asked for by `MPIX_Request_is_complete`. Libraries without such functions make all non-blocking calls
//! themselves.

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

/// Does what can be done without waiting, and returns whether something is left to do. It is called from anywhere
/// inside the library, also while it runs, and by several threads.
pub type Work = fn() -> bool;

static WORK: OnceLock<Work> = OnceLock::new();
/// Whether the library calls the work.
static CALLED: AtomicBool = AtomicBool::new(false);

/// `opal_progress_register`.
type Register = unsafe extern "C" fn(extern "C" fn() -> c_int) -> c_int;
/// `MPIX_Async_start`.
type Start = unsafe extern "C" fn(extern "C" fn(*mut c_void) -> c_int, *mut c_void, c_int) -> c_int;
/// `MPIX_Request_is_complete`.
type IsComplete = unsafe extern "C" fn(usize) -> c_int;

/// The functions by which a library can be told to call others.
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
                // SAFETY: the symbol is Open MPI's function of that name, whose signature the type states.
                let register = unsafe { transmute::<*mut c_void, Register>(register) };
                Some(Self::OpenMpi { register })
            }
            Abi::Mpich => {
                let (start, is_complete) =
                    (scope.find(c"PMPIX_Async_start")?, scope.find(c"PMPIX_Request_is_complete")?);
                // SAFETY: the symbol is MPICH's function of that name, whose signature the type states.
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
    // A panic must not reach the library; what failed is not tried again.
    WORK.get().is_some_and(|work| std::panic::catch_unwind(work).unwrap_or(false))
}

extern "C" fn called_by_open_mpi() -> c_int {
    work();
    // The number of events, by which the library decides whether it may yield to other processes: it may.
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
    /// Whether the library can be made to call work; the same on all ranks that have the same library.
    pub fn has_progress_hook(&self) -> bool {
        match self.hook {
            Some(Hook::OpenMpi { .. }) => true,
            // With several threads its functions would be called under its locks.
            Some(Hook::Mpich { .. }) => self.thread_level().is_ok_and(|level| level < ThreadLevel::Multiple),
            None => false,
        }
    }

    /// Has the library call `work`, at least until that returns that nothing is left to do. It is the same at each
    /// call.
    ///
    /// # Errors
    /// Those of the library.
    pub fn call_on_progress(&self, work: Work) -> Outcome {
        WORK.get_or_init(|| work);
        if CALLED.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        match self.hook {
            // SAFETY: the function stays as long as this library, which is never unloaded.
            Some(Hook::OpenMpi { register }) => check(unsafe { register(called_by_open_mpi) }),
            // SAFETY: as above; the function does not read its state.
            Some(Hook::Mpich { start, .. }) => check(unsafe { start(called_by_mpich, ptr::null_mut(), NO_STREAM) }),
            None => Ok(()),
        }
    }

    /// Whether a message may have ended; asking makes no progress.
    pub(crate) fn may_have_ended(&self, request: usize) -> bool {
        match self.hook {
            // SAFETY: the request is one of a call that is under way.
            Some(Hook::Mpich { is_complete, .. }) => unsafe { is_complete(request) != 0 },
            _ => true,
        }
    }
}
