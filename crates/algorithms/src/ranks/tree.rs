//! The binomial tree: virtual rank v hangs on v without its lowest set bit, so its subtree is the interval from v on.
//!
//! Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005.

use unisono_collective::Collective;

/// The rank that `v` > 0 hangs on.
pub fn parent(v: u32) -> u32 {
    v & (v - 1)
}

/// Ranks in the subtree of `v`, among `ranks`.
pub fn size(v: u32, ranks: u32) -> u32 {
    if v == 0 { ranks } else { (1 << v.trailing_zeros()).min(ranks - v) }
}

/// What hangs on `v`, smallest subtrees first.
pub fn children(v: u32, ranks: u32) -> impl DoubleEndedIterator<Item = u32> + Clone {
    // Subtrees of 1, 2, 4, ... follow each other until that of `v` is full.
    let bits = u32::BITS - (size(v, ranks) - 1).leading_zeros();
    (0..bits).map(move |k| v + (1 << k))
}

/// The rank to which a reduction leads: the root, or rank 0 where the order of the ranks matters, which then hands the
/// result to the root (as MPICH does).
pub fn top(c: &Collective) -> u32 {
    if c.operator.commutative() { c.root } else { 0 }
}
