//! Tests whether the library combines in the order of the plan, for `UNISONO_CHECK=1` and sums and products that differ
//! within the bound.
//!
//! Sums in the same order have the same bits. If both use the same order, any difference is therefore a fault. Plan and
//! library run on generated vectors whose sums depend on the order. If all bits agree on all ranks, the order is
//! assumed to be the same. A library may change its algorithm between calls (MPICH 5.0.2 does, after four calls on one
//! node), so the library also runs once more on the program's data. If its two results differ, the order remains
//! unknown, and no fault is reported.

use unisono_collective::Kind;
use unisono_mpi::{Call, Comm, Element, Library, Number, Op, Outcome, Reduction};

use crate::{
    check::write_float,
    comms::{Known, Served},
    intercept::Words,
};

/// The minimum number of elements to compare. The probability that sums in different orders agree on 256 elements by
/// chance is negligible.
const ELEMENTS: usize = 256;

/// Returns the reduction, its operator and the bytes of an element if its bits depend on the order: a sum or product of
/// floats.
pub fn depends_on_order(reduction: Option<Reduction>) -> Option<(Reduction, Op, usize)> {
    let reduction = reduction?;
    match (reduction.op?, reduction.element?) {
        (op @ (Op::Sum | Op::Prod), Element { number: Number::Float, bytes }) => Some((reduction, op, bytes)),
        _ => None,
    }
}

/// Returns the numbers of elements of `(input, output)` on this rank.
fn sizes(call: &Call, known: &Known) -> (usize, usize) {
    let has_output = call.kind != Kind::Reduce || call.root == known.rank;
    let pieces = if call.kind == Kind::ReduceScatter { known.ranks as usize } else { 1 };
    (call.elements * pieces, if has_output { call.elements } else { 0 })
}

/// Returns whether plan and library give all ranks the same bits on generated vectors.
///
/// # Errors
/// Returns errors of the library.
pub fn same_order(
    library: &Library,
    known: &Known,
    served: &mut Served,
    entry: usize,
    call: &Call,
    comm: Comm,
) -> Outcome<bool> {
    let Some((reduction, op, bytes)) = depends_on_order(call.reduction) else { return Ok(false) };
    let (given, got) = sizes(call, known);
    let (mut input, mut ours, mut theirs) = (Words::default(), Words::default(), Words::default());
    let mut call = *call;
    call.in_place = false;
    let mut same = true;
    for turn in 0..ELEMENTS.div_ceil(call.elements.max(1)) {
        let from = input.bytes(given * bytes);
        // SAFETY: the buffer was made for these elements.
        unsafe { fill(from, given, bytes, op, (turn * known.ranks as usize + known.rank as usize) as u64) };
        call.input = from;
        call.output = ours.bytes(got * bytes);
        // SAFETY: the buffers were made for this rank's sizes.
        unsafe { served.planned.run(library, call, entry)? };
        call.output = theirs.bytes(got * bytes);
        // SAFETY: as above.
        unsafe { library.reduce(&call, &reduction, comm)? };
        same &= ours.seen(got * bytes) == theirs.seen(got * bytes);
    }
    let (least, _) = library.bounds(u64::from(same), comm)?;
    Ok(least == 1)
}

/// Returns whether a second run of the library on the program's data has other bits than `before` on any rank.
///
/// # Errors
/// Returns errors of the library.
pub fn wavers(library: &Library, known: &Known, call: &Call, before: &[u8], comm: Comm) -> Outcome<bool> {
    let Some((reduction, _, bytes)) = depends_on_order(call.reduction) else { return Ok(true) };
    let (_, got) = sizes(call, known);
    let mut again = Words::default();
    let call = Call { output: again.bytes(got * bytes), in_place: false, ..*call };
    // SAFETY: the input is the program's, or its copy; the output was made for this rank's size.
    unsafe { library.reduce(&call, &reduction, comm)? };
    let differs = got > 0 && again.seen(got * bytes) != before;
    let (_, most) = library.bounds(u64::from(differs), comm)?;
    Ok(most != 0)
}

/// Writes random numbers of both signs: with magnitudes over 25 powers of two for sums, and from 0.5 to 1.5 for
/// products, so that products hardly ever overflow.
///
/// # Safety
/// There must be room for `count` floats of `bytes` bytes.
unsafe fn fill(to: *mut u8, count: usize, bytes: usize, op: Op, seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for k in 0..count {
        // Knuth's multiplier; the high bits are the random ones.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let spread = if op == Op::Sum { (state >> 32) % 24 } else { 1 };
        let sign = if state >> 63 == 0 { 1.0 } else { -1.0 };
        let value =
            sign * (0.5 + ((state >> 11) & 0xf_ffff_ffff) as f64 / 2f64.powi(36)) * 2f64.powi(spread as i32 - 1);
        // SAFETY: as the caller guarantees.
        unsafe { write_float(to.wrapping_add(k * bytes), bytes, value) };
    }
}
