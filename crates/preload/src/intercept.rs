//! Runs an intercepted blocking collective by the plan, or calls the library's function.

use std::{
    cell::Cell,
    ffi::c_int,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Instant,
};

use unisono_collective::Kind;
use unisono_mpi::{Agreement, Call, Failed, Home, Library, Outcome, Reduction, Rows, library, noted_length};

use crate::{
    arguments::{Arguments, Described},
    check,
    comms::{self, Known},
    home::{self, once},
    memory::Memory,
    passed_on, reasons, report,
    settings::{say, settings},
};

/// Memory of this library for copies of data that have gaps, and of inputs that the output overwrites.
#[derive(Default)]
pub struct Buffers {
    pub input: Words,
    pub output: Words,
}

/// Memory that only grows, aligned for elements of any type.
#[derive(Default)]
pub struct Words(Vec<u128>);

impl Words {
    pub fn bytes(&mut self, bytes: usize) -> *mut u8 {
        let words = bytes.div_ceil(size_of::<u128>());
        if self.0.len() < words {
            self.0.resize(words, 0);
        }
        self.0.as_mut_ptr().cast()
    }

    /// Returns the first bytes, for which [`Words::bytes`] made room.
    pub fn seen(&self, bytes: usize) -> &[u8] {
        assert!(bytes <= size_of_val(self.0.as_slice()), "room for these bytes was made");
        // SAFETY: the words are `bytes` initialised bytes at least, borrowed as long as the slice is.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), bytes) }
    }
}

/// The number of planned calls that this process has begun, blocking or not.
pub static SERVED: AtomicU64 = AtomicU64::new(0);

/// Makes a call by the plan if possible, otherwise by the library. Never unwinds.
#[inline]
pub fn collective(arguments: Arguments, original: impl Fn() -> c_int) -> c_int {
    if let Some(library) = library()
        && comms::leaves(library, &arguments)
    {
        return original();
    }
    look_closer(&arguments, original)
}

/// Makes a call that the thread's cache ([`comms::leaves`]) does not leave to the library.
#[inline(never)]
fn look_closer(arguments: &Arguments, original: impl Fn() -> c_int) -> c_int {
    shielded(arguments.comm, &original, |started| serve(arguments, &original, started))
}

/// Returns the result of `serve`. After a panic the library makes the call, or aborts the program if the call has
/// started.
#[inline]
pub fn shielded(comm: usize, original: &impl Fn() -> c_int, serve: impl FnOnce(&Cell<bool>) -> c_int) -> c_int {
    let started = Cell::new(false);
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| serve(&started))) {
        Ok(code) => code,
        Err(_) if !started.get() => guarded(original, crate::original::NO_FUNCTION),
        Err(_) => {
            // The program must end, because other ranks wait for messages that will never be sent.
            say("an internal failure in the midst of a planned collective; the program is ended");
            if let Some(library) = library() {
                library.abort(comm, 1);
            }
            crate::original::NO_FUNCTION
        }
    }
}

/// Returns the result of `work`, or `otherwise` if `work` panics, because a panic must not unwind into C code.
pub fn guarded<T>(work: impl FnOnce() -> T, otherwise: T) -> T {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(otherwise)
}

#[inline]
fn serve(arguments: &Arguments, original: &impl Fn() -> c_int, started: &Cell<bool>) -> c_int {
    let Some(library) = library() else { return original() };
    let comm = library.constants.handle(arguments.comm);
    // The library reports the error of a null communicator.
    if comm == library.constants.comm_null {
        return original();
    }
    let home = home::home(library, comm);
    let planned_home = home.filter(|home| home.agreement() == Agreement::Planned);
    if settings().report.is_none() && planned_home.is_none() {
        return original();
    }
    let work = |known: &Known| {
        if settings().report.is_none() && known.serving().is_none() {
            return original();
        }
        let served = planned_home.map_or(Ok(None), |home| planned(library, home, arguments, known, original, started));
        match served {
            Ok(Some(code)) => code,
            Ok(None) => by_library(library, arguments, known, original),
            Err(failed) => {
                // Errors on the private communicator are returned as codes, so the program's own handler is called
                // here.
                library.call_error_handler(comm, failed);
                failed.0
            }
        }
    };
    if arguments.place.is_some() {
        // The first call of a communicator must not join here, because another rank may make this call without passing
        // through this library, and would not join.
        return comms::with_found(comm, work).unwrap_or_else(|| passed_on(arguments, original));
    }
    match comms::with_known(library, home, arguments, work) {
        Ok(Some(code)) => code,
        Ok(None) => original(),
        Err(Failed(code)) => code,
    }
}

/// Lets the library make a call, and counts it if its function has a counter of its own.
fn passed_on(arguments: &Arguments, original: &impl Fn() -> c_int) -> c_int {
    if let Some(place) = arguments.place {
        passed_on::count(place);
    }
    original()
}

fn by_library(library: &Library, arguments: &Arguments, known: &Known, original: &impl Fn() -> c_int) -> c_int {
    if settings().report.is_none() || arguments.place.is_some() {
        return passed_on(arguments, original);
    }
    let described = arguments.describe(library, None, known.ranks, known.rank).ok().flatten();
    let bytes = described.as_ref().map_or_else(|| arguments.bytes_guess(library), |described| described.call.bytes());
    let why = reasons::of(library, arguments, known, described.as_ref());
    let start = Instant::now();
    let code = original();
    report::count_unplanned(arguments.kind, bytes, known.ranks, why, start.elapsed());
    code
}

