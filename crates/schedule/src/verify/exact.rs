//! Contents exactly: an expression is the set of ranks it holds, as sorted disjoint intervals, with the class of
//! expressions equal to it up to swapping operands, and whether its ranks stand in ascending order.

use rustc_hash::FxHashMap;
use unisono_base::mix;
use unisono_collective::{Collective, Kind, Source};

use super::contents::{Domain, Fault};

/// Intervals of ranks that [`super::Method::Auto`] spends before it turns to fingerprints: 8 bytes each.
pub const DEFAULT_BUDGET: usize = 1 << 25;

#[derive(Clone, Copy, PartialEq)]
pub struct Value {
    /// A rank, or `ranks` + a row of the table of classes.
    class: u32,
    /// The ranks of the expression ascend from left to right, as an operator that does not commute demands.
    ordered: bool,
}

struct Class {
    first: usize,
    count: u32,
    hash: u64,
}

pub struct Exact {
    ranks: u32,
    commutative: bool,
    idempotent: bool,
    budget: usize,
    classes: Vec<Class>,
    /// `start .. end` of ranks.
    intervals: Vec<(u32, u32)>,
    known: FxHashMap<(u32, u32), u32>,
}

impl Exact {
    pub fn new(c: &Collective, budget: usize) -> Self {
        Self {
            ranks: c.ranks,
            commutative: c.operator.commutative(),
            idempotent: c.kind == Kind::Barrier,
            budget,
            classes: Vec::new(),
            intervals: Vec::new(),
            known: FxHashMap::default(),
        }
    }

    fn with_ranks<R>(&self, class: u32, f: impl FnOnce(&[(u32, u32)]) -> R) -> R {
        match class.checked_sub(self.ranks) {
            None => f(&[(class, class + 1)]),
            Some(row) => {
                let c = &self.classes[row as usize];
                f(&self.intervals[c.first..c.first + c.count as usize])
            }
        }
    }

    fn hash(&self, class: u32) -> u64 {
        match class.checked_sub(self.ranks) {
            None => mix(u64::from(class) + 1),
            Some(row) => self.classes[row as usize].hash,
        }
    }

    /// Appends the union of two sets; the first rank in both is a fault unless that is allowed.
    fn unite(&mut self, a: u32, b: u32) -> Result<(usize, u32), Fault> {
        let first = self.intervals.len();
        let (x, y) = (self.with_ranks(a, <[_]>::to_vec), self.with_ranks(b, <[_]>::to_vec));
        let (mut i, mut j) = (0, 0);
        while i < x.len() || j < y.len() {
            let take_x = j == y.len() || (i < x.len() && x[i] <= y[j]);
            let next = if take_x { x[i] } else { y[j] };
            if take_x {
                i += 1
            } else {
                j += 1
            }
            let count = self.intervals.len();
            match self.intervals.get_mut(first..).and_then(|s| s.last_mut()) {
                Some(last) if next.0 < last.1 && !self.idempotent => {
                    self.intervals.truncate(first);
                    return Err(Fault::Twice(next.0));
                }
                Some(last) if next.0 <= last.1 => last.1 = last.1.max(next.1),
                _ if count >= self.budget => return Err(Fault::OverBudget),
                _ => self.intervals.push(next),
            }
        }
        Ok((first, (self.intervals.len() - first) as u32))
    }
}

impl Domain for Exact {
    type Value = Value;

    fn leaf(&self, rank: u32) -> Value {
        Value { class: rank, ordered: true }
    }

    fn combine(&mut self, a: Value, b: Value) -> Result<Value, Fault> {
        let last_a = self.with_ranks(a.class, |s| s[s.len() - 1].1);
        let first_b = self.with_ranks(b.class, |s| s[0].0);
        let ordered = a.ordered && b.ordered && last_a <= first_b;
        let key = if self.commutative && a.class > b.class { (b.class, a.class) } else { (a.class, b.class) };
        if let Some(&class) = self.known.get(&key) {
            return Ok(Value { class, ordered });
        }
        let (first, count) = self.unite(key.0, key.1)?;
        let (mut x, mut y) = (self.hash(key.0), self.hash(key.1));
        if self.commutative && x > y {
            std::mem::swap(&mut x, &mut y);
        }
        let hash = mix(x.wrapping_add(mix(y ^ 0x9e37_79b9_7f4a_7c15)));
        let class = u32::try_from(self.classes.len() + self.ranks as usize).map_err(|_| Fault::OverBudget)?;
        self.classes.push(Class { first, count, hash });
        self.known.insert(key, class);
        Ok(Value { class, ordered })
    }

    fn judge(&self, value: Value, wanted: Source) -> Result<(), String> {
        match wanted {
            Source::Copy { rank } if value.class == rank => Ok(()),
            Source::Copy { rank } => {
                Err(format!("must be the input of rank {rank}; it is {}", self.with_ranks(value.class, show)))
            }
            Source::Reduction { ranks } | Source::AtLeastOnce { ranks } => self.with_ranks(value.class, |held| {
                if held != [(0, ranks)] {
                    return Err(format!("must hold ranks 0..{ranks}; it holds {}", show(held)));
                }
                let any_order = self.commutative || self.idempotent;
                if !any_order && !value.ordered {
                    return Err("combines ranks out of order, and the operator does not commute".to_owned());
                }
                Ok(())
            }),
        }
    }

    fn class(&self, value: Value) -> u64 {
        self.hash(value.class)
    }
}

fn show(held: &[(u32, u32)]) -> String {
    let shown: Vec<String> = held
        .iter()
        .take(6)
        .map(|&(a, b)| if b == a + 1 { format!("rank {a}") } else { format!("ranks {a}..{b}") })
        .collect();
    shown.join(", ") + if held.len() > 6 { ", ..." } else { "" }
}
