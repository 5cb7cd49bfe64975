//! The total time that intervals cover. Time in several intervals counts once.

use super::graph::Interval;

/// Disjoint intervals, ascending.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Spans(Vec<Interval>);

impl Spans {
    /// Merges intervals that overlap. Intervals that only touch stay separate, so that the sum of lengths adds the same
    /// terms.
    pub fn new(intervals: impl IntoIterator<Item = Interval>) -> Self {
        let mut all: Vec<Interval> = intervals.into_iter().filter(|one| one.end > one.begin).collect();
        all.sort_by(|a, b| a.begin.total_cmp(&b.begin));
        let mut merged: Vec<Interval> = Vec::with_capacity(all.len());
        for one in all {
            match merged.last_mut() {
                Some(last) if one.begin < last.end => last.end = last.end.max(one.end),
                _ => merged.push(one),
            }
        }
        Self(merged)
    }

    pub fn seconds(&self) -> f64 {
        self.0.iter().fold(0.0, |sum, one| sum + (one.end - one.begin))
    }

    /// Returns the seconds that both sets of intervals cover.
    pub fn shared_with(&self, other: &Self) -> f64 {
        let (mut seconds, mut first) = (0.0, 0);
        for one in &self.0 {
            while other.0.get(first).is_some_and(|met| met.end <= one.begin) {
                first += 1;
            }
            let met = other.0[first..].iter().take_while(|met| met.begin < one.end);
            seconds += met.map(|met| met.end.min(one.end) - met.begin.max(one.begin)).sum::<f64>();
        }
        seconds
    }
}
