//! What is known of each communicator. The first collective on one that a plan may serve makes it ready
//! ([`Home::join`]).

use std::{
    ffi::{c_int, c_void},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, TryLockError, atomic::AtomicBool},
};

use unisono_mpi::{Comm, Home, Joined, Library, Outcome, Planned};

use crate::{
    begun::Begun,
    home::once,
    intercept::{Buffers, guarded},
    settings::settings,
};

pub struct Known {
    pub ranks: u32,
    pub rank: u32,
    /// None: all its calls are the library's own.
    planned: Option<Mutex<Served>>,
    begun: Option<Arc<Begun>>,
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

    /// What serves calls that are only begun, if a plan does.
    pub fn begun(&self) -> Option<&Arc<Begun>> {
        self.begun.as_ref()
    }

    /// A planned call failed midway.
    fn has_failed(&self) -> bool {
        self.serve().is_some_and(|served| served.planned.is_running())
    }

    /// None where the communicator is unplanned, or where a call on it is under way: then this one was made from
    /// inside.
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

/// What is known of a communicator; makes it ready for planned calls where nothing is.
///
/// # Errors
/// Those of the library.
#[inline]
pub fn known(library: &Library, home: Option<&Home>, comm: Comm) -> Outcome<Arc<Known>> {
    match found(comm) {
        Some(known) => Ok(known),
        None => learn(library, home, comm),
    }
}

/// What is known of a communicator, if something is.
#[inline]
pub fn found(comm: Comm) -> Option<Arc<Known>> {
    let comms = COMMS.read().unwrap_or_else(PoisonError::into_inner);
    comms.iter().find(|(handle, _)| *handle == comm).map(|(_, known)| Arc::clone(known))
}

#[cold]
fn learn(library: &Library, home: Option<&Home>, comm: Comm) -> Outcome<Arc<Known>> {
    let inter = library.is_inter(comm)?;
    let (ranks, rank) = (library.size(comm)?, library.rank(comm)?);
    let joined = match home {
        Some(home) if !inter => home.join(library, comm, ranks, rank)?,
        _ => Joined::Unplanned,
    };
    let mut begun = None;
    let planned = match joined {
        Joined::Planned { planned, begun: by } => {
            begun = by.map(|planned| Begun::new(*planned));
            Some(Mutex::new(Served { planned: *planned, buffers: Buffers::default() }))
        }
        Joined::Refused => {
            // Another rank has no proof to fail, and goes on.
            guarded(|| complain(ranks, rank), ());
            None
        }
        Joined::Unplanned => None,
    };
    library.set_attribute(comm, keyval(library)?)?;
    let known = Arc::new(Known { ranks, rank, planned, begun });
    let mut comms = COMMS.write().unwrap_or_else(PoisonError::into_inner);
    comms.retain(|(handle, _)| *handle != comm);
    comms.push((comm, Arc::clone(&known)));
    Ok(known)
}

/// Says why a communicator runs unplanned, once a program.
fn complain(ranks: u32, rank: u32) {
    static SAID: AtomicBool = AtomicBool::new(false);
    let Some(plan) = settings().plan.as_ref().filter(|_| rank == 0) else { return };
    once(&SAID, || match plan.prove_rows(Some(ranks)) {
        Err(why) => format!("{why}; the collectives of {ranks} ranks are the library's own"),
        Ok(()) => {
            format!("a communicator of {ranks} ranks has no tags left for planned calls; they are the library's own")
        }
    });
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
        }
    };
    guarded(forget, ());
    0
}
