//! The search for the best length of segments and number of blocks, between and beyond the few values that algorithms
//! list. Numbers of chunks are not searched: algorithms for the links of a network list them in smaller steps, and each
//! number needs its own trees.
//!
//! From the best listed value of an algorithm, the pieces are halved, or doubled, while the time falls enough. The time
//! of a pipeline is a + b s + c / s for pieces of s bytes, so a value that is off by a factor f takes at most
//! (f + 1/f) / 2 times as long as the best one.

use std::collections::BTreeSet;

use unisono_algorithms::{Algorithm, Params, resolve};
use unisono_base::interrupt;
use unisono_cost::Time;

use crate::{
    PlanError, Problem, TimeSource, Timed,
    candidates::{Dropped, admit, time_within},
};

/// The search starts only if the best listed value of an algorithm takes at most this multiple of the best time. Listed
/// lengths differ by factors of 8.
pub(crate) const WORTH: f64 = 1.6;

/// The search of an algorithm ends at a time of more than this multiple of the time before it.
const GAIN: f64 = 0.99;

/// The parameters that set pieces, or name an algorithm with such a parameter.
const PARAMS: [&str; 3] = ["among", "blocks", "segment"];

/// Returns true if an algorithm may cut messages into other pieces.
pub(crate) fn are_cut(algorithm: &dyn Algorithm) -> bool {
    algorithm.info().params.iter().any(|param| PARAMS.contains(&param.name))
}

/// Adds candidates with other pieces than the `listed` ones, for algorithms whose best time is near that of all.
/// `suit` adds the parameters of a format; all candidates keep the parameters `wanted`. No more than the time `most` is
/// of use.
///
/// # Errors
///
/// Returns the errors of timing, except those of limits and of cases that are not supported.
pub(crate) fn add(
    problem: &Problem,
    wanted: &Params,
    suit: &dyn Fn(&'static dyn Algorithm, Params) -> Params,
    listed: usize,
    timed: &mut Vec<(usize, Timed)>,
    dropped: &mut Vec<Dropped>,
    most: Option<Time>,
) -> Result<(), PlanError> {
    let case = problem.target.case(problem.collective);
    let is_among = |one: &&Timed| problem.target.simulates(one.algorithm);
    let longest = most.map_or(f64::INFINITY, |most| most.seconds);
    let mut best =
        timed.iter().map(|(_, one)| one).filter(is_among).map(|one| one.time.seconds).fold(longest, f64::min);
    // For each algorithm, the place of its best candidate, the fastest first.
    let mut starts: Vec<usize> = (0..timed.len()).filter(|&at| timed[at].1.time.seconds <= WORTH * best).collect();
    starts.sort_by(|&a, &b| timed[a].1.time.total_cmp(&timed[b].1.time));
    let mut names = BTreeSet::new();
    starts.retain(|&at| names.insert(timed[at].1.algorithm.name()));
    for start in starts {
        for side in 0..2 {
            let (mut at, mut is_better) = (start, false);
            loop {
                interrupt::check();
                let Timed { algorithm, params, time, .. } = timed[at].1.clone();
                let Some(next) = algorithm.recut(&case, &params)[side].take() else { break };
                let is_wanted = wanted.iter().all(|(name, value)| next.get(name) == Some(value));
                let Ok((_, next)) = resolve(algorithm.name(), &case, &suit(algorithm, next)) else { break };
                let same = |one: &Dropped| (one.algorithm.name(), &one.params) == (algorithm.name(), &next);
                let is_known =
                    timed.iter().any(|(_, one)| (one.algorithm.name(), &one.params) == (algorithm.name(), &next));
                if !is_wanted
                    || is_known
                    || dropped.iter().any(same)
                    || problem.target.is_slow(problem.collective, algorithm, &next)
                    || admit(algorithm, &case, &next).is_err()
                {
                    break;
                }
                let place = listed + timed.len() + dropped.len();
                match time_within(problem, algorithm, &next, Some(time)) {
                    Ok(Some(one)) => {
                        // By the formula above, all further steps together gain less than this one. Times by messages
                        // are too rough for that: packets may choose among the candidates.
                        let is_rough = one.source == TimeSource::Messages;
                        let (now, gain) = (one.time.seconds, time.seconds - one.time.seconds);
                        is_better |= gain > 0.0;
                        timed.push((place, one));
                        if gain <= 0.0 || !is_rough && (now > GAIN * time.seconds || now - gain > best) {
                            break;
                        }
                        (at, best) = (timed.len() - 1, best.min(now));
                    }
                    Ok(None) => {
                        dropped.push(Dropped { at: place, algorithm, params: next, least: time.seconds });
                        break;
                    }
                    Err(PlanError::OverLimit(_)) => break,
                    Err(e) if e.is_unsupported() => break,
                    Err(e) => return Err(e),
                }
            }
            if is_better {
                break;
            }
        }
    }
    Ok(())
}
