//! An interval map from blocks to values. Its cost depends on the number of intervals, not on the number of blocks.

use std::collections::BTreeMap;

use unisono_base::Span;

/// Disjoint intervals by their start, each with its end and its value.
#[derive(Clone, Debug)]
pub struct Runs<T>(BTreeMap<u64, (u64, T)>);

impl<T> Default for Runs<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Clone> Runs<T> {
    /// Returns the intervals that overlap `span`, clipped to it, as (start, end, value) in ascending order.
    pub fn over(&self, span: Span) -> impl Iterator<Item = (u64, u64, &T)> {
        let (start, end) = (u64::from(span.start), span.end());
        let within = self.0.range(start..end);
        // Intervals are disjoint, so no earlier interval reaches into an interval that begins at `start`.
        let begins = within.clone().next().is_some_and(|(&from, _)| from == start);
        let earlier = if begins { None } else { self.0.range(..start).next_back() };
        let before = earlier.filter(|(_, (to, _))| *to > start && end > start);
        before.into_iter().chain(within).map(move |(&from, (to, value))| (from.max(start), (*to).min(end), value))
    }

    /// Returns the value of the interval that equals `span`; `None` if there is no such interval.
    pub fn exactly(&mut self, span: Span) -> Option<&mut T> {
        let found = self.0.get_mut(&u64::from(span.start));
        found.filter(|(to, _)| *to == span.end()).map(|(_, value)| value)
    }

    pub fn set(&mut self, span: Span, value: T) {
        if span.is_empty() {
            return;
        }
        if let Some(same) = self.exactly(span) {
            *same = value;
            return;
        }
        let (start, end) = (u64::from(span.start), span.end());
        self.cut(start);
        self.cut(end);
        while let Some((&from, _)) = self.0.range(start..end).next() {
            self.0.remove(&from);
        }
        self.0.insert(start, (end, value));
    }

    /// Calls `f` with the value of every interval in `span`. Intervals are first cut at the ends of `span`, and gaps
    /// get the value `empty()`.
    pub fn update(&mut self, span: Span, empty: impl Fn() -> T, mut f: impl FnMut(&mut T)) {
        if let Some(same) = self.exactly(span) {
            f(same);
            return;
        }
        let (start, end) = (u64::from(span.start), span.end());
        self.cut(start);
        self.cut(end);
        let (mut gaps, mut at) = (Vec::new(), start);
        for (&from, (to, value)) in self.0.range_mut(start..end) {
            gaps.push((at, from));
            at = *to;
            f(value);
        }
        gaps.push((at, end));
        for (from, to) in gaps.into_iter().filter(|(from, to)| from < to) {
            let mut value = empty();
            f(&mut value);
            self.0.insert(from, (to, value));
        }
    }

    /// Cuts the interval that contains `at` in two. The second interval starts at `at`.
    fn cut(&mut self, at: u64) {
        if let Some((_, (end, value))) = self.0.range_mut(..at).next_back()
            && *end > at
        {
            let second = (std::mem::replace(end, at), value.clone());
            self.0.insert(at, second);
        }
    }
}
