//! Converts a schedule over elements into one over blocks of elements, and back. Blocks are the largest ones that no
//! instruction cuts, or units of a given size.

use rustc_hash::FxHashMap;
use unisono_base::InstrId;

use crate::schedule::{Operand, Schedule, Stream};

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns a schedule over blocks of as many elements as possible. The result must be proved again.
///
/// Capacities are dropped: they matter only to machines whose streams are hardware queues.
pub fn condense(schedule: &Schedule) -> Schedule {
    // The divisor is 0 if there are neither elements nor instructions.
    let block = largest_block(schedule).max(1);
    let mut small = scaled(schedule, |n| n.div_ceil(block));
    small.streams.iter_mut().for_each(|stream| stream.capacity = stream.len);
    small
}

/// Returns the same schedule over units of `each` elements, with `unit` of its collective set to `each`. The result
/// must be proved again. `None` if the unit of the collective is not 1, or if `each` does not divide the number of
/// elements and all lengths and memory positions.
pub fn packed(schedule: &Schedule, each: u32) -> Option<Schedule> {
    let fits = schedule.collective.unit == 1 && largest_block(schedule).is_multiple_of(each);
    fits.then(|| {
        let mut small = scaled(schedule, |n| n.div_ceil(each));
        small.collective.unit = each;
        small
    })
}

/// Converts a schedule over units back to the schedule over elements, the inverse of [`packed`].
pub fn unpacked(schedule: &Schedule) -> Schedule {
    let each = schedule.collective.unit;
    let mut wide = scaled(schedule, |n| n * each);
    wide.collective.unit = 1;
    wide
}

/// Returns the greatest common divisor of a schedule's elements and of its instructions' lengths and memory positions;
/// 0 if there are neither elements nor instructions.
fn largest_block(schedule: &Schedule) -> u32 {
    let mut block = schedule.collective.elements;
    for len in schedule.instrs.lens() {
        block = gcd(block, len);
    }
    for operand in (0..schedule.instr_count()).flat_map(|at| schedule.instrs.whole(InstrId::new(at)).1.iter()) {
        if let Operand::In(at) | Operand::Out(at) | Operand::Tmp(at) = operand {
            block = gcd(block, at);
        }
    }
    block
}

/// Returns a copy of a schedule in which `by` replaces every length, capacity and memory position.
fn scaled(schedule: &Schedule, by: impl Fn(u32) -> u32) -> Schedule {
    let mut copy = schedule.clone();
    copy.collective.elements = by(copy.collective.elements);
    copy.scratch.iter_mut().for_each(|s| *s = by(*s));
    copy.instrs.make_plain(&mut FxHashMap::default());
    copy.instrs.lens_mut().for_each(|len| *len = by(*len));
    for operand in &mut copy.instrs.operands {
        let moved = match operand.get() {
            Operand::In(at) => Operand::In(by(at)),
            Operand::Out(at) => Operand::Out(by(at)),
            Operand::Tmp(at) => Operand::Tmp(by(at)),
            stream @ Operand::Stream(_) => stream,
        };
        *operand = moved.into();
    }
    for Stream { len, capacity, .. } in &mut copy.streams {
        *len = by(*len);
        *capacity = by(*capacity);
    }
    copy
}
