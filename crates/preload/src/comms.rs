//! What is known of each communicator. The first intercepted collective on one compares the plans of its ranks.

use std::{
    ffi::{c_int, c_void},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
};

use unisono_mpi::{Agreement, Comm, Library, Outcome, Planned};

use crate::{
    intercept::{Buffers, guarded},
    settings::{say, settings},
};

pub struct Known {
    pub ranks: u32,
    pub rank: u32,
    /// None: all its calls are the library's own.
    planned: Option<Mutex<Served>>,
    private: Option<Comm>,
}

/// What serves the planned calls of a communicator, one at a time.
pub struct Served {
    pub planned: Planned,
    pub buffers: Buffers,
}

impl Known {
    pub fn is_planned(&self) -> bool {
        self.planned.is_some()
    }

    /// A planned call failed midway.
    fn has_failed(&self) -> bool {
        self.serve().is_some_and(|served| served.planned.is_running())
    }

    /// None where the communicator is unplanned, or where a call on it is under way: then this one was made from inside.
    pub fn serve(&self) -> Option<MutexGuard<'_, Served>> {
        match self.planned.as_ref()?.try_lock() {
            Ok(served) => Some(served),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// By handle. Programs have few communicators at a time, so a list is found through fastest.
static COMMS: RwLock<Vec<(Comm, Arc<Known>)>> = RwLock::new(Vec::new());
static FINALIZING: AtomicBool = AtomicBool::new(false);

/// What is known of a communicator; compares the plans of its ranks where nothing is.
///
/// # Errors
/// Those of the library.
#[inline]
pub fn known(library: &Library, comm: Comm) -> Outcome<Arc<Known>> {
    {
        let comms = COMMS.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = comms.iter().find(|(handle, _)| *handle == comm) {
            return Ok(Arc::clone(known));
        }
    }
    learn(library, comm)
}

#[cold]
fn learn(library: &Library, comm: Comm) -> Outcome<Arc<Known>> {
    let inter = library.is_inter(comm)?;
    let (ranks, rank) = (library.size(comm)?, library.rank(comm)?);
    let mut known = Known { ranks, rank, planned: None, private: None };
    if !inter {
        let (agreement, planned) =
            Planned::agree(library, comm, settings().plan.as_ref(), u64::from(settings().safe_ops))?;
        complain(library, agreement, ranks, rank);
        known.private = planned.as_ref().map(Planned::comm);
        known.planned = planned.map(|planned| Mutex::new(Served { planned, buffers: Buffers::default() }));
    }
    library.set_attribute(comm, keyval(library)?)?;
    let known = Arc::new(known);
    let mut comms = COMMS.write().unwrap_or_else(PoisonError::into_inner);
    comms.retain(|(handle, _)| *handle != comm);
    comms.push((comm, Arc::clone(&known)));
    Ok(known)
}

/// Says what is wrong with the plans, once a program: one rank speaks for all.
fn complain(library: &Library, agreement: Agreement, ranks: u32, rank: u32) {
    static SAID: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];
    let world = library.constants.comm_world;
    // A program of sessions has no world; there the first rank of each communicator speaks.
    let speaks = if library.is_running() { library.rank(world) == Ok(0) } else { rank == 0 };
    if let Some(complaint) = settings().complaint.as_ref().filter(|_| speaks)
        && !SAID[0].swap(true, Ordering::Relaxed)
    {
        say(&format!("{complaint}; the program runs unplanned"));
    }
    let unproven = settings().plan.as_ref().filter(|_| rank == 0).and_then(|plan| plan.prove_rows(Some(ranks)).err());
    if let Some(why) = unproven {
        if !SAID[1].swap(true, Ordering::Relaxed) {
            say(&format!("{why}; the collectives of {ranks} ranks are the library's own"));
        }
    } else if agreement == Agreement::Differs && rank == 0 && !SAID[1].swap(true, Ordering::Relaxed) {
        say(&format!(
            "the {ranks} ranks of a communicator do not all have the same plan; its collectives are the library's own"
        ));
    }
}

/// The attribute that tells when a communicator is freed, by whichever function.
fn keyval(library: &Library) -> Outcome<c_int> {
    static KEYVAL: OnceLock<c_int> = OnceLock::new();
    match KEYVAL.get() {
        Some(&keyval) => Ok(keyval),
        None => {
            let keyval = library.create_keyval(not_copied, freed)?;
            Ok(*KEYVAL.get_or_init(|| keyval))
        }
    }
}

extern "C" fn not_copied(
    _: usize,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: MPI gives the address of an integer: whether the attribute goes over to a duplicate.
    unsafe { flag.write(0) };
    0
}

extern "C" fn freed(comm: usize, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    let forget = || {
        let Some(library) = unisono_mpi::library() else { return };
        let comm = library.constants.handle(comm);
        let mut comms = COMMS.write().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = comms.iter().position(|(handle, _)| *handle == comm) else { return };
        let (_, known) = comms.swap_remove(at);
        drop(comms);
        if known.has_failed() {
            // Messages of the call that failed may still arrive in its memory.
            std::mem::forget(known);
            return;
        }
        // MPI frees what is left when it ends, and may by then refuse to be called.
        if let Some(private) = known.private
            && !FINALIZING.load(Ordering::Relaxed)
        {
            let _ = library.free(private);
        }
    };
    guarded(forget, ());
    0
}

/// From here on the library may free communicators that must not be touched.
pub fn finalizing() {
    FINALIZING.store(true, Ordering::Relaxed);
}
