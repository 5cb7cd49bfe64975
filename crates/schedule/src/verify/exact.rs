//! Exact sets of the ranks in expressions, as sorted disjoint intervals, and whether the ranks ascend from left to
//! right.

use unisono_collective::{Collective, Kind, Source};

use super::contents::{Contributions, Fault, Wanted};

/// Number of intervals of ranks, 8 bytes each, at which [`super::Method::Auto`] changes to fingerprints.
pub const DEFAULT_BUDGET: usize = 1 << 25;

pub struct Exact {
    ranks: u32,
    commutative: bool,
    idempotent: bool,
    budget: usize,
    /// Intervals `start .. end` of ranks, combination after combination.
    intervals: Vec<(u32, u32)>,
    /// First interval of each combination, and the end of the last combination's.
    rows: Vec<u32>,
    /// For each combination, true if its ranks ascend from left to right; stored only if the operator requires it.
    ordered: Vec<bool>,
}

impl Exact {
    pub fn new(c: &Collective, budget: usize) -> Self {
        Self {
            ranks: c.ranks,
            commutative: c.operator.commutative(),
            idempotent: c.kind == Kind::Barrier,
            budget: budget.min(u32::MAX as usize),
            intervals: Vec::new(),
            rows: vec![0],
            ordered: Vec::new(),
        }
    }

    fn range(&self, id: u32) -> Option<std::ops::Range<usize>> {
        let row = id.checked_sub(self.ranks)? as usize;
        Some(self.rows[row] as usize..self.rows[row + 1] as usize)
    }

    fn with_ranks<R>(&self, id: u32, f: impl FnOnce(&[(u32, u32)]) -> R) -> R {
        match self.range(id) {
            None => f(&[(id, id + 1)]),
            Some(range) => f(&self.intervals[range]),
        }
    }

    /// Returns interval `n` of an expression whose intervals start at row `first`.
    fn interval(&self, id: u32, first: usize, n: usize) -> (u32, u32) {
        if id < self.ranks { (id, id + 1) } else { self.intervals[first + n] }
    }

    /// Appends the union of the ranks of two expressions. A rank in both is a fault, unless the collective is a
    /// barrier.
    fn unite(&mut self, a: u32, b: u32) -> Result<(), Fault> {
        let first = self.intervals.len();
        let [x, y] = [a, b].map(|id| self.range(id).unwrap_or(0..1));
        let (mut i, mut j) = (0, 0);
        let mut last: Option<(u32, u32)> = None;
        while i < x.len() || j < y.len() {
            let left = (i < x.len()).then(|| self.interval(a, x.start, i));
            let right = (j < y.len()).then(|| self.interval(b, y.start, j));
            let next = match (left, right) {
                (Some(l), Some(r)) if l <= r => (i += 1, l).1,
                (Some(l), None) => (i += 1, l).1,
                (_, Some(r)) => (j += 1, r).1,
                (None, None) => unreachable!("one of both is left"),
            };
            match &mut last {
                Some(last) if next.0 < last.1 && !self.idempotent => {
                    self.intervals.truncate(first);
                    return Err(Fault::Twice(next.0));
                }
                Some(last) if next.0 <= last.1 => last.1 = last.1.max(next.1),
                _ => {
                    self.intervals.extend(last.replace(next));
                    if self.intervals.len() >= self.budget {
                        return Err(Fault::OverBudget);
                    }
                }
            }
        }
        self.intervals.extend(last);
        Ok(())
    }

    /// Compares the ranks of an expression with the required ranks, and checks their order if the operator needs it.
    fn holds(&self, id: u32, wanted: &[(u32, u32)]) -> Result<(), String> {
        self.with_ranks(id, |held| {
            if held != wanted {
                return Err(format!("must hold {}; it holds {}", show(wanted), show(held)));
            }
            let any_order = self.commutative || self.idempotent;
            if !any_order && !self.ascends(id) {
                return Err("combines ranks out of order, and the operator does not commute".to_owned());
            }
            Ok(())
        })
    }

    fn ascends(&self, id: u32) -> bool {
        id.checked_sub(self.ranks).is_none_or(|row| self.ordered[row as usize])
    }
}

impl Contributions for Exact {
    const METHOD: &'static str = "exact";

    fn add(&mut self, a: u32, b: u32) -> Result<u64, Fault> {
        let before = self.intervals.len();
        self.unite(a, b)?;
        self.rows.push(self.intervals.len() as u32);
        if !self.commutative {
            let last = self.with_ranks(a, |s| s[s.len() - 1].1);
            let first = self.with_ranks(b, |s| s[0].0);
            self.ordered.push(self.ascends(a) && self.ascends(b) && last <= first);
        }
        Ok((self.intervals.len() - before) as u64)
    }

    fn again(&mut self, id: u32) -> Result<u64, Fault> {
        let before = self.intervals.len();
        match self.range(id) {
            Some(range) => self.intervals.extend_from_within(range),
            None => self.intervals.push((id, id + 1)),
        }
        if self.intervals.len() >= self.budget {
            return Err(Fault::OverBudget);
        }
        self.rows.push(self.intervals.len() as u32);
        if !self.commutative {
            self.ordered.push(self.ascends(id));
        }
        Ok((self.intervals.len() - before) as u64)
    }

    fn judge(&mut self, id: u32, wanted: Wanted<'_>) -> Result<(), String> {
        let source = match wanted {
            Wanted::Ranks(ranks) => return self.holds(id, ranks),
            Wanted::Source(source) => source,
        };
        match source {
            Source::Copy { rank } if id == rank => Ok(()),
            Source::Copy { rank } => {
                Err(format!("must be the input of rank {rank}; it is {}", self.with_ranks(id, show)))
            }
            Source::Reduction { ranks } | Source::AtLeastOnce { ranks } => self.holds(id, &[(0, ranks)]),
        }
    }

    fn error_probability(&self) -> Option<f64> {
        None
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
