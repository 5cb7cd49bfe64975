//! `UNISONO_CHECK=1`: runs each planned collective and the library's on the same data, and compares the results.
//!
//! Bits must agree if data only moves, and for integers, truth values and bits; minima and maxima of floats must be
//! equal numbers, or both NaN. Sums of `f32` and `f64` round in the order of their tree: two trees differ by at most 2
//! P eps sum|x| (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2: each is within (P - 1) eps sum|x|
//! of the exact sum, to first order); products of value x differ by at most 2 P eps |x|. If the library combines in the
//! order of the plan, the bits of sums and products must agree too ([`probe`]). Sums and products of `long double` and
//! complex numbers, and the program's own operators, are not compared. After an allreduce by a repeatable schedule and
//! this project's kernels, all ranks must have the same bits. The program receives the library's result.

use std::{
    ffi::c_int,
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use unisono_collective::Kind;
use unisono_mpi::{Call, Comm, Element, Home, Library, Number, Op, Outcome, Reduction};

use crate::{
    arguments::Described,
    comms::{Known, Served},
    intercept::{Words, prepare},
    probe, report,
    settings::say,
};

pub static COMPARED: AtomicU64 = AtomicU64::new(0);
pub static DIFFERENT: AtomicU64 = AtomicU64::new(0);
/// The number of differences that a process prints; further differences are only counted.
const SHOWN: u64 = 8;

/// Runs the planned call and the library's, compares them, and returns the library's error code.
///
/// # Errors
/// Returns errors of the library in the planned run or the comparison.
pub fn both(
    library: &Library,
    home: &Home,
    described: &Described,
    known: &Known,
    served: &mut Served,
    (entry, comm): (usize, Comm),
    original: &impl Fn() -> c_int,
) -> Outcome<c_int> {
    let start = Instant::now();
    let call = prepare(library, home, described, served.planned.rows(), &mut served.buffers, None)?;
    // SAFETY: `prepare` gave the call memory of the sizes that the program states.
    unsafe { served.planned.run(library, call, entry)? };
    let seconds = start.elapsed();
    let scale = magnitudes(library, described, call, known, comm)?;
    let code = original();
    if code != 0 {
        return Ok(code);
    }
    COMPARED.fetch_add(1, Ordering::Relaxed);
    let row = served.planned.rows().row(call.kind, entry);
    report::count(call.kind, call.bytes(), known.ranks, row, seconds);
    let (mut wrong, mut differs) = (None, false);
    let mut hash = 1;
    let mut theirs = Words::default();
    let mut library_has = Vec::new();
    if let Some(output) = described.output {
        let to = theirs.bytes(output.bytes);
        // SAFETY: the program states that its memory holds this number of bytes, and the buffer was made for them.
        unsafe { output.copy_out(library, to, home.comm())? };
        let ours = output.trimmed(served.buffers.output.seen(output.bytes));
        let theirs = output.trimmed(theirs.seen(output.bytes));
        let (ours, theirs) = (&*ours, &*theirs);
        wrong = compare(ours, theirs, call.reduction, &scale, known.ranks);
        differs = rounded_otherwise(ours, theirs, call.reduction);
        library_has = theirs.to_vec();
        hash = ours.iter().fold(hash, |h: u64, &byte| (h ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    }
    if probe::depends_on_order(call.reduction).is_some() {
        let (_, any) = library.bounds(u64::from(differs && wrong.is_none()), comm)?;
        let same = any != 0
            && probe::same_order(library, known, served, entry, &call, comm)?
            && !probe::wavers(library, known, &call, &library_has, comm)?;
        if same && differs {
            wrong.get_or_insert_with(|| "the library adds in the same order, and has other bits".to_owned());
        }
    }
    // Only this project's kernels are checked, because the library may combine elements of one call differently,
    // depending on their number and position.
    let ours = call.reduction.is_some_and(|reduction| reduction.is_ours());
    if call.kind == Kind::Allreduce && ours && served.planned.rows().is_repeatable(call.kind, entry) {
        let (least, most) = library.bounds(hash, comm)?;
        if least != most {
            wrong.get_or_insert_with(|| "the ranks' results differ in their bits".to_owned());
        }
    }
    if let Some(wrong) = wrong
        && DIFFERENT.fetch_add(1, Ordering::Relaxed) < SHOWN
    {
        let name = report::name_of(row);
        say(&format!(
            "check: {} of {} bytes on {} ranks by {name}: rank {}: {wrong}",
            call.kind,
            call.bytes(),
            known.ranks,
            known.rank
        ));
    }
    Ok(code)
}

/// Returns, for each element of this rank's result, the sum of the magnitudes of all ranks' operands. Rounding errors
/// are proportional to this sum. Returns an empty list unless the call sums floats.
fn magnitudes(library: &Library, described: &Described, call: Call, known: &Known, comm: Comm) -> Outcome<Vec<f64>> {
    let Some(Reduction {
        op: Some(Op::Sum), element: Some(Element { number: Number::Float, bytes }), datatype, ..
    }) = call.reduction
    else {
        return Ok(Vec::new());
    };
    let Some(input) = described.input else { return Ok(Vec::new()) };
    let mut words = Words::default();
    let at = words.bytes(input.bytes);
    let count = input.bytes / bytes;
    for k in 0..count {
        let (from, to) = (call.input.wrapping_add(k * bytes), at.wrapping_add(k * bytes));
        // SAFETY: the input holds `count` floats of `bytes` bytes.
        let value = unsafe { read_float(from, bytes) };
        // SAFETY: the copy has room for them.
        unsafe { write_float(to, bytes, value.abs()) };
    }
    // SAFETY: as above.
    unsafe { library.sum_in_place(at, count, datatype, comm)? };
    let first = if call.kind == Kind::ReduceScatter { known.rank as usize * call.elements } else { 0 };
    let value = |k: usize| {
        // SAFETY: as above.
        unsafe { read_float(at.wrapping_add(k * bytes), bytes) }
    };
    Ok((first..first + call.elements).map(value).collect())
}

/// Reads a float of 4 or 8 bytes.
///
/// # Safety
/// The address holds such a float.
pub unsafe fn read_float(at: *const u8, bytes: usize) -> f64 {
    match bytes {
        // SAFETY: as the caller guarantees.
        4 => f64::from(unsafe { at.cast::<f32>().read_unaligned() }),
        // SAFETY: as the caller guarantees.
        _ => unsafe { at.cast::<f64>().read_unaligned() },
    }
}

/// Writes a float of 4 or 8 bytes. With 4 bytes it writes the nearest value.
///
/// # Safety
/// The address has room for the float.
pub unsafe fn write_float(at: *mut u8, bytes: usize, value: f64) {
    match bytes {
        // SAFETY: as the caller guarantees.
        4 => unsafe { at.cast::<f32>().write_unaligned(value as f32) },
        // SAFETY: as the caller guarantees.
        _ => unsafe { at.cast::<f64>().write_unaligned(value) },
    }
}

/// Returns whether a sum or product of floats has different bits in the two results. Elements that are not finite in
/// either result are ignored.
fn rounded_otherwise(ours: &[u8], theirs: &[u8], reduction: Option<Reduction>) -> bool {
    let Some((_, _, bytes)) = probe::depends_on_order(reduction) else { return false };
    let finite = |x: &[u8]| match *x {
        [a, b, c, d] => f32::from_le_bytes([a, b, c, d]).is_finite(),
        _ => x.try_into().is_ok_and(|x| f64::from_le_bytes(x).is_finite()),
    };
    ours.chunks(bytes).zip(theirs.chunks(bytes)).any(|(a, b)| a != b && (finite(a) || finite(b)))
}

/// Returns a description of the first element that differs by more than rounding. Returns `None` if no element does, or
/// if the rounding is unknown.
fn compare(ours: &[u8], theirs: &[u8], reduction: Option<Reduction>, scale: &[f64], ranks: u32) -> Option<String> {
    // The rounding of the program's own operators is unknown.
    if ours == theirs || reduction.is_some_and(|r| r.op.is_none()) {
        return None;
    }
    let element = reduction.and_then(|r| Some((r.op?, r.element?)));
    let (step, float) = match element {
        Some((op, Element { number: Number::Float, bytes })) => (bytes, Some(op)),
        // Sums and products of these types round too, by an amount for which this check has no bound.
        Some((Op::Sum | Op::Prod, Element { number: Number::LongDouble | Number::Complex, .. })) => return None,
        Some((_, Element { bytes, .. })) => (bytes, None),
        None => (1, None),
    };
    for (k, (a, b)) in ours.chunks(step).zip(theirs.chunks(step)).enumerate() {
        if a == b {
            continue;
        }
        let mut text = format!("element {k}: ");
        if let Some(op) = float {
            let (x, y, eps) = match (a, b) {
                (&[a0, a1, a2, a3], &[b0, b1, b2, b3]) => {
                    let (x, y) = (f32::from_le_bytes([a0, a1, a2, a3]), f32::from_le_bytes([b0, b1, b2, b3]));
                    (f64::from(x), f64::from(y), f64::from(f32::EPSILON))
                }
                _ => {
                    let of = |bytes: &[u8]| bytes.try_into().map_or(f64::NAN, f64::from_le_bytes);
                    (of(a), of(b), f64::EPSILON)
                }
            };
            let bound = match op {
                Op::Sum => 2.0 * f64::from(ranks) * eps * scale.get(k).copied().unwrap_or(0.0),
                Op::Prod => 2.0 * f64::from(ranks) * eps * y.abs() + f64::MIN_POSITIVE,
                // Zeros of both signs are equal.
                _ => 0.0,
            };
            let finite = x.is_finite() && y.is_finite();
            if (x.is_nan() && y.is_nan()) || (x - y).abs() <= bound || (!finite && matches!(op, Op::Sum | Op::Prod)) {
                continue;
            }
            let _ = write!(text, "planned {x:e}, library {y:e}, allowed {bound:e}");
        } else {
            let _ = write!(text, "planned {a:02x?}, library {b:02x?}");
        }
        return Some(text);
    }
    None
}
