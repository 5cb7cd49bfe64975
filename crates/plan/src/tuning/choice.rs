//! The choice of a contender for each size and number of ranks, from times at a few sizes and numbers of ranks.
//!
//! A choice compares *deciding times*. The deciding time of the library is its measured time. The deciding time of a
//! schedule is its measured time if the schedule was clearly faster than the library, in most rounds; otherwise it is
//! at least the library's time. Between two measured numbers of ranks, a schedule's time is the prediction of its model
//! times a factor, interpolated from the quotients of measured and predicted times. The library has no model here, so
//! its time itself is interpolated. Both interpolations are linear in the logarithms of ranks and time.
//!
//! For ascending sizes, the choice is the sequence of least loss, in which each change costs a factor of [`CLEARLY`]. A
//! chosen contender never takes longer than [`CLEARLY`] times the best contender, so there is no cliff from n to n + 1
//! ranks: on n + 1 ranks, the choice takes at most [`CLEARLY`] times as long as the choice of n ranks. Between two
//! sizes with different choices there is one boundary, at which both choices take equally long.

use std::collections::BTreeMap;

use unisono_base::rounded;

/// A schedule may replace the library if the library's time, divided by the schedule's median time, is above this.
pub const CLEARLY: f64 = 1.05;
/// The fraction of the rounds that the schedule must win.
const MOSTLY: (u32, u32) = (5, 6);

/// A contender at a size. The library is first in the order, so it is chosen if times are equal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Contender {
    /// The MPI library's own choice of algorithm.
    Library,
    Algorithm(&'static str),
}

impl Contender {
    pub fn name(self) -> &'static str {
        match self {
            Self::Library => "library",
            Self::Algorithm(name) => name,
        }
    }
}

/// The deciding times on one number of ranks, by contender: seconds at each size, or `None` if the contender does not
/// serve the size. The library has a time at every size.
pub type Times = BTreeMap<Contender, Vec<Option<f64>>>;

/// Returns the deciding time of a schedule that took `seconds` seconds and was faster than the library in `won` of
/// `rounds` rounds. The library took `library` seconds.
pub fn deciding(seconds: f64, won: u32, rounds: u32, library: f64) -> f64 {
    let mostly = u64::from(MOSTLY.1) * u64::from(won) >= u64::from(MOSTLY.0) * u64::from(rounds);
    if seconds * CLEARLY < library && mostly { seconds } else { seconds.max(library) }
}

/// Returns the deciding times on a number of ranks between two measured numbers.
///
/// `models` are the predicted times on the lower number, on the higher number, and on `ranks`. A schedule that lacks
/// one of them has no time.
pub fn between(ranks: u32, low: (u32, &Times), high: (u32, &Times), models: [&Times; 3]) -> Times {
    let ((first, lows), (last, highs)) = (low, high);
    let share = (f64::from(ranks) / f64::from(first)).ln() / (f64::from(last) / f64::from(first)).ln();
    let interpolated = |name: Contender, size: usize| {
        let (a, b) = (lows[&name][size]?, highs[&name][size]?);
        let [here, there, factor] = match name {
            Contender::Library => [1.0; 3],
            Contender::Algorithm(_) => {
                let of = |model: &Times| (*model.get(&name)?.get(size)?).filter(|&time| time > 0.0);
                [of(models[0])?, of(models[1])?, of(models[2])?]
            }
        };
        Some(factor * ((1.0 - share) * (a / here).ln() + share * (b / there).ln()).exp())
    };
    let time = |name: Contender, size: usize| {
        let (time, library) = (interpolated(name, size)?, interpolated(Contender::Library, size)?);
        // A schedule that was slower than the library at both ends is not faster between them, even if its model
        // predicts so.
        let wins = [lows, highs].iter().any(|ends| ends[&name][size] < ends[&Contender::Library][size]);
        Some(if wins || name == Contender::Library { time } else { time.max(library) })
    };
    let both = lows.iter().filter(|(name, _)| highs.contains_key(name));
    both.map(|(&name, times)| (name, (0..times.len()).map(|size| time(name, size)).collect())).collect()
}

/// Chooses the contender of each size by the sequence of least loss. If losses are equal, chooses the library.
pub fn choose(times: &Times) -> Vec<Contender> {
    let sizes = times.get(&Contender::Library).map_or(0, Vec::len);
    // For each contender, the best sequence that ends with the contender, and the loss of this sequence.
    let mut best: Vec<(f64, Vec<Contender>)> = vec![(0.0, Vec::new())];
    for size in 0..sizes {
        let here = || times.iter().filter_map(|(&name, times)| Some((name, times[size]?)));
        let least = here().map(|(_, time)| time).fold(f64::INFINITY, f64::min);
        let extended = here().filter(|&(_, time)| time <= CLEARLY * least).map(|(name, time)| {
            let change = |path: &[Contender]| if path.last().is_none_or(|&l| l == name) { 0.0 } else { CLEARLY.ln() };
            let options = best.iter().map(|(cost, path)| (cost + change(path), path));
            let (cost, path) = options.min_by(|a, b| a.0.total_cmp(&b.0)).expect("a sequence to every size");
            (cost + (time / least).ln(), path.iter().copied().chain([name]).collect())
        });
        best = extended.collect();
    }
    best.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).expect("the library serves every size").1
}

/// Returns the last size, in bytes, of the first of two choices: the size at which straight lines through their times
/// (in logarithms) cross, or the geometric mean of both sizes if the lines do not cross between them. `one` and `other`
/// are the times of the first and the second choice at both sizes.
pub fn boundary(sizes: (u64, u64), one: (f64, f64), other: (f64, f64)) -> u64 {
    let (first, last) = sizes;
    let (gain_first, gain_last) = ((other.0 / one.0).ln(), (one.1 / other.1).ln());
    let crosses = gain_first > 0.0 && gain_last > 0.0;
    let share = if crosses { gain_first / (gain_first + gain_last) } else { 0.5 };
    // The addend 1e-9 corrects a value that rounding has put just below a whole number.
    let at = rounded((first as f64 * (last as f64 / first as f64).powf(share) + 1e-9).floor());
    at.min(last - 1).max(first)
}
