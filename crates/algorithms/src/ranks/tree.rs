//! The binomial tree: the parent of virtual rank v is v without its lowest set bit, so its subtree is an interval from
//! v.
//!
//! Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005.

use unisono_collective::Collective;

/// Returns the parent of `v` > 0.
pub fn parent(v: u32) -> u32 {
    v & (v - 1)
}

/// Returns the number of ranks in the subtree of `v`, among `ranks`.
pub fn size(v: u32, ranks: u32) -> u32 {
    if v == 0 { ranks } else { (1 << v.trailing_zeros()).min(ranks - v) }
}

/// Returns the children of `v`, smallest subtrees first.
pub fn children(v: u32, ranks: u32) -> impl DoubleEndedIterator<Item = u32> + Clone {
    // Subtrees of 1, 2, 4, ... follow each other until they fill the subtree of `v`.
    let bits = u32::BITS - (size(v, ranks) - 1).leading_zeros();
    (0..bits).map(move |k| v + (1 << k))
}

/// Returns the rank at the top of a reduction: the root, or rank 0 if the order of the ranks matters. Rank 0 then sends
/// the result to the root (as in MPICH).
pub fn top(c: &Collective) -> u32 {
    if c.operator.commutative() { c.root } else { 0 }
}
