//! The rank whose times a report shows: of those that end last the one that computes longest, of these the first.
//!
//! Ranks that end together in a collective differ by rounding, so ends that differ by less than a millionth are equal.

/// Ends of two ranks that differ by less of the later one are equal.
const EQUAL: f64 = 1e-6;

/// Returns the place of the reported end. `computed` is the compute time of the rank or class of each place.
pub fn reported(ends: &[f64], computed: impl Fn(usize) -> f64) -> usize {
    let latest = ends.iter().copied().fold(0.0, f64::max) * (1.0 - EQUAL);
    let ties = (0..ends.len()).filter(|&at| ends[at] >= latest);
    ties.fold(None, |best: Option<(usize, f64)>, at| {
        let own = computed(at);
        best.filter(|&(_, most)| most >= own).or(Some((at, own)))
    })
    .map_or(0, |(at, _)| at)
}
