//! The candidates of a problem and their times.
//!
//! Each kind of machine times candidates by its own method. Wafers use the algorithm's profile, which is a closed form,
//! or the built schedule of an algorithm without a profile. Networks use the messages of a small schedule, and the
//! profile of a large schedule. Switches that reduce use their registers. Endpoint machines simulate a small schedule,
//! and use the rounds of a large schedule. Tests compare closed forms with schedules or simulations. Candidates without
//! a closed form are timed in ascending order of their cost, until their estimated steps reach the limit. A remark
//! names the first candidate that is left out, and the number of such candidates.

use std::collections::BTreeMap;

use serde::Serialize;
use unisono_algorithms::{Algorithm, AlgorithmError, Case, Params, Size, algorithms, resolve};
use unisono_base::{
    interrupt,
    limits::{self, OverLimit},
    parallel,
};
use unisono_cost::Time;
use unisono_lower::{Estimate, File, Placed};

use crate::{PlanError, Problem, Refined, Target, compositions, expressible::suited, format::Format, pieces};

/// The method by which a time was computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeSource {
    /// The cost terms of phases, in closed form or measured from the schedule.
    Terms,
    /// The algorithm's rounds in closed form, with all messages at the costs of the machine's outermost level. On
    /// machines whose switches reduce, these are the rounds of an algorithm on the cores.
    Rounds,
    /// On a network: the sizes, senders and receivers of messages in closed form, routed through the network.
    Exchanges,
    /// On a network: the time of messages along trees in closed form, from the loads of the trees on links.
    Trees,
    /// On a network: a timetable of the schedule's messages on links. If the schedule is huge, rounds of messages.
    Messages,
    /// On switches that reduce: the slowest embedding in the configured registers, by its latency alpha and its time
    /// beta for each element.
    Registers,
    /// A simulation of the schedule by the machine's model.
    Simulated,
    /// For a target with thread blocks: a simulation of the draft of the file, in coarse packets. On a network: a
    /// simulation of the schedule in coarse packets, or the time by messages, multiplied by the least quotient of
    /// simulated time and time by messages that was found for the same algorithm.
    Estimated,
}

/// An algorithm with its parameters and its time.
#[derive(Clone)]
pub struct Timed {
    pub algorithm: &'static dyn Algorithm,
    pub params: Params,
    pub time: Time,
    pub source: TimeSource,
    /// On a wafer, the cost terms from which the model computes the time. They are kept if a simulated time replaces
    /// the model's time. `None` on other machines.
    pub estimate: Option<Estimate>,
}

/// The bytes for each instruction with the streams that it writes, to build and prove a schedule. Measured are up to
/// 77. If instructions are made in order ([`Size::in_order`]), those of a rank are a few runs: 24 are measured for a
/// ring on 4,096 ranks. The proof itself counts larger contents.
const INSTRUCTION_BYTES: u128 = 80;
const IN_ORDER_BYTES: u128 = 30;
/// The elementary steps for each instruction of a schedule that is built.
const INSTRUCTION_STEPS: u128 = 200;

/// The most simulator steps of all finer times of a plan's best candidates (about 0.6 s).
const MOST_REFINED: u128 = 1 << 28;

/// A candidate behind the best is also timed by packets if its time is at most this multiple of the best time. If all
/// messages of an exchange leave at once, the timetable gives times that are up to a tenth too long.
const CLOSE: f64 = 1.05;
/// The most simulator steps of candidates close to the best (about 0.01 s).
const MOST_CLOSE: u128 = 1 << 22;

/// A candidate may be the best if its prediction is at most this multiple of the best simulated time. For example, a
/// tree on three PEs is predicted to take 18 cycles, but takes 15.
pub(crate) const NEAR: f64 = 1.2;

/// The most instructions of a schedule, regardless of the limits.
const MOST_INSTRUCTIONS: u64 = 1 << 27;

/// Checks a schedule of known size against the limits before it is built.
pub(crate) fn admit(algorithm: &dyn Algorithm, case: &Case, params: &Params) -> Result<(), PlanError> {
    let Size { instructions: Some(instructions), in_order, .. } = algorithm.size(case, params) else { return Ok(()) };
    if instructions > MOST_INSTRUCTIONS {
        let reason = format!("it would take about {instructions} instructions; at most {MOST_INSTRUCTIONS} are made");
        return Err(AlgorithmError::Unsupported { algorithm: algorithm.name(), reason }.into());
    }
    let instructions = u128::from(instructions);
    let bytes = if in_order { IN_ORDER_BYTES } else { INSTRUCTION_BYTES };
    Ok(limits::admit("the schedule", bytes * instructions, INSTRUCTION_STEPS * instructions)?)
}

