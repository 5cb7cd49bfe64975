//! The k-nomial tree: the parent of virtual rank v is v without its lowest digit above 0 to base k, so its subtree is
//! an interval from v. The binomial tree has base 2.
//!
//! Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005.

use unisono_base::narrow;
use unisono_collective::Collective;

/// The base of the binomial tree.
pub const BINARY: u32 = 2;

/// Returns the value of the lowest digit above 0 of `v` > 0.
fn unit(v: u32, radix: u32) -> u32 {
    let mut unit = 1;
    while v.is_multiple_of(unit * radix) {
        unit *= radix;
    }
    unit
}

/// Returns the parent of `v` > 0.
pub fn parent(v: u32, radix: u32) -> u32 {
    let unit = unit(v, radix);
    v - v / unit % radix * unit
}

/// Returns the number of ranks in the subtree of `v`, among `ranks`.
pub fn size(v: u32, ranks: u32, radix: u32) -> u32 {
    if v == 0 { ranks } else { unit(v, radix).min(ranks - v) }
}

/// Returns the children of `v`, smallest subtrees first.
pub fn children(v: u32, ranks: u32, radix: u32) -> impl DoubleEndedIterator<Item = u32> + Clone {
    let size = u64::from(size(v, ranks, radix));
    let units = std::iter::successors(Some(1), |unit| Some(unit * u64::from(radix))).take_while(|&unit| unit < size);
    let below = units.flat_map(|unit| (1..u64::from(radix)).map(move |digit| digit * unit)).filter(|&at| at < size);
    below.map(|at| v + narrow::<u32>(at)).collect::<Vec<_>>().into_iter()
}

/// Returns the rank at the top of a reduction: the root, or rank 0 if the order of the ranks matters. Rank 0 then sends
/// the result to the root (as in MPICH).
pub fn top(c: &Collective) -> u32 {
    if c.operator.commutative() { c.root } else { 0 }
}
