//! The forest of the first of several groups, for use by all groups.
//!
//! Forests of more chunks are tried as long as each is 5 % faster than the one before. If a forest of few chunks in all
//! groups keeps links busy for too long, no further forest is searched for: more chunks hardly change the load of all
//! groups on a link.

use std::sync::Arc;

use unisono_algorithms::{Case, Params, ranks::shapes::chunk_counts, resolve};
use unisono_base::interrupt::check;
use unisono_cost::Time;
use unisono_workload::Groups;

use super::{
    super::shared::{MOST_BUILT, SharedNetwork},
    apart::{WORTH, shared_seconds},
};
use crate::{Problem, Timed};

pub(super) const FOREST: &str = "forest";

/// The most instructions of the forests of all groups in one simulation.
const MOST_OF_ALL: u64 = 1 << 21;

/// The number of trees of a small forest. Its loads on links represent those of forests with more trees.
const TELLING: u32 = 16;

/// The least expected quotient of the busy times of links with a forest of many chunks and of few chunks. Measured
/// quotients are 1.0 to 1.11 (benches/results/forests.csv).
const OF_MORE: f64 = 0.9;

/// A search for forests of groups of equal size.
pub(super) struct Groves<'a> {
    pub shared: &'a SharedNetwork,
    pub groups: &'a Arc<Groups>,
    /// The collective of the first group.
    pub problem: &'a Problem,
    /// A lower bound of the time of each group, in seconds.
    pub bound_seconds: f64,
}

impl Groves<'_> {
    /// Returns the fastest forest of the first group alone; `None` if no forest takes at most `most_seconds`.
    pub fn best(&self, most_seconds: f64) -> Option<Timed> {
        let (target, collective) = (&self.problem.target, self.problem.collective);
        let case = target.case(collective);
        let counts = chunk_counts(&case);
        if !counts.is_empty() && self.least_seconds(&case) > most_seconds {
            return None;
        }
        let mut best: Option<Timed> = None;
        for chunks in counts {
            check();
            let Ok((algorithm, params)) = resolve(FOREST, &case, &with_chunks(chunks)) else { continue };
            let instructions = algorithm.size(&case, &params).instructions;
            let is_large = |n: u64| n > MOST_BUILT || n.saturating_mul(self.groups.len() as u64) > MOST_OF_ALL;
            if instructions.is_none_or(is_large) {
                break;
            }
            let most = best.as_ref().map_or(most_seconds, |best| best.time.seconds);
            let timed = target.time_within(collective, algorithm, params, Some(Time::from_ns(most * 1e9)));
            let found = timed.ok().flatten().filter(|found| found.time.seconds <= most);
            let is_last = best
                .as_ref()
                .is_some_and(|best| found.as_ref().is_none_or(|found| found.time.seconds * WORTH > best.time.seconds));
            best = found.or(best);
            if is_last {
                break;
            }
        }
        best
    }

    /// Returns a time in seconds; no forest of all groups is expected to be faster.
    fn least_seconds(&self, case: &Case) -> f64 {
        let c = &case.collective;
        let trees = if c.kind.has_root() { 1 } else { c.ranks };
        let found = resolve(FOREST, case, &with_chunks(TELLING.div_ceil(trees)));
        let exchanges = found.map(|(algorithm, params)| SharedNetwork::exchanges(algorithm, case, &params));
        let Ok(Ok(exchanges)) = exchanges else { return self.bound_seconds };
        self.bound_seconds + OF_MORE * shared_seconds(&self.shared.group_loads(&exchanges, self.groups))
    }
}

fn with_chunks(chunks: u32) -> Params {
    Params::new().with("chunks", chunks)
}
