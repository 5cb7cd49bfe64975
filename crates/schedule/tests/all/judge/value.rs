//! The contents of one place: the number of each rank's contributions, their input element, and their order.
//!
//! A value is one 64-bit number, so that states are compared exactly. Zero means that nothing was written.
//!
//! Bits: 0..16 four bits a rank, saturating; 16..24 the input element, or [`MISALIGNED`]; 24..26 the first rank, 26..28
//! the last rank; 28 ranks ascend from left to right; 29 written.

use unisono_collective::{Operator, Source};

pub type Value = u64;

pub const UNWRITTEN: Value = 0;
/// Greatest number of ranks that fit into a value.
pub const MOST_RANKS: u32 = 4;
/// Stands for the element of a combination of different elements; real elements have lower numbers.
pub const MISALIGNED: u64 = 255;

const WRITTEN: u64 = 1 << 29;
const ASCENDING: u64 = 1 << 28;

pub fn leaf(rank: usize, element: usize) -> Value {
    let rank = rank as u64;
    1 << (4 * rank) | (element as u64) << 16 | rank << 24 | rank << 26 | ASCENDING | WRITTEN
}

fn element(v: Value) -> u64 {
    v >> 16 & 255
}

fn count(v: Value, rank: u32) -> u64 {
    v >> (4 * rank) & 15
}

/// Returns `a op b`; unwritten if either operand is unwritten.
pub fn combine(a: Value, b: Value) -> Value {
    if a == UNWRITTEN || b == UNWRITTEN {
        return UNWRITTEN;
    }
    let counts = (0..MOST_RANKS).fold(0, |all, r| all | (count(a, r) + count(b, r)).min(15) << (4 * r));
    let aligned = if element(a) == element(b) { element(a) } else { MISALIGNED };
    let ascending = a & b & ASCENDING != 0 && (a >> 26 & 3) < (b >> 24 & 3);
    counts | aligned << 16 | a & (3 << 24) | b & (3 << 26) | if ascending { ASCENDING } else { 0 } | WRITTEN
}

/// Returns true if the value combines different elements, or one contribution twice.
pub fn is_faulty(v: Value) -> bool {
    v != UNWRITTEN && (element(v) == MISALIGNED || (0..MOST_RANKS).any(|r| count(v, r) > 1))
}

/// Returns true if a value is right for an output element that requires input element `wanted` of `source`.
pub fn is_right(v: Value, wanted: usize, source: Source, operator: Operator) -> bool {
    if v == UNWRITTEN || element(v) != wanted as u64 {
        return false;
    }
    match source {
        Source::Copy { rank } => v == leaf(rank as usize, wanted),
        Source::Reduction { ranks } => {
            let once = (0..MOST_RANKS).all(|r| count(v, r) == u64::from(r < ranks));
            once && (operator.commutative() || v & ASCENDING != 0)
        }
        Source::AtLeastOnce { ranks } => (0..MOST_RANKS).all(|r| (count(v, r) > 0) == (r < ranks)),
    }
}
