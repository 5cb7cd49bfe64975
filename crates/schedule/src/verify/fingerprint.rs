//! Contents by fingerprint, where exact sets cost too much. Each rank gets random numbers from a seed that is a hash of
//! the whole schedule, so that the same schedule has the same fingerprints and none can be made to fit its own:
//!
//! * exactly once: the number of contributions, and the sum of one random residue a contributing rank, modulo the prime
//!   2^61 - 1; a wrong multiset passes with probability 2^-61 a judged segment (Schwartz-Zippel, degree 1);
//! * order, where the operator does not commute: the composition of one random affine map a rank over the same prime
//!   (affine maps compose associatively and do not commute); degree P, hence at most P / 2^61;
//! * repeatability: a hash symmetric in its two operands and not associative, 64 bits.

use unisono_base::mix;
use unisono_collective::{Collective, Source};

use super::contents::{Domain, Fault};

const PRIME: u64 = (1 << 61) - 1;

#[derive(Clone, Copy, PartialEq)]
pub struct Value {
    /// Contributions, saturating.
    count: u32,
    sum: u64,
    /// The map `x -> slope x + offset`; left as the identity where the operator commutes.
    slope: u64,
    offset: u64,
    hash: u64,
}

pub struct Fingerprint {
    commutative: bool,
    seed: u64,
    /// What the reduction of ranks `0 .. i` must give.
    prefixes: Vec<(u64, u64, u64)>,
}

impl Fingerprint {
    pub fn new(c: &Collective, seed: u64) -> Self {
        let mut domain = Self { commutative: c.operator.commutative(), seed, prefixes: Vec::new() };
        let mut at = (0, 1, 0);
        let mut prefixes = Vec::with_capacity(c.ranks as usize + 1);
        prefixes.push(at);
        for rank in 0..c.ranks {
            let leaf = domain.leaf(rank);
            let (slope, offset) = compose((at.1, at.2), (leaf.slope, leaf.offset));
            at = (add(at.0, leaf.sum), slope, offset);
            prefixes.push(at);
        }
        domain.prefixes = prefixes;
        domain
    }
}

fn add(a: u64, b: u64) -> u64 {
    let s = a + b;
    if s >= PRIME { s - PRIME } else { s }
}

fn mul(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64
}

/// First `f`, then `g`: `g(f(x))`.
fn compose(f: (u64, u64), g: (u64, u64)) -> (u64, u64) {
    (mul(g.0, f.0), add(mul(g.0, f.1), g.1))
}

fn random(rank: u32, salt: u64) -> u64 {
    let salt = mix(salt);
    mix(mix(u64::from(rank) ^ salt).wrapping_add(salt)) % (PRIME - 2) + 2
}

impl Domain for Fingerprint {
    type Value = Value;

    fn leaf(&self, rank: u32) -> Value {
        let (slope, offset) =
            if self.commutative { (1, 0) } else { (random(rank, self.seed ^ 1), random(rank, self.seed ^ 2)) };
        Value { count: 1, sum: random(rank, self.seed ^ 3), slope, offset, hash: mix(u64::from(rank) + 1) }
    }

    fn combine(&mut self, a: Value, b: Value) -> Result<Value, Fault> {
        let (slope, offset) = if self.commutative { (1, 0) } else { compose((a.slope, a.offset), (b.slope, b.offset)) };
        let (mut x, mut y) = (a.hash, b.hash);
        if self.commutative && x > y {
            std::mem::swap(&mut x, &mut y);
        }
        let hash = mix(x.wrapping_add(mix(y ^ 0x9e37_79b9_7f4a_7c15)));
        Ok(Value { count: a.count.saturating_add(b.count), sum: add(a.sum, b.sum), slope, offset, hash })
    }

    fn judge(&self, value: Value, wanted: Source) -> Result<(), String> {
        match wanted {
            Source::Copy { rank } if value == self.leaf(rank) => Ok(()),
            Source::Copy { rank } => Err(format!("must be the input of rank {rank}; its fingerprint is another")),
            Source::Reduction { ranks } => {
                let (sum, slope, offset) = self.prefixes[ranks as usize];
                if value.count != ranks || value.sum != sum {
                    Err(format!("must hold ranks 0..{ranks} once each; its fingerprint is another"))
                } else if !self.commutative && (value.slope, value.offset) != (slope, offset) {
                    Err("combines ranks out of order, and the operator does not commute".to_owned())
                } else {
                    Ok(())
                }
            }
            Source::AtLeastOnce { ranks } => Err(format!(
                "must have heard of ranks 0..{ranks}; fingerprints cannot show that, ask for the exact method"
            )),
        }
    }

    fn class(&self, value: Value) -> u64 {
        value.hash
    }
}
