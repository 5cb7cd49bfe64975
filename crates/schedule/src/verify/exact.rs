//! Exact sets of the ranks in expressions, as sorted disjoint intervals, with a flag that is true if the ranks ascend
//! from left to right.

use unisono_collective::{Collective, Kind, Source};

use super::contents::{Contributions, Fault, Wanted};

/// Number of intervals of ranks, 4 or 8 bytes each, at which [`super::Method::Auto`] changes to fingerprints.
pub const DEFAULT_BUDGET: usize = 1 << 25;

/// Intervals `start .. end` of ranks. For up to 2^16 ranks, `start` and `end - 1` share a word of 32 bits.
struct Intervals {
    are_narrow: bool,
    words: Vec<u32>,
}

impl Intervals {
    fn len(&self) -> usize {
        if self.are_narrow { self.words.len() } else { self.words.len() / 2 }
    }

    #[inline]
    fn get(&self, at: usize) -> (u32, u32) {
        if self.are_narrow {
            let word = self.words[at];
            (word >> 16, (word & 0xffff) + 1)
        } else {
            (self.words[2 * at], self.words[2 * at + 1])
        }
    }

    #[inline]
    fn push(&mut self, (start, end): (u32, u32)) {
        if self.are_narrow { self.words.push(start << 16 | (end - 1)) } else { self.words.extend([start, end]) }
    }

    fn truncate(&mut self, len: usize) {
        self.words.truncate(if self.are_narrow { len } else { 2 * len });
    }
}

pub struct Exact {
    ranks: u32,
    commutative: bool,
    idempotent: bool,
    budget: usize,
    /// The intervals of all combinations, one combination after the other.
    intervals: Intervals,
    /// The first interval of each combination, then the number of all intervals.
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
            intervals: Intervals { are_narrow: c.ranks <= 1 << 16, words: Vec::new() },
            rows: vec![0],
            ordered: Vec::new(),
        }
    }

    fn range(&self, id: u32) -> Option<std::ops::Range<usize>> {
        let row = id.checked_sub(self.ranks)? as usize;
        Some(self.rows[row] as usize..self.rows[row + 1] as usize)
    }

    /// Returns the intervals of an expression, in ascending order.
    fn held(&self, id: u32) -> impl DoubleEndedIterator<Item = (u32, u32)> + ExactSizeIterator + Clone {
        let range = self.range(id);
        range.clone().unwrap_or(0..1).map(move |at| if range.is_some() { self.intervals.get(at) } else { (id, id + 1) })
    }

    /// Returns interval `n` of an expression whose intervals start at row `first`.
    fn interval(&self, id: u32, first: usize, n: usize) -> (u32, u32) {
        if id < self.ranks { (id, id + 1) } else { self.intervals.get(first + n) }
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
                    if let Some(last) = last.replace(next) {
                        self.intervals.push(last);
                    }
                    if self.intervals.len() >= self.budget {
                        return Err(Fault::OverBudget);
                    }
                }
            }
        }
        if let Some(last) = last {
            self.intervals.push(last);
        }
        Ok(())
    }

    /// Compares the ranks of an expression with the required ranks. Checks their order if the operator requires an
    /// order.
    fn holds(&self, id: u32, wanted: &[(u32, u32)]) -> Result<(), String> {
        if !self.held(id).eq(wanted.iter().copied()) {
            return Err(format!("must hold {}; it holds {}", show(wanted.iter().copied()), show(self.held(id))));
        }
        let any_order = self.commutative || self.idempotent;
        if !any_order && !self.ascends(id) {
            return Err("combines ranks out of order, and the operator does not commute".to_owned());
        }
        Ok(())
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
            let last = self.held(a).next_back().map(|(_, end)| end);
            let first = self.held(b).next().map(|(start, _)| start);
            self.ordered.push(self.ascends(a) && self.ascends(b) && last <= first);
        }
        Ok((self.intervals.len() - before) as u64)
    }

    fn again(&mut self, id: u32) -> Result<u64, Fault> {
        let before = self.intervals.len();
        for at in self.range(id).unwrap_or(0..1) {
            self.intervals.push(self.interval(id, at, 0));
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
            Source::Copy { rank } => Err(format!("must be the input of rank {rank}; it is {}", show(self.held(id)))),
            Source::Reduction { ranks } | Source::AtLeastOnce { ranks } => self.holds(id, &[(0, ranks)]),
        }
    }

    fn error_probability(&self) -> Option<f64> {
        None
    }
}

fn show(held: impl ExactSizeIterator<Item = (u32, u32)>) -> String {
    let rest = if held.len() > 6 { ", ..." } else { "" };
    let interval = |(a, b)| if b == a + 1 { format!("rank {a}") } else { format!("ranks {a}..{b}") };
    held.take(6).map(interval).collect::<Vec<_>>().join(", ") + rest
}