/// Builds the schedule of an algorithm.
///
/// # Errors
/// Returns an error if the schedule is too large for any machine, or exceeds a limit.
pub(crate) fn build(algorithm: &dyn Algorithm, case: &Case, params: &Params) -> Result<Placed, PlanError> {
    admit(algorithm, case, params)?;
    Ok(algorithm.build(case, params)?)
}

/// Returns the algorithms that support a case, with the parameters that are worth ranking. Each candidate gets the
/// parameters `wanted`. Candidates with other values of these parameters, or without one of them, are left out.
pub(crate) fn candidates(case: &Case, wanted: &Params) -> Vec<(&'static dyn Algorithm, Params)> {
    candidates_among(case, wanted, false, |_| true)
}

/// Returns the candidates of [`candidates`] whose algorithm a predicate accepts, with those that only a plan of a
/// `named` algorithm tries.
pub(crate) fn candidates_among(
    case: &Case,
    wanted: &Params,
    named: bool,
    is_among: impl Fn(&dyn Algorithm) -> bool,
) -> Vec<(&'static dyn Algorithm, Params)> {
    let makes = |a: &&'static dyn Algorithm| a.info().collectives.contains(&case.collective.kind) && is_among(*a);
    let of = |algorithm: &'static dyn Algorithm| {
        let params = if named { algorithm.candidates_if_named(case) } else { algorithm.candidates(case) };
        params.into_iter().map(move |one| (algorithm, one))
    };
    let listed: Vec<(&'static dyn Algorithm, Params)> =
        algorithms().into_iter().filter(makes).inspect(|_| interrupt::check()).flat_map(of).collect();
    // Support is checked in parallel, because the check of some algorithms searches for trees or rates.
    let supported = |(algorithm, params): &(&'static dyn Algorithm, Params)| {
        interrupt::check();
        let merged = wanted.iter().fold(params.clone(), |merged, (k, v)| merged.with(k, v));
        let contradicts = params.iter().any(|(k, v)| merged.get(k) != Some(v));
        let (same, merged) = resolve(algorithm.name(), case, &merged).ok()?;
        (!contradicts && same.name() == algorithm.name()).then_some((*algorithm, merged))
    };
    parallel::map(&listed, supported).flatten().collect()
}

/// For each algorithm that does not support a problem, by name, its first error.
pub(crate) type Refusals = BTreeMap<&'static str, PlanError>;

/// The name of the work of [`crate::Target::time_within`] in messages about limits.
pub(crate) const TIMING: &str = "the timing of candidates";

/// The candidates that a ranking must contain.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Ranked {
    All,
    /// All candidates, and those that only the plan of a named algorithm tries, among which are further orders of sums.
    AllOrders,
    /// The best candidate, and any others that were timed to find it.
    Best,
    /// The best candidate if it takes less than a time. There may be none.
    BestWithin(Time),
    /// The candidates that take less than a time. There may be none.
    Within(Time),
}

/// Timed candidates in the order of [`sort`].
pub(crate) struct Ranking {
    pub timed: Vec<Timed>,
    /// True if the choice of the best candidate was not checked, because a finer model would take too many steps or
    /// [`Target::simulate_best`] left out candidates near the best.
    pub is_unchecked: bool,
    /// A sentence that names the candidates that were left out because their timing takes long.
    pub untimed: Option<String>,
}

/// Times the candidates of a problem and ranks them.
///
/// Candidates are left out if they do not support the case, are too large to build, exceed a limit, take long to time,
/// or are a user's own function that fails. Cheap candidates are timed first, so that a limit excludes few candidates.
/// `only` restricts the ranking to one algorithm.
///
/// # Errors
/// Returns an error if no candidate is left, or a candidate fails for another reason.
pub(crate) fn rank(
    problem: &Problem,
    wanted: &Params,
    form: Option<&Format>,
    ranked: Ranked,
    only: Option<&str>,
) -> Result<Ranking, PlanError> {
    let is_free = only.is_none_or(|name| name == compositions::NAME) && wanted.is_empty();
    let is_composed = is_free && !matches!(form, Some(Format::Rules { .. }));
    rank_with(problem, wanted, form, ranked, only, if is_composed { 2 } else { 0 })
}

