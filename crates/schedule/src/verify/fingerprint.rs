//! Sets of the ranks in each expression by fingerprint, for use when exact sets need too much memory.
//!
//! Rank `r` gets a random number `x_r` of 192 bits from ChaCha20, seeded at the time of the proof. An expression that
//! contains rank `r` `m_r` times has the fingerprint `sum of m_r x_r` modulo 2^192, and the exact count `sum of m_r`.
//!
//! **Error.** Let `n` ranks be required once each, and let an expression have the right count `n` but other
//! multiplicities: `d_r = m_r - (1 if r is required else 0)` is not 0 for some `r`, and `|d_r| <= n` because the count
//! is exact. Fix all other numbers: at most `2^k` of the 2^192 values of `x_r` give the sum, where `2^k` is the largest
//! power of two that divides `d_r`, so `2^k <= n`. One wrong expression passes with a probability of at most `n /
//! 2^192`, and any of `c` expressions with `c n / 2^192`. There are fewer than 2^31 expressions and at most 2^22 ranks:
//! below 2^-139. This holds for all multiplicities, if the schedule was fixed before the seed was drawn.
//!
//! The rest of the proof is exact: it compares copies and repeatability by the ids of expressions, and the order of
//! ranks by each expression's first and last rank.

use chacha20::{ChaCha20Rng, rand_core::Rng};
use unisono_collective::{Collective, Source};

use super::contents::{Contributions, Fault, Wanted};

/// A number modulo 2^192: its low 128 bits and its high 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum(pub u128, pub u64);

impl Sum {
    pub fn plus(self, other: Self) -> Self {
        let (low, carry) = self.0.overflowing_add(other.0);
        Self(low, self.1.wrapping_add(other.1).wrapping_add(u64::from(carry)))
    }

    pub fn minus(self, other: Self) -> Self {
        let (low, borrow) = self.0.overflowing_sub(other.0);
        Self(low, self.1.wrapping_sub(other.1).wrapping_sub(u64::from(borrow)))
    }
}

#[derive(Clone, Copy)]
struct Row {
    sum: Sum,
    /// Number of contributions, at most `u32::MAX`.
    count: u32,
    first: u32,
    last: u32,
    /// True if the ranks ascend from left to right.
    ordered: bool,
}

pub struct Fingerprint {
    ranks: u32,
    commutative: bool,
    /// Sums of the random numbers `x_r` of the ranks `0 .. i`, for each `i`.
    prefixes: Vec<Sum>,
    rows: Vec<Row>,
    /// For each combination, true if its fingerprint was already compared.
    compared: Vec<bool>,
    comparisons: u64,
}

impl Fingerprint {
    pub fn new(c: &Collective, random: &mut ChaCha20Rng) -> Self {
        let mut sum = Sum::default();
        let mut prefixes = Vec::with_capacity(c.ranks as usize + 1);
        prefixes.push(sum);
        for _ in 0..c.ranks {
            let low = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
            sum = sum.plus(Sum(low, random.next_u64()));
            prefixes.push(sum);
        }
        let (commutative, compared) = (c.operator.commutative(), Vec::new());
        Self { ranks: c.ranks, commutative, prefixes, rows: Vec::new(), compared, comparisons: 0 }
    }

    /// Compares an expression with the inputs of the `wanted` ranks, each once. Every comparison is counted, because an
    /// expression may be compared with several sets of the same size.
    fn holds(&mut self, id: u32, wanted: &[(u32, u32)]) -> Result<(), String> {
        let row = self.row(id);
        let count: u32 = wanted.iter().map(|(a, b)| b - a).sum();
        let exist = wanted.iter().all(|&(_, end)| end <= self.ranks);
        let once = if id < self.ranks || !exist {
            wanted == [(id, id + 1)]
        } else {
            let sum = wanted.iter().fold(Sum::default(), |sum, &(a, b)| {
                sum.plus(self.prefixes[b as usize].minus(self.prefixes[a as usize]))
            });
            self.comparisons += 1;
            row.count == count && row.sum == sum
        };
        if !once {
            Err(format!("must hold {count} other ranks once each; its fingerprint is another"))
        } else if !self.commutative && !row.ordered {
            Err("combines ranks out of order, and the operator does not commute".to_owned())
        } else {
            Ok(())
        }
    }

    fn row(&self, id: u32) -> Row {
        match id.checked_sub(self.ranks) {
            Some(row) => self.rows[row as usize],
            None => {
                let sum = self.prefixes[id as usize + 1].minus(self.prefixes[id as usize]);
                Row { sum, count: 1, first: id, last: id, ordered: true }
            }
        }
    }
}

impl Contributions for Fingerprint {
    const METHOD: &'static str = "fingerprint";

    fn add(&mut self, a: u32, b: u32) -> Result<u64, Fault> {
        let (a, b) = (self.row(a), self.row(b));
        self.rows.push(Row {
            sum: a.sum.plus(b.sum),
            count: a.count.saturating_add(b.count),
            first: a.first.min(b.first),
            last: a.last.max(b.last),
            ordered: a.ordered && b.ordered && a.last < b.first,
        });
        Ok(6)
    }

    fn again(&mut self, id: u32) -> Result<u64, Fault> {
        self.rows.push(self.row(id));
        Ok(6)
    }

    fn judge(&mut self, id: u32, wanted: Wanted<'_>) -> Result<(), String> {
        let source = match wanted {
            Wanted::Ranks(ranks) => return self.holds(id, ranks),
            Wanted::Source(source) => source,
        };
        match source {
            Source::Copy { rank } if id == rank => Ok(()),
            Source::Copy { rank } => Err(format!("must be the input of rank {rank}; it is another expression")),
            Source::Reduction { ranks } => {
                let row = self.row(id);
                let once = match id.checked_sub(self.ranks) {
                    None => id == 0 && ranks == 1,
                    Some(_) if row.count != ranks => false,
                    Some(at) => {
                        // An expression has one count, so repeated comparisons use the same sum.
                        self.compared.resize(self.rows.len(), false);
                        self.comparisons += u64::from(!std::mem::replace(&mut self.compared[at as usize], true));
                        row.sum == self.prefixes[ranks as usize]
                    }
                };
                if !once {
                    Err(format!("must hold ranks 0..{ranks} once each; its fingerprint is another"))
                } else if !self.commutative && !row.ordered {
                    Err("combines ranks out of order, and the operator does not commute".to_owned())
                } else {
                    Ok(())
                }
            }
            Source::AtLeastOnce { ranks } => Err(format!(
                "must have heard of ranks 0..{ranks}; fingerprints cannot show that, and the exact method holds no more sets"
            )),
        }
    }

    fn error_probability(&self) -> Option<f64> {
        Some(self.comparisons as f64 * f64::from(self.ranks) * 2f64.powi(-192))
    }
}