fn planned(
    library: &Library,
    home: &Home,
    arguments: &Arguments,
    known: &Known,
    original: &impl Fn() -> c_int,
    started: &Cell<bool>,
) -> Outcome<Option<c_int>> {
    let comm = library.constants.handle(arguments.comm);
    let Some(serving) = known.serving() else { return Ok(None) };
    if !serving.rows.has(arguments.kind) {
        serving.note(None);
        return Ok(None);
    }
    // The library refuses a call that cannot be described, for example with an invalid datatype.
    let described = arguments.describe(library, Some(home.comm()), known.ranks, known.rank);
    let length = described.as_ref().ok().and_then(Option::as_ref).map(|described| noted_length(&described.call));
    let number = serving.note(length);
    let (Ok(Some(described)), Some(length)) = (described, length) else { return Ok(None) };
    let Some(entry) = serving.rows.find(&described.call) else {
        serving.unserved.remember(arguments, library, length);
        return Ok(None);
    };
    if !described.fits(known.ranks) {
        return Ok(None);
    }
    // If the input is the output, only this rank is in error. A library that checks for this error returns it before it
    // waits for other ranks, so the call is left to it. If the library does not check, all ranks take part in the
    // planned call.
    if arguments.is_refused_alias(home, &described) {
        return Ok(None);
    }
    if !rounds_alike(&serving.rows, &described.call, entry, known) {
        return Ok(None);
    }
    let Some(mut served) = serving.lock() else { return Ok(None) };
    served.planned.wait_for(number);
    let served = &mut *served;
    if served.planned.is_running() {
        // An earlier call failed, so its messages may still arrive.
        return Err(Failed::OTHER);
    }
    started.set(true);
    SERVED.fetch_add(1, Ordering::Relaxed);
    if settings().check {
        let code = check::both(library, home, &described, known, served, (entry, comm), original)?;
        return Ok(Some(code));
    }
    let start = settings().report.is_some().then(Instant::now);
    let call = prepare(library, home, &described, served.planned.rows(), &mut served.buffers, Some(entry))?;
    // SAFETY: `prepare` gave the call memory of the sizes that the program states, which it keeps as in a call of MPI.
    // Our own memory is kept in `Served`, which `comms::forget` never frees after a failure.
    unsafe { served.planned.run(library, call, entry)? };
    if described.unpacks
        && let Some(output) = described.output
    {
        // SAFETY: the program's memory as the program describes it, and the output's bytes.
        unsafe { output.copy_in(library, home.comm(), call.output)? };
    }
    if let Some(start) = start {
        let row = served.planned.rows().row(described.call.kind, entry);
        report::count(described.call.kind, call.bytes(), known.ranks, row, start.elapsed());
    }
    Ok(Some(0))
}

/// Returns whether an entry may serve a call whose results may be rounded. An allreduce of inexact numbers or by the
/// program's own operator is served only by schedules that give all ranks the same bits, unless both the plan and the
/// environment permit other schedules.
pub fn rounds_alike(rows: &Rows, call: &Call, entry: usize, known: &Known) -> bool {
    static SAID: AtomicBool = AtomicBool::new(false);
    let is_exact = |r: Reduction| r.op.is_some() && r.element.is_some_and(|element| element.number.is_exact());
    if call.kind != Kind::Allreduce || call.reduction.is_none_or(is_exact) || rows.is_repeatable(call.kind, entry) {
        return true;
    }
    let row = rows.row(call.kind, entry);
    let permitted = settings().unlike_bits && settings().permits_unlike_bits(row);
    if !permitted && known.rank == 0 {
        once(&SAID, || {
            let name = report::name_of(row);
            format!(
                "the plan names {name} for an allreduce, after which ranks may have different bits of a rounded result; \
                 the library serves such calls (docs/mpi.md describes how to permit it)"
            )
        });
    }
    permitted
}

/// Returns the call with its memory: the program's own if it has no gaps, else buffers of this library. The input is
/// also copied to a buffer if it overlaps the output, or is in place and the entry cannot run in place. Without an
/// `entry`, the output is always a buffer.
pub fn prepare(
    library: &Library,
    home: &Home,
    described: &Described,
    rows: &Rows,
    buffers: &mut Buffers,
    entry: Option<usize>,
) -> Outcome<Call> {
    let mut call = described.call;
    if call.kind == Kind::Barrier {
        // A barrier has one element, whose value is unused but which needs memory.
        call.input = buffers.input.bytes(call.element_bytes);
        call.output = buffers.output.bytes(call.element_bytes);
    }
    let plain = |memory: Option<Memory>| memory.is_some_and(|m| m.plain);
    call.in_place = described.in_place
        && plain(described.input)
        && plain(described.output)
        && entry.is_some_and(|entry| rows.runs_in_place(call.kind, entry));
    if let Some(input) = described.input {
        call.input = if input.plain && !described.overlaps && (call.in_place || !described.in_place) {
            input.address as *const u8
        } else {
            let copy = buffers.input.bytes(input.bytes);
            // SAFETY: the program states that its memory holds this number of bytes, and the buffer was made for them.
            unsafe { input.copy_out(library, copy, home.comm())? };
            copy
        };
    }
    if let Some(output) = described.output {
        let own = entry.is_none() || !output.plain;
        call.output = if own { buffers.output.bytes(output.bytes) } else { output.address as *mut u8 };
    } else if call.kind == Kind::Scatter {
        // The program does not want a copy of the root's piece, but the schedule writes one, so a buffer receives it.
        call.output = buffers.output.bytes(call.elements.saturating_mul(call.element_bytes));
    }
    Ok(call)
}

impl Described {
    /// Returns whether the program's memory has the size that the collective needs. The library refuses a wrong call.
    pub fn fits(&self, ranks: u32) -> bool {
        let Some((input, output)) = self.call.sizes(ranks) else { return false };
        self.input.is_none_or(|m| m.bytes == input) && self.output.is_none_or(|m| m.bytes == output)
    }
}
