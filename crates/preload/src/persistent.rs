//! Collectives that a program prepares once and starts again and again (`MPI_Allreduce_init` and its like), by the
//! plan.
//!
//! Making one may wait for other ranks, so it makes its communicator ready, and gives the call tags of its own: MPI
//! permits that ranks start persistent collectives in different orders. The rest is as for calls that are begun
//! ([`crate::begun`]): `UNISONO_NONBLOCKING` permits them, and the library carries them on. The program's request is a
//! persistent receive of the library, which the message of this process to itself ends
//! ([`unisono_mpi::PersistentRequest`]).

use std::{
    ffi::c_int,
    sync::{Arc, PoisonError, RwLock, atomic::AtomicBool, atomic::Ordering},
};

use unisono_mpi::{Agreement, Home, Library, Outcome, PersistentRequest, library};

use crate::{
    arguments::{Arguments, Described},
    begun::{self, Begun, Completion},
    comms::{self, Known},
    home,
    intercept::{guarded, shielded},
    memory::Memory,
    original::{NO_FUNCTION, Original, call_original},
    passed::{self, Place},
    settings::settings,
};

/// A prepared collective.
struct Prepared {
    begun: Arc<Begun>,
    described: Described,
    entry: usize,
    ranks: u32,
    request: Arc<PersistentRequest>,
    /// Datatypes of the program's that live on here.
    kept: Vec<usize>,
}

static PREPARED: RwLock<Vec<(usize, Arc<Prepared>)>> = RwLock::new(Vec::new());
/// Whether there was ever one.
static ANY: AtomicBool = AtomicBool::new(false);

fn found(handle: usize) -> Option<Arc<Prepared>> {
    if !ANY.load(Ordering::Relaxed) {
        return None;
    }
    let all = PREPARED.read().unwrap_or_else(PoisonError::into_inner);
    all.iter().find(|(other, _)| *other == handle).map(|(_, prepared)| Arc::clone(prepared))
}

/// Prepares a call by the plan where it can, or passes it on and counts it. No panic leaves it.
pub fn prepare(arguments: Arguments, request: usize, place: Place, original: impl Fn() -> c_int) -> c_int {
    let pass = || {
        passed::count(place);
        original()
    };
    if settings().off || !settings().nonblocking {
        return pass();
    }
    shielded(arguments.comm, &pass, |_| begun::answer(serve(&arguments, request), arguments.comm, pass))
}

/// Prepares a call; false where it is the library's, which is so on all ranks or on none.
fn serve(arguments: &Arguments, request: usize) -> Outcome<bool> {
    let Some(library) = library() else { return Ok(false) };
    let comm = library.constants.handle(arguments.comm);
    if comm == library.constants.comm_null || request == 0 {
        return Ok(false);
    }
    let Some(home) = home::home(library, comm).filter(|home| home.agreement() == Agreement::Planned) else {
        return Ok(false);
    };
    let work = |known: &Known| serve_on(library, home, known, arguments, request);
    comms::with_known(library, Some(home), arguments, work)?.unwrap_or(Ok(false))
}

fn serve_on(library: &Library, home: &Home, known: &Known, arguments: &Arguments, request: usize) -> Outcome<bool> {
    let comm = library.constants.handle(arguments.comm);
    let Some(calls) = known.begun() else { return Ok(false) };
    let Ok(Some(mut described)) = arguments.describe(library, Some(home.comm()), known.ranks, known.rank) else {
        return Ok(false);
    };
    let Some(entry) = begun::entry(arguments, home, calls, known, &described) else { return Ok(false) };
    let Some(planned) = calls.with(|planned| home.another(library, comm, planned))? else { return Ok(false) };
    let Some(again) = home.persistent(library)? else { return Ok(false) };
    let again = Arc::new(again);
    let kept = keep(library, &mut described)?;
    // SAFETY: the program gives memory for a request, as in a call of MPI.
    unsafe { library.give_handle(again.handle(), request) };
    let (begun, handle, ranks) = (Begun::new(planned), again.handle(), known.ranks);
    let prepared = Arc::new(Prepared { begun, described, entry, ranks, request: again, kept });
    PREPARED.write().unwrap_or_else(PoisonError::into_inner).push((handle, prepared));
    ANY.store(true, Ordering::Relaxed);
    Ok(true)
}

/// Has the datatypes of a call live on when the program frees them.
fn keep(library: &Library, described: &mut Described) -> Outcome<Vec<usize>> {
    let mut kept = Vec::new();
    let mut keep = |memory: &mut Option<Memory>| -> Outcome {
        if let Some(memory) = memory.as_mut().filter(|memory| !memory.plain) {
            *memory = memory.of_type(library.keep_type(memory.datatype)?);
            kept.push(memory.datatype);
        }
        Ok(())
    };
    keep(&mut described.input)?;
    keep(&mut described.output)?;
    Ok(kept)
}

impl Prepared {
    fn start(&self, library: &Library) -> Outcome {
        let Some(home) = home::settled() else { return Ok(()) };
        let number = self.begun.note(Some(&self.described.call));
        library.start_again(&self.request)?;
        let completion = || Ok(Completion::Again(Arc::clone(&self.request)));
        let begun = self.begun.begin(library, home, &self.described, (self.entry, number, self.ranks), completion);
        if begun.is_err() {
            library.complete_again(&self.request, true);
        }
        Ok(())
    }
}

/// Starts a prepared call; none where the request is the library's.
fn started(library: &Library, handle: usize) -> Option<c_int> {
    let prepared = found(handle)?;
    Some(prepared.start(library).map_or_else(|failed| failed.0, |()| 0))
}

/// The handle at the address of a request.
fn handle_at(library: &Library, request: usize) -> usize {
    // SAFETY: the program gives the address of a request, as in a call of MPI.
    unsafe { library.handle_at(request) }
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Start(request: usize) -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Start");
    let start = || {
        let library = library().filter(|_| request != 0)?;
        started(library, handle_at(library, request))
    };
    guarded(start, None).unwrap_or_else(|| {
        passed::count(Place::MPI_Start);
        guarded(|| call_original!(ORIGINAL, request), NO_FUNCTION)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Startall(count: c_int, requests: usize) -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Startall");
    let pass = || {
        passed::count(Place::MPI_Startall);
        guarded(|| call_original!(ORIGINAL, count as usize, requests), NO_FUNCTION)
    };
    let is_mixed = || {
        let (Some(library), Ok(count)) = (library(), usize::try_from(count)) else { return false };
        let any = |k: usize| found(handle_at(library, requests + k * library.request_bytes())).is_some();
        ANY.load(Ordering::Relaxed) && requests != 0 && (0..count).any(any)
    };
    if !guarded(is_mixed, false) {
        return pass();
    }
    let Some(library) = library() else { return pass() };
    // One by one, in their order.
    let codes = (0..count as usize).map(|k| MPI_Start(requests + k * library.request_bytes()));
    codes.fold(0, |first, code| if first == 0 { code } else { first })
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Request_free(request: usize) -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Request_free");
    let prepared = || {
        let library = library().filter(|_| request != 0)?;
        let handle = handle_at(library, request);
        found(handle)?;
        let mut all = PREPARED.write().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|(other, _)| *other == handle)?;
        Some((library, all.swap_remove(at).1))
    };
    let prepared = guarded(prepared, None);
    let code = guarded(|| call_original!(ORIGINAL, request), NO_FUNCTION);
    if let Some((library, prepared)) = prepared.filter(|_| code == 0) {
        library.free_again(&prepared.request);
        prepared.kept.iter().for_each(|&kept| library.free_type(kept));
    }
    code
}
