//! The best of several algorithms at one point of a sweep, beside a baseline.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;
use unisono_algorithms::{AlgorithmError, Params, find};
use unisono_cost::Time;

use crate::{
    PlanError, Problem, Timed,
    candidates::{no_candidate, sort},
    report::map,
};

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Point {
    pub shape: Vec<u32>,
    pub elements: u32,
    /// As the user named it.
    pub best: String,
    pub params: BTreeMap<String, String>,
    pub cycles: Option<f64>,
    pub seconds: f64,
    pub baseline: String,
    pub baseline_cycles: Option<f64>,
    pub baseline_seconds: f64,
    pub baseline_ratio: Option<f64>,
    pub cycles_by_algorithm: Option<BTreeMap<String, f64>>,
    pub seconds_by_algorithm: BTreeMap<String, f64>,
}

/// Times every algorithm of `names` (by default those that the machine sweeps) at its best parameters, and the
/// baseline. Leaves out algorithms that do not support the case.
///
/// # Errors
/// Unknown names, or no name that supports the case.
pub fn sweep_point(
    mut problem: Problem,
    names: &[String],
    baseline: Option<&str>,
    params: &Params,
) -> Result<Point, PlanError> {
    Arc::get_mut(&mut problem.target).expect("only the problem holds its target").choose_common_model();
    let c = problem.collective;
    let target = &problem.target;
    let swept: Vec<String> = match names {
        [] => target.swept(c).into_iter().map(str::to_owned).collect(),
        names => names.to_vec(),
    };
    let alone = |name: &str| swept.len() == 1 || baseline == Some(name);
    let one = |name: &str, params: &Params| -> Result<Timed, PlanError> {
        let (algorithm, params) = target.resolve(c, name, params)?;
        if !alone(name) && target.is_slow(c, algorithm, &params) {
            let reason = "its schedule would have to be built to be timed, and is huge".to_owned();
            return Err(AlgorithmError::Unsupported { algorithm: algorithm.name(), reason }.into());
        }
        target.time(c, algorithm, params)
    };
    let time = |name: &str| -> Result<Timed, PlanError> {
        let algorithm = find(name)?;
        let known = |k: &str| algorithm.info().composed || algorithm.info().params.iter().any(|p| p.name == k);
        let params = params.only(known);
        let mut settings = target.settings(c, name)?;
        if !params.is_empty() || settings.is_empty() {
            settings = vec![params];
        }
        let (mut timed, mut refused) = (Vec::new(), None);
        for setting in settings {
            match one(name, &setting) {
                Ok(one) => timed.push(one),
                Err(e) => refused = Some(e),
            }
        }
        sort(target.as_ref(), &mut timed);
        target.simulate_best(c, &mut timed)?;
        sort(target.as_ref(), &mut timed);
        timed.into_iter().next().ok_or_else(|| refused.expect("there is a setting, and it was timed or refused"))
    };
    let mut timed: Vec<(&str, Timed)> = Vec::new();
    let mut refused = None::<AlgorithmError>;
    for name in &swept {
        match time(name) {
            Ok(one) => timed.push((name, one)),
            Err(PlanError::Algorithm(e @ AlgorithmError::Unsupported { .. })) => {
                refused.get_or_insert(e);
            }
            Err(e) => return Err(e),
        }
    }
    // The first of equals, so that a user's order decides ties.
    let best = timed.iter().reduce(|best, t| if t.1.time.total_cmp(&best.1.time).is_lt() { t } else { best });
    let Some((name, best)) = best else {
        return Err(refused.map_or_else(|| no_candidate(&problem, &Params::new()), PlanError::from));
    };
    let baseline = baseline.unwrap_or_else(|| target.baseline(c.kind));
    let reference = time(baseline)?.time;
    let cycles_of = |(name, one): &(&str, Timed)| Some(((*name).to_owned(), one.time.cycles?));
    Ok(Point {
        shape: target.shape(),
        elements: c.elements,
        best: (*name).to_owned(),
        params: map(&best.params),
        cycles: best.time.cycles,
        seconds: best.time.seconds,
        baseline: baseline.to_owned(),
        baseline_cycles: reference.cycles,
        baseline_seconds: reference.seconds,
        baseline_ratio: quotient(reference, best.time),
        cycles_by_algorithm: timed.iter().map(cycles_of).collect(),
        seconds_by_algorithm: timed.iter().map(|(n, t)| ((*n).to_owned(), t.time.seconds)).collect(),
    })
}

/// How many times as long the first takes; `None` where the second takes no time.
fn quotient(long: Time, short: Time) -> Option<f64> {
    let (long, short) = match (long.cycles, short.cycles) {
        (Some(long), Some(short)) => (long, short),
        _ => (long.seconds, short.seconds),
    };
    (short > 0.0).then(|| long / short)
}
