//! The best of several algorithms at one point of a sweep, compared with a baseline.

use std::collections::BTreeMap;

use serde::Serialize;
use unisono_algorithms::{Algorithm, AlgorithmError, Means, Params, find, short_name};
use unisono_cost::Time;

use crate::{
    PlanError, Problem, TimeSource, Timed,
    candidates::{Faults, Ranked, Refusals, no_candidate, rank},
    plan::Named,
    report::map,
};

/// One point of a sweep. `baseline_ratio` is the time of the baseline divided by the time of the best algorithm.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename = "SweepPoint")]
pub struct Point {
    pub shape: Vec<u32>,
    pub elements: u64,
    /// The name of the model that ranks the candidates: the requested model, otherwise the model of a plan for the same
    /// part.
    pub model: &'static str,
    /// The name of the fastest algorithm: as the user gave it, or, if the user gave no names, its short name. On a
    /// wafer, `chain` includes compositions of it.
    pub best: String,
    pub params: BTreeMap<String, String>,
    pub cycles: Option<f64>,
    pub seconds: f64,
    /// The source of the best time, as in a plan: only the best candidates are simulated.
    pub source: TimeSource,
    pub baseline: String,
    pub baseline_cycles: Option<f64>,
    pub baseline_seconds: f64,
    pub baseline_source: TimeSource,
    pub baseline_ratio: Option<f64>,
    pub cycles_by_algorithm: Option<BTreeMap<String, f64>>,
    pub seconds_by_algorithm: BTreeMap<String, f64>,
    pub source_by_algorithm: BTreeMap<String, TimeSource>,
}

/// Times candidates and the baseline. Without `names`, the candidates are those of a plan, and the best candidate of
/// each short name is used. A named algorithm is timed as in a plan that names it, with those of the given parameters
/// that it has. On a wafer, its other parameters have their defaults. Algorithms that do not support the case are left
/// out; if there are several names, algorithms that are slow to time are left out too. Without `baseline`, the
/// customary baseline of the machine is used.
///
/// # Errors
/// Returns an error if a name is unknown, no candidate is left, or the given baseline does not support the case.
pub fn sweep_point(
    problem: Problem,
    names: &[String],
    baseline: Option<&str>,
    params: &Params,
) -> Result<Point, PlanError> {
    let c = problem.collective;
    let target = &problem.target;
    let timed = if names.is_empty() {
        best_of_each(target.case(c).offers(), rank(&problem, params, None, Ranked::All, None)?.timed)
    } else {
        let alone = |name: &str| names.len() == 1 || baseline == Some(name);
        let (mut timed, mut refused, mut faults) = (Vec::new(), Refusals::new(), Faults::default());
        for name in names {
            match as_planned(&problem, name, params, alone(name)) {
                Ok(one) => timed.push((name.clone(), one)),
                Err(e @ PlanError::Algorithm(AlgorithmError::Unsupported { algorithm, .. })) => {
                    refused.entry(algorithm).or_insert(e);
                }
                Err(e) => faults.add(e)?,
            }
        }
        if timed.is_empty() {
            faults.fail()?;
            return Err(no_candidate(&problem, &Params::new(), refused));
        }
        faults.warn();
        timed
    };
    // Of equal times the first is chosen, so the order of the user's names decides. A plan lists its best candidate
    // first.
    let better = |a: &Time, b: &Time| !names.is_empty() && a.total_cmp(b).is_lt();
    let best = timed.iter().reduce(|best, t| if better(&t.1.time, &best.1.time) { t } else { best });
    let (name, best) = best.expect("there is a candidate");
    let against = baseline.unwrap_or_else(|| (target.kind().baseline)(c.kind));
    let alone = baseline.is_some() || names.len() == 1;
    let (baseline, reference) = match timed.iter().find(|(name, _)| name == against) {
        // If the baseline is a candidate, it has the same time as the candidate.
        Some((_, candidate)) => (against, candidate.clone()),
        // One rank sends no messages, so no other algorithm differs from the best candidate.
        None if c.ranks == 1 && find(against).is_ok() => (name.as_str(), best.clone()),
        None => match as_planned(&problem, against, params, alone) {
            Ok(mut reference) => {
                if best.source == TimeSource::Simulated && reference.source != best.source {
                    target.simulate_best(c, std::slice::from_mut(&mut reference), true)?;
                }
                (against, reference)
            }
            // If the customary baseline does not support the case, the best candidate replaces it.
            Err(PlanError::Algorithm(AlgorithmError::Unsupported { .. })) if baseline.is_none() => {
                (name.as_str(), best.clone())
            }
            Err(e) => return Err(e),
        },
    };
    let cycles_of = |(name, one): &(String, Timed)| Some((name.clone(), one.time.cycles?));
    Ok(Point {
        shape: target.shape(),
        elements: c.count(),
        model: target.model(),
        best: name.clone(),
        params: map(&best.params),
        cycles: best.time.cycles,
        seconds: best.time.seconds,
        source: best.source,
        baseline: baseline.to_owned(),
        baseline_cycles: reference.time.cycles,
        baseline_seconds: reference.time.seconds,
        baseline_source: reference.source,
        baseline_ratio: quotient(reference.time, best.time),
        cycles_by_algorithm: timed.iter().map(cycles_of).collect(),
        seconds_by_algorithm: timed.iter().map(|(n, t)| (n.clone(), t.time.seconds)).collect(),
        source_by_algorithm: timed.iter().map(|(n, t)| (n.clone(), t.source)).collect(),
    })
}

