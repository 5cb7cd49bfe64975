//! Converts a schedule over elements into a schedule over blocks: the largest block that no instruction divides.

use crate::schedule::{Operand, Schedule, Stream};

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns a schedule over blocks of as many elements as possible. It must be proved again.
///
/// Capacities are dropped: they matter only to machines whose streams are hardware queues.
pub fn condense(schedule: &Schedule) -> Schedule {
    let mut block = schedule.collective.elements;
    for i in schedule.instrs.iter() {
        block = gcd(block, i.len);
    }
    for operand in &schedule.operands {
        if let Operand::In(at) | Operand::Out(at) | Operand::Tmp(at) = operand.get() {
            block = gcd(block, at);
        }
    }
    let mut small = schedule.clone();
    // The divisor would be 0 for a collective over zero elements.
    let block = block.max(1);
    small.collective.elements /= block;
    small.scratch.iter_mut().for_each(|s| *s = s.div_ceil(block));
    small.instrs.lens_mut().for_each(|len| *len /= block);
    for operand in &mut small.operands {
        let small = match operand.get() {
            Operand::In(at) => Operand::In(at / block),
            Operand::Out(at) => Operand::Out(at / block),
            Operand::Tmp(at) => Operand::Tmp(at / block),
            stream @ Operand::Stream(_) => stream,
        };
        *operand = small.into();
    }
    for Stream { len, capacity, .. } in &mut small.streams {
        *len /= block;
        *capacity = *len;
    }
    small
}
