//! The rank that a report shows. Among the ranks that end last, it is the first of those that compute longest.
//!
//! The ends of ranks that end together in a collective differ by rounding. So ends within a millionth are treated as
//! equal.

/// Two ends are treated as equal if their difference is at most this fraction of the latest end.
const EQUAL: f64 = 1e-6;

/// Returns the index in `ends` of the reported rank or class. `computed` returns the compute time of the rank or class
/// with an index.
pub fn reported(ends: &[f64], computed: impl Fn(usize) -> f64) -> usize {
    let latest = ends.iter().copied().fold(0.0, f64::max) * (1.0 - EQUAL);
    let ties = (0..ends.len()).filter(|&at| ends[at] >= latest);
    ties.fold(None, |best: Option<(usize, f64)>, at| {
        let own = computed(at);
        best.filter(|&(_, most)| most >= own).or(Some((at, own)))
    })
    .map_or(0, |(at, _)| at)
}