/// Times an algorithm as a plan that names it does, with those of the given parameters that it has. On a wafer, its
/// other parameters have their defaults. An algorithm that is slow to time is refused unless it is `alone`.
pub(crate) fn as_planned(problem: &Problem, name: &str, params: &Params, alone: bool) -> Result<Timed, PlanError> {
    let (target, c) = (&problem.target, problem.collective);
    let algorithm = find(name)?;
    let known = |k: &str| algorithm.info().composed || algorithm.info().params.iter().any(|p| p.name == k);
    let params = params.only(known);
    if !alone && let Ok((algorithm, chosen)) = target.resolve(c, name, &params) {
        let is_slow = |(algorithm, params): &(&'static dyn Algorithm, Params)| target.is_slow(c, *algorithm, params);
        let listed = || target.candidates(c, &params, Some(algorithm.name()), true);
        if is_slow(&(algorithm, chosen)) && listed().iter().all(is_slow) {
            let reason = "its schedule would have to be built to be timed, and is huge".to_owned();
            return Err(AlgorithmError::Unsupported { algorithm: algorithm.name(), reason }.into());
        }
    }
    // Papers on wafers compare algorithms at their defaults, such as an allreduce whose root is at the end of the line.
    let named = Named { algorithm: name, at_defaults: target.kind().offers.contains(&Means::Grid) };
    let found = crate::plan::timed(problem, Some(named), &params, None, Ranked::All)?;
    Ok(found.timed.into_iter().next().expect("a ranking has a candidate"))
}

/// Returns the first candidate of each short name in `ranked`, which lists the best first.
fn best_of_each(offers: &[Means], ranked: Vec<Timed>) -> Vec<(String, Timed)> {
    let mut first: Vec<(String, Timed)> = Vec::new();
    for timed in ranked {
        let name = short_name(timed.algorithm, offers, &timed.params);
        if first.iter().all(|(other, _)| *other != name) {
            first.push((name, timed));
        }
    }
    first
}

/// Returns `long` divided by `short`, computed from cycles if both have them, otherwise from seconds; 1 for equal
/// times, and `None` if only `short` is 0.
fn quotient(long: Time, short: Time) -> Option<f64> {
    let (long, short) = match (long.cycles, short.cycles) {
        (Some(long), Some(short)) => (long, short),
        _ => (long.seconds, short.seconds),
    };
    if long == short { Some(1.0) } else { (short > 0.0).then(|| long / short) }
}
