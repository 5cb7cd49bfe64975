//! Runs persistent collectives, such as `MPI_Allreduce_init`, by the plan.
//!
//! The `_init` function may wait for other ranks, so it makes its communicator ready. It gives the collective its own
//! tags, because MPI permits ranks to start persistent collectives in different orders. As with nonblocking calls
//! ([`crate::begun`]), `UNISONO_NONBLOCKING` is the switch and the library advances the calls. The program's request is
//! a persistent receive of the library, which a message of this process to itself completes
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
    passed_on::{self, Place},
    settings::settings,
};

struct Prepared {
    begun: Arc<Begun>,
    described: Described,
    entry: usize,
    ranks: u32,
    request: Arc<PersistentRequest>,
    /// The program's datatypes that this library keeps alive.
    kept: Vec<usize>,
}

static PREPARED: RwLock<Vec<(usize, Arc<Prepared>)>> = RwLock::new(Vec::new());
/// True once any collective was prepared.
static ANY: AtomicBool = AtomicBool::new(false);

fn found(handle: usize) -> Option<Arc<Prepared>> {
    if !ANY.load(Ordering::Relaxed) {
        return None;
    }
    let all = PREPARED.read().unwrap_or_else(PoisonError::into_inner);
    all.iter().find(|(other, _)| *other == handle).map(|(_, prepared)| Arc::clone(prepared))
}

/// Prepares a call by the plan if possible; otherwise calls and counts the library's function. Never unwinds.
pub fn prepare(arguments: Arguments, request: usize, place: Place, original: impl Fn() -> c_int) -> c_int {
    let pass = || {
        passed_on::count(place);
        original()
    };
    if !settings().nonblocking {
        return pass();
    }
    shielded(arguments.comm, &pass, |_| begun::answer(serve(&arguments, request), arguments.comm, pass))
}

/// Prepares a call, or returns false if the library must make the call. The result is the same on all ranks.
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
    let Some((planned, again)) = calls.with(|planned| home.another(library, comm, planned))? else { return Ok(false) };
    let again = Arc::new(again);
    let kept = keep(library, &mut described)?;
    // SAFETY: the program passes memory for a request, as in a call of MPI.
    unsafe { library.give_handle(again.handle(), request) };
    let (begun, handle, ranks) = (Begun::new(planned), again.handle(), known.ranks);
    let prepared = Arc::new(Prepared { begun, described, entry, ranks, request: again, kept });
    PREPARED.write().unwrap_or_else(PoisonError::into_inner).push((handle, prepared));
    ANY.store(true, Ordering::Relaxed);
    Ok(true)
}

/// Duplicates the datatypes of memory with gaps, because the program may free its handles, and returns the duplicates.
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

/// Starts a prepared call; None if the plan does not serve the request.
fn started(library: &Library, handle: usize) -> Option<c_int> {
    let prepared = found(handle)?;
    Some(prepared.start(library).map_or_else(|failed| failed.0, |()| 0))
}

fn handle_at(library: &Library, request: usize) -> usize {
    // SAFETY: the program passes the address of a request, as in a call of MPI.
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
        passed_on::count(Place::MPI_Start);
        guarded(|| call_original!(ORIGINAL, request), NO_FUNCTION)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Startall(count: c_int, requests: usize) -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Startall");
    let pass = || {
        passed_on::count(Place::MPI_Startall);
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
    // Starts the requests one by one, in order.
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