/// Times candidates of a part of a composition, as many as `ranked` requires. The candidates include compositions of at
/// most `composed` collectives.
///
/// # Errors
///
/// Returns the errors of [`rank`].
pub(crate) fn rank_part(problem: &Problem, ranked: Ranked, composed: usize) -> Result<Vec<Timed>, PlanError> {
    Ok(rank_with(problem, &Params::new(), None, ranked, None, composed)?.timed)
}

fn rank_with(
    problem: &Problem,
    wanted: &Params,
    form: Option<&Format>,
    ranked: Ranked,
    only: Option<&str>,
    composed: usize,
) -> Result<Ranking, PlanError> {
    let (target, c) = (&problem.target, problem.collective);
    let is_named = only.is_some() || ranked == Ranked::AllOrders && c.kind.reduces();
    let listed = target.candidates(c, wanted, only, is_named);
    let mut listed: Vec<_> = listed.into_iter().enumerate().collect();
    let case = target.case(c);
    let suit = |algorithm: &'static dyn Algorithm, params: Params| match form {
        Some(form) => suited(form.params(), &case, algorithm, params),
        None => params,
    };
    for (_, (algorithm, params)) in &mut listed {
        *params = suit(*algorithm, std::mem::take(params));
    }
    listed.sort_by_cached_key(|(_, (algorithm, params))| target.steps(c, *algorithm, params));
    let (mut timed, mut refused, mut left_out) = (Vec::new(), Refusals::new(), LeftOut::default());
    let mut faults = Faults::default();
    let limit = if let Ranked::Within(most) | Ranked::BestWithin(most) = ranked { Some(most) } else { None };
    let (mut slow, mut most, mut dropped) = (Vec::new(), limit, Vec::new());
    let time = |(_, (algorithm, params)): &(usize, (&'static dyn Algorithm, Params)), most: Option<Time>| {
        (!target.is_slow(c, *algorithm, params)).then(|| time_within(problem, *algorithm, params, most))
    };
    // If all candidates are required, no time stops the timing of another candidate, so candidates are timed in
    // parallel.
    let are_all = matches!(ranked, Ranked::All | Ranked::AllOrders);
    let mut all = are_all.then(|| parallel::map(&listed, |one| time(one, None)));
    for one in &listed {
        interrupt::check();
        let (at, (algorithm, params)) = one.clone();
        // An algorithm whose listed lengths of pieces take longer than the best candidate may be the best with other
        // lengths.
        let factor = if pieces::are_cut(algorithm) { pieces::WORTH } else { 1.0 };
        let longest = most.map(|most| Time { seconds: most.seconds * factor, ..most });
        let found = match &mut all {
            Some(all) => all.next().expect("a value for each candidate"),
            None => time(one, longest),
        };
        let Some(found) = found else {
            slow.push(algorithm.name());
            continue;
        };
        match found {
            Ok(Some(one)) => {
                // A candidate that no simulator runs is ranked last, so its time must not cut off others.
                if matches!(ranked, Ranked::Best | Ranked::BestWithin(_)) && target.simulates(algorithm) {
                    most = Some(
                        most.map_or(one.time, |most| if one.time.seconds < most.seconds { one.time } else { most }),
                    );
                }
                timed.push((at, one));
            }
            Ok(None) => {
                dropped.push(Dropped { at, algorithm, params, least: longest.map_or(0.0, |most| most.seconds) })
            }
            Err(e @ PlanError::Algorithm(AlgorithmError::Unsupported { .. } | AlgorithmError::Build(_))) => {
                refused.entry(algorithm.name()).or_insert(e);
            }
            Err(PlanError::OverLimit(over)) => left_out.add(algorithm, &params, over),
            Err(e) => faults.add(e)?,
        }
    }
    pieces::add(problem, wanted, &suit, listed.len(), &mut timed, &mut dropped, most)?;
    compositions::add(problem, &mut timed, listed.len() + dropped.len(), composed, most)?;
    if timed.is_empty() && dropped.is_empty() && !slow.is_empty() {
        // If all schedules are huge, the first candidate that can be timed is chosen.
        for (at, (algorithm, params)) in &listed {
            if let Ok(Some(one)) = time_within(problem, *algorithm, params, None) {
                slow.retain(|&name| name != algorithm.name());
                timed.push((*at, one));
                break;
            }
        }
    }
    if timed.is_empty() && dropped.is_empty() {
        faults.fail()?;
        let left_out = left_out.first.map(|(_, over)| over.into());
        return Err(left_out.unwrap_or_else(|| no_candidate(problem, wanted, refused)));
    }
    faults.warn();
    left_out.remark("left out");
    let untimed = (!slow.is_empty()).then(|| {
        slow.sort_unstable();
        slow.dedup();
        let given = if only.is_some() { "with all its parameters --param" } else { "--algorithm" };
        format!("candidates with huge schedules are not timed; {given} times one of them: {}", slow.join(", "))
    });
    let is_unchecked = refine(problem, &mut timed, &mut dropped)?;
    // The later sort by time is stable. So of candidates with equal times, those that give all ranks the same bits come
    // first, and the others keep the order of the list.
    let case = target.case(c);
    timed.sort_by_key(|(at, one)| (!one.algorithm.gives_equal_bits(&case, &one.params), *at));
    let mut timed: Vec<_> = timed.into_iter().map(|(_, one)| one).collect();
    sort(target.as_ref(), &mut timed);
    let is_unsimulated = target.simulate_best(c, &mut timed, form.and_then(Format::emitter).is_none())?;
    sort(target.as_ref(), &mut timed);
    Ok(Ranking { timed, is_unchecked: is_unchecked || is_unsimulated, untimed })
}

