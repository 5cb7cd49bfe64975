//! The state of each communicator. The first collective that a plan may serve makes its communicator ready
//! ([`Home::join`]).
//!
//! The state is dropped before the library frees a communicator, because the next communicator may get the same handle.
//! Meanwhile, delete functions of attributes may make calls on the communicator; the library makes these. A thread
//! remembers the communicators of its latest calls, so an intercepted call takes no lock; a counter of changes
//! invalidates these entries.

use std::{
    cell::Cell,
    collections::BTreeMap,
    ffi::{c_int, c_void},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, TryLockError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use unisono_mpi::{CallNotes, Comm, Conditions, Home, Joined, Library, Outcome, Planned, Rows};

use crate::{
    arguments::Arguments,
    begun::Begun,
    home::once,
    intercept::{Buffers, guarded},
    settings::settings,
    unserved::UnservedCalls,
    waits,
};

pub struct Known {
    pub ranks: u32,
    pub rank: u32,
    /// The plan for blocking calls; None if the library makes them all.
    planned: Option<Serving>,
    begun: Option<Arc<Begun>>,
}

/// The plan for the blocking calls of a communicator, with the calls known to be unserved.
pub struct Serving {
    pub rows: Arc<Rows>,
    notes: Option<Arc<CallNotes>>,
    pub unserved: UnservedCalls,
    served: Mutex<Served>,
}

/// The executor of the planned calls of a communicator, which runs one call at a time.
pub struct Served {
    pub planned: Planned,
    pub buffers: Buffers,
}

impl Serving {
    fn new(planned: Planned) -> Self {
        let (rows, notes) = (Arc::clone(planned.rows()), planned.notes().map(Arc::clone));
        let served = Mutex::new(Served { planned, buffers: Buffers::default() });
        Self { rows, notes, unserved: UnservedCalls::default(), served }
    }

    /// Notes a blocking collective call, planned or not, and returns its number. `length` is known if a plan may serve
    /// the call.
    #[inline]
    pub fn note(&self, length: Option<u64>) -> u64 {
        self.notes.as_ref().map_or(0, |notes| notes.note(length))
    }

    /// Returns whether a call is known to be unserved by the plan. If it is, notes the call.
    #[inline]
    fn leaves(&self, library: &Library, arguments: &Arguments) -> bool {
        let known = self.unserved.length(arguments, &library.constants);
        let leaves = known.is_some() || !self.rows.has(arguments.kind);
        if leaves {
            self.note(known);
        }
        leaves
    }

    /// Locks the executor. Returns None while a call runs; the new call then comes from an operator or an error handler
    /// inside the running call.
    pub fn lock(&self) -> Option<MutexGuard<'_, Served>> {
        match self.served.try_lock() {
            Ok(served) => Some(served),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Known {
    #[inline]
    pub fn serving(&self) -> Option<&Serving> {
        self.planned.as_ref()
    }

    pub fn begun(&self) -> Option<&Arc<Begun>> {
        self.begun.as_ref()
    }

    /// Returns whether a blocking planned call failed before its end.
    fn has_failed(&self) -> bool {
        self.planned.as_ref().and_then(Serving::lock).is_some_and(|served| served.planned.is_running())
    }
}

/// The states of communicators, by handle.
static COMMS: RwLock<BTreeMap<Comm, Arc<Known>>> = RwLock::new(BTreeMap::new());
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// A communicator in a thread's cache, with the value of [`CHANGES`] before the lookup.
struct Latest {
    changes: u64,
    comm: Comm,
    known: Arc<Known>,
}

/// The number of communicators that a thread caches.
const REMEMBERED: usize = 16;

thread_local! {
    /// The communicators of a thread's latest calls. With this cache a call takes no lock and changes no shared
    /// counter. Atomic changes wait until earlier writes are visible to other cores, which would take longer than all
    /// other work of an intercepted call.
    static LATEST: [Cell<Option<Latest>>; REMEMBERED] = const { [const { Cell::new(None) }; REMEMBERED] };
}

fn place_of(comm: Comm) -> usize {
    // Handles are consecutive numbers, or addresses of large objects.
    (comm as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> (usize::BITS - REMEMBERED.ilog2())
}

/// Applies `work` to the state of a communicator. A communicator without a state first joins ([`Home::join`]), which
/// waits for its other ranks. If the call is known to be wrong, the communicator does not join and the result is None,
/// because the other ranks may not make this call.
///
/// # Errors
/// Returns errors of the library.
#[inline]
pub fn with_known<T>(
    library: &Library,
    home: Option<&Home>,
    arguments: &Arguments,
    work: impl FnOnce(&Known) -> T,
) -> Outcome<Option<T>> {
    let comm = library.constants.handle(arguments.comm);
    let latest = match find(comm) {
        Some(latest) => latest,
        None if home.is_some_and(|home| is_wrong(library, home, arguments)) => return Ok(None),
        // This change count is never current, so the next call looks the communicator up again.
        None => Latest { changes: u64::MAX, comm, known: learn(library, home, comm)? },
    };
    Ok(Some(with(latest, work)))
}

/// Returns whether this rank's arguments alone show that no plan serves a call ([`Arguments::is_wrong`]).
#[cold]
fn is_wrong(library: &Library, home: &Home, arguments: &Arguments) -> bool {
    let comm = library.constants.handle(arguments.comm);
    let (Ok(false), Ok(ranks), Ok(rank)) = (library.is_inter(comm), library.size(comm), library.rank(comm)) else {
        return false;
    };
    arguments.is_wrong(library, home, ranks, rank)
}

/// Applies `work` to the state of a communicator, if it has one.
#[inline]
pub fn with_found<T>(comm: Comm, work: impl FnOnce(&Known) -> T) -> Option<T> {
    find(comm).map(|latest| with(latest, work))
}

/// Returns true if this thread's cache shows that no plan serves a blocking call, and then notes the call. Takes no
/// lock. Returns false if the cache lacks the communicator, or if the call must be reported or counted.
#[inline]
pub fn leaves(library: &Library, arguments: &Arguments) -> bool {
    let comm = library.constants.handle(arguments.comm);
    let changes = CHANGES.load(Ordering::Acquire);
    let leaves = |all: &[Cell<Option<Latest>>; REMEMBERED]| {
        let place = &all[place_of(comm)];
        let Some(latest) = place.take() else { return false };
        let leaves = latest.comm == comm
            && latest.changes == changes
            && latest.known.serving().is_none_or(|serving| serving.leaves(library, arguments));
        place.set(Some(latest));
        leaves
    };
    settings().report.is_none() && arguments.place.is_none() && LATEST.try_with(leaves).unwrap_or(false)
}

#[inline]
fn with<T>(latest: Latest, work: impl FnOnce(&Known) -> T) -> T {
    let done = work(&latest.known);
    // A thread that is ending has no cache.
    let _ = LATEST.try_with(|all| all[place_of(latest.comm)].set(Some(latest)));
    done
}

/// Returns a communicator's state, if it has one. The state is moved out of this thread's cache, so that its shared
/// reference count does not change. If the cache lacks the state, it is looked up.
#[inline]
fn find(comm: Comm) -> Option<Latest> {
    let changes = CHANGES.load(Ordering::Acquire);
    let latest = LATEST.try_with(|all| all[place_of(comm)].take()).ok().flatten();
    match latest {
        Some(latest) if latest.comm == comm && latest.changes == changes => Some(latest),
        _ => look_up(comm, changes),
    }
}

#[cold]
fn look_up(comm: Comm, changes: u64) -> Option<Latest> {
    let comms = COMMS.read().unwrap_or_else(PoisonError::into_inner);
    let known = Arc::clone(comms.get(&comm)?);
    Some(Latest { changes, comm, known })
}

#[cold]
fn learn(library: &Library, home: Option<&Home>, comm: Comm) -> Outcome<Arc<Known>> {
    let inter = library.is_inter(comm)?;
    let (ranks, rank) = (library.size(comm)?, library.rank(comm)?);
    if FREED.get().is_some_and(|freed| freed.comm == comm) {
        return Ok(Arc::new(Known { ranks, rank, planned: None, begun: None }));
    }
    let joined = match home {
        Some(home) if !inter => home.join(library, comm, ranks, rank)?,
        _ => Joined::Unplanned,
    };
    let mut begun = None;
    let planned = match joined {
        Joined::Planned { planned, begun: by } => {
            begun = by.map(|planned| Begun::new(*planned));
            guarded(|| complain_of_conditions(home, planned.rows(), rank), ());
            Some(Serving::new(planned.patient(waits::patience())))
        }
        Joined::Refused => {
            // The proof may panic on this rank alone, so the panic is caught: the other ranks continue.
            guarded(|| complain(ranks, rank), ());
            None
        }
        Joined::Differs => {
            guarded(|| complain_of_unlike_choices(ranks, rank), ());
            None
        }
        Joined::Unplanned => None,
    };
    library.set_attribute(comm, keyval(library)?)?;
    let known = Arc::new(Known { ranks, rank, planned, begun });
    put(comm, Arc::clone(&known));
    Ok(known)
}

/// Reports on rank 0 of a communicator, once per process, why its join was refused ([`Joined::Refused`]).
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

fn complain_of_unlike_choices(ranks: u32, rank: u32) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if rank == 0 {
        once(&SAID, || {
            format!(
                "the ranks of a communicator of {ranks} would choose unlike rows of the plan, because their MPI \
                 libraries or the settings of these differ; its collectives are the library's own"
            )
        });
    }
}

/// Reports on rank 0 of a communicator, once per process, that rows were measured under other [`Conditions`].
fn complain_of_conditions(home: Option<&Home>, rows: &Rows, rank: u32) {
    static SAID: AtomicBool = AtomicBool::new(false);
    let Some(stated) = rows.elsewhere().filter(|_| rank == 0) else { return };
    let Some(here) = home.and_then(Home::conditions) else { return };
    once(&SAID, || {
        let there = stated.parse().map_or_else(|()| format!("'{stated}'"), |there: Conditions| there.words());
        format!(
            "rows of the plan were measured under {there}, and this is {}; they leave their calls to the library; tune \
             again, or permit them by UNISONO_ANYWHERE=1",
            here.words()
        )
    });
}

/// Returns the key of an attribute of communicators. MPI deletes the attribute when a communicator is freed, by any
/// function, so that this library notices it.
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
    // SAFETY: MPI passes the address of an integer: whether a duplicate inherits the attribute.
    unsafe { flag.write(0) };
    0
}

extern "C" fn freed(comm: usize, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    let forget = || {
        let Some(library) = unisono_mpi::library() else { return };
        let comm = library.constants.handle(comm);
        FREED.set(FREED.get().map(|freed| Freed { is_gone: freed.is_gone || freed.comm == comm, ..freed }));
        forget(take(comm));
    };
    guarded(forget, ());
    0
}

/// A communicator that a thread is freeing.
#[derive(Clone, Copy)]
struct Freed {
    comm: Comm,
    /// True once this library's attribute was deleted.
    is_gone: bool,
}

thread_local! {
    static FREED: Cell<Option<Freed>> = const { Cell::new(None) };
}

/// Frees a communicator. This deletes the program's attributes, and a delete function may make collectives on the
/// communicator, before or after this library's attribute is deleted. The library makes these calls, so that no state
/// of the communicator remains: the next communicator may have the same handle.
pub fn free(comm: Comm, free: impl FnOnce() -> c_int) -> c_int {
    let known = take(comm);
    let outer = FREED.replace(Some(Freed { comm, is_gone: false }));
    let code = free();
    let is_gone = FREED.replace(outer).is_some_and(|freed| freed.is_gone);
    match known {
        Some(known) if code != 0 && !is_gone => put(comm, known),
        known => forget(known),
    }
    code
}

fn put(comm: Comm, known: Arc<Known>) {
    let mut comms = COMMS.write().unwrap_or_else(PoisonError::into_inner);
    comms.insert(comm, known);
    CHANGES.fetch_add(1, Ordering::Release);
}

fn take(comm: Comm) -> Option<Arc<Known>> {
    let mut comms = COMMS.write().unwrap_or_else(PoisonError::into_inner);
    let known = comms.remove(&comm)?;
    CHANGES.fetch_add(1, Ordering::Release);
    Some(known)
}

/// Drops a state. After a failed call its memory is never freed, because messages may still arrive there.
fn forget(known: Option<Arc<Known>>) {
    if let Some(known) = known.filter(|known| known.has_failed()) {
        std::mem::forget(known);
    }
}