/// Times one candidate, and refines its time like that of the best candidate of a ranking.
pub(crate) fn named(
    problem: &Problem,
    algorithm: &'static dyn Algorithm,
    params: &Params,
) -> Result<Ranking, PlanError> {
    let mut timed = vec![(0, time_and_spare(problem, algorithm, params)?)];
    let is_unchecked = refine(problem, &mut timed, &mut Vec::new())?;
    let mut timed: Vec<_> = timed.into_iter().map(|(_, one)| one).collect();
    problem.target.simulate_best(problem.collective, &mut timed, false)?;
    Ok(Ranking { timed, is_unchecked, untimed: None })
}

/// A candidate whose timing was stopped: its position in the list, and a lower bound on its time in seconds.
pub(crate) struct Dropped {
    pub at: usize,
    pub algorithm: &'static dyn Algorithm,
    pub params: Params,
    pub least: f64,
}

/// For each algorithm, the least quotient, at least 1, of the time by packets and the time by messages. For other
/// parameters of the same algorithm, the time by messages is expected to be too short by this factor. Candidates with
/// other pieces are not, because pieces prevent the full buffers for which packets wait.
#[derive(Default)]
struct Factors(BTreeMap<(&'static str, Option<String>), f64>);

impl Factors {
    fn key(one: &Timed) -> (&'static str, Option<String>) {
        (one.algorithm.name(), one.params.get("pieces").map(str::to_owned))
    }

    fn learn(&mut self, one: &Timed, finer: Time) {
        if one.source == TimeSource::Messages {
            let factor = (finer.seconds / one.time.seconds).max(1.0);
            self.0.entry(Self::key(one)).and_modify(|least| *least = least.min(factor)).or_insert(factor);
        }
    }

    fn expected(&self, one: &Timed) -> f64 {
        let is_coarse = one.source == TimeSource::Messages;
        let factor = self.0.get(&Self::key(one)).filter(|_| is_coarse).copied().unwrap_or(1.0);
        one.time.seconds * factor
    }

    /// Replaces times by expected times. Returns true if a candidate may be the best although its expected time is not:
    /// its replaced time was shorter than the best expected time.
    fn apply(&self, timed: &mut [(usize, Timed)]) -> bool {
        let best = timed.iter().map(|(_, one)| self.expected(one)).fold(f64::INFINITY, f64::min);
        let mut hides = false;
        for (_, one) in timed {
            let expected = self.expected(one);
            if expected > one.time.seconds {
                hides |= one.time.seconds < best;
                (one.time.seconds, one.source) = (expected, TimeSource::Estimated);
            }
        }
        hides
    }
}

/// Times the best candidate by a finer model, and repeats this until the best candidate has no finer time. A candidate
/// whose time is too short is ranked first, so the best time is the most likely to be wrong. Then times the candidates
/// close behind the best, because their times may be too long. Returns true if another candidate may be the best,
/// because the finer model would take too many steps.
fn refine(problem: &Problem, timed: &mut Vec<(usize, Timed)>, dropped: &mut Vec<Dropped>) -> Result<bool, PlanError> {
    let target = &problem.target;
    let (mut left, mut factors) = (MOST_REFINED, Factors::default());
    let is_unchecked = loop {
        interrupt::check();
        let rank = |(at, one): &(usize, Timed)| (!target.simulates(one.algorithm), factors.expected(one), *at);
        let order = |a: &(usize, Timed), b: &(usize, Timed)| {
            let ((last, a, at), (other, b, then)) = (rank(a), rank(b));
            last.cmp(&other).then(a.total_cmp(&b)).then(at.cmp(&then))
        };
        let Some((at, best)) = timed.iter_mut().min_by(|a, b| order(a, b)) else { return Ok(false) };
        let (time, source) = match refined(problem, best, &mut left)? {
            Refined::Finer(time, source) => (time, source),
            Refined::Agrees => {
                let (at, seconds) = (*at, best.time.seconds);
                factors.learn(best, best.time);
                let mut others: Vec<_> = timed.iter_mut().filter(|one| one.0 != at).map(|one| &mut one.1).collect();
                refine_within(problem, &mut others, seconds, &mut left, &mut factors)?;
                refine_within(problem, &mut others, seconds * CLOSE, &mut { MOST_CLOSE }, &mut factors)?;
                break false;
            }
            Refined::TooLarge => break true,
        };
        factors.learn(best, time);
        (best.time, best.source) = (time, source);
        let least = timed.iter().map(|(_, one)| one.time).min_by(Time::total_cmp);
        let Some(least) = least else { return Ok(false) };
        // A candidate whose timing was stopped at the previous best time may be faster than the refined best.
        let (again, rest): (Vec<_>, Vec<_>) =
            std::mem::take(dropped).into_iter().partition(|one| one.least < least.seconds);
        *dropped = rest;
        for one in again {
            match time_within(problem, one.algorithm, &one.params, Some(least)) {
                Ok(Some(found)) => timed.push((one.at, found)),
                Ok(None) => dropped.push(Dropped { least: least.seconds, ..one }),
                Err(PlanError::OverLimit(_)) => {}
                Err(e) => return Err(e),
            }
        }
    };
    Ok(factors.apply(timed) | is_unchecked)
}

/// Times a candidate by the finer model if `left` steps are enough.
fn refined(problem: &Problem, one: &Timed, left: &mut u128) -> Result<Refined, PlanError> {
    match problem.target.refined(problem.collective, one, left) {
        // Closed forms also give times of schedules that are too large to build, and timetables give times beyond the
        // clock of any simulator.
        Err(PlanError::OverLimit(_) | PlanError::Algorithm(_) | PlanError::NotTimed { .. }) => Ok(Refined::TooLarge),
        found => found,
    }
}

/// Times candidates by the finer model as long as steps remain: those that were timed by messages and take at most
/// `most` seconds.
fn refine_within(
    problem: &Problem,
    timed: &mut [&mut Timed],
    most: f64,
    left: &mut u128,
    factors: &mut Factors,
) -> Result<(), PlanError> {
    for one in timed.iter_mut().filter(|one| one.source == TimeSource::Messages && one.time.seconds <= most) {
        interrupt::check();
        match refined(problem, one, left)? {
            Refined::Finer(time, source) => {
                factors.learn(one, time);
                (one.time, one.source) = (time, source);
            }
            Refined::Agrees => factors.learn(one, one.time),
            Refined::TooLarge => break,
        }
    }
    Ok(())
}

/// Simulates candidates in the order of their predictions, until the next prediction is [`NEAR`] times the best
/// simulated time. `file` builds the simulated schedule, and all simulations take at most `left` steps. Returns the
/// number of simulated candidates, which are the first in the list. The errors of predictions differ between
/// algorithms, so the candidate with the best prediction may not be the best.
pub(crate) fn simulate_nearest<'a>(
    target: &dyn Target,
    candidates: impl Iterator<Item = &'a mut Timed>,
    mut left: f64,
    file: &dyn Fn(&Timed) -> Result<File, PlanError>,
) -> Result<usize, PlanError> {
    let (mut best, mut count) = (None::<Time>, 0);
    for one in candidates {
        interrupt::check();
        if best.is_some_and(|best| one.time.seconds >= best.seconds * NEAR) {
            break;
        }
        let Some(time) = target.simulated(one.time, &mut left, &|| file(one))? else { break };
        (one.time, one.source) = (time, TimeSource::Simulated);
        best = Some(best.map_or(time, |best| if time.total_cmp(&best).is_lt() { time } else { best }));
        count += 1;
    }
    Ok(count)
}

/// Sorts candidates by time. Candidates with only an estimate come after candidates with times. Candidates that no
/// simulator runs come last.
pub(crate) fn sort(target: &dyn Target, timed: &mut [Timed]) {
    let last = |timed: &Timed| (!target.simulates(timed.algorithm), target.is_estimated(timed));
    timed.sort_by(|a, b| last(a).cmp(&last(b)).then(a.time.total_cmp(&b.time)));
}

/// Times a candidate. Returns an error if the limit on steps would not admit the build of its schedule after the
/// timing, or an error of [`crate::Target::time_within`].
pub(crate) fn time_and_spare(
    problem: &Problem,
    algorithm: &'static dyn Algorithm,
    params: &Params,
) -> Result<Timed, PlanError> {
    time_within(problem, algorithm, params, None).map(|timed| timed.expect("no time is longer"))
}

/// Times a candidate like [`time_and_spare`]. `None` if the target finds that the candidate takes longer than [`CLOSE`]
/// times `most`.
pub(crate) fn time_within(
    problem: &Problem,
    algorithm: &'static dyn Algorithm,
    params: &Params,
    most: Option<Time>,
) -> Result<Option<Timed>, PlanError> {
    let (target, c) = (&problem.target, problem.collective);
    limits::check(TIMING, 0, 2 * target.steps(c, algorithm, params))?;
    let most = most.map(|most| Time { seconds: most.seconds * CLOSE, ..most });
    target.time_within(c, algorithm, params.clone(), most)
}

/// Candidates whose timing exceeds a limit: the first of them, and their number.
#[derive(Default)]
pub(crate) struct LeftOut {
    first: Option<(String, OverLimit)>,
    count: usize,
}

impl LeftOut {
    pub(crate) fn add(&mut self, algorithm: &dyn Algorithm, params: &Params, over: OverLimit) {
        self.first.get_or_insert_with(|| (format!("{} {params}", algorithm.name()), over));
        self.count += 1;
    }

    /// Reports in a remark the first of the candidates and their number, if there are any. `what` is the reason why
    /// they were left out.
    pub(crate) fn remark(self, what: &str) {
        if let Some((name, over)) = self.first {
            let name = name.trim_end();
            limits::remark(|| format!("candidates {what}: {}, the first {name}, with which {over}", self.count));
        }
    }
}

/// The errors of candidates that are the user's own functions. Such candidates are left out of the ranking.
#[derive(Default)]
pub(crate) struct Faults(Vec<PlanError>);

impl Faults {
    /// Stores the error of a user's own function.
    ///
    /// # Errors
    ///
    /// Returns the error itself if it does not come from a user's own function.
    pub(crate) fn add(&mut self, error: PlanError) -> Result<(), PlanError> {
        if let PlanError::Algorithm(AlgorithmError::Own { .. }) = error {
            self.0.push(error);
            return Ok(());
        }
        Err(error)
    }

    /// Returns the first error, if there is one. Callers use it if there is no other candidate.
    pub(crate) fn fail(&mut self) -> Result<(), PlanError> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0.swap_remove(0)) }
    }

    /// Prints each error as a warning.
    pub(crate) fn warn(self) {
        self.0.iter().for_each(|fault| limits::warn(format!("left out: {fault}")));
    }
}

/// Returns the error for a problem without candidates, made from the errors of the algorithms.
pub(crate) fn no_candidate(problem: &Problem, wanted: &Params, mut refused: Refusals) -> PlanError {
    if refused.len() == 1
        && let Some((_, only)) = refused.pop_first()
    {
        return only;
    }
    let reasons = refused.values().map(|reason| format!("; {reason}"));
    let wanted = (!wanted.is_empty()).then(|| format!(" with {wanted}"));
    let shape = problem.target.shape().iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
    PlanError::NoCandidate {
        kind: problem.collective.kind.to_string(),
        shape,
        machine: problem.target.machine().name().to_owned(),
        hint: wanted.into_iter().chain(reasons).collect(),
    }
}
