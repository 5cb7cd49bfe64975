//! The best of named algorithms among ranks at one point of a sweep, beside a baseline.

use std::collections::BTreeMap;

use serde::Serialize;
use unisono_algorithms::{ALGORITHMS, AlgorithmError, Case, Params, find};
use unisono_collective::Kind;
use unisono_cost::endpoint::ScheduleEvaluator;

use super::{EndpointRequest, Timed, plan_endpoint};
use crate::{PlanError, report::map};

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EndpointPoint {
    pub shape: Vec<u32>,
    pub elements: u32,
    pub best: String,
    pub params: BTreeMap<String, String>,
    pub seconds: f64,
    pub baseline: String,
    pub baseline_seconds: f64,
    pub baseline_ratio: Option<f64>,
    pub seconds_by_algorithm: BTreeMap<String, f64>,
}

/// What libraries use for short vectors, which most speed-ups are measured against.
fn default_baseline(kind: Kind) -> &'static str {
    match kind {
        Kind::Allreduce | Kind::Scan | Kind::Allgather => "recursive-doubling",
        Kind::Alltoall | Kind::ReduceScatter => "pairwise",
        Kind::Barrier => "dissemination",
        Kind::Broadcast | Kind::Reduce | Kind::Gather | Kind::Scatter => "binomial",
        Kind::Message => "linear",
    }
}

/// Times every algorithm of `names` (all of the collective, where none are named) at its best parameters, and the
/// baseline. Those that do not support the case are left out.
///
/// # Errors
/// Unknown names, or no name that supports the case.
pub fn endpoint_sweep_point(
    request: &EndpointRequest,
    names: &[String],
    baseline: Option<&str>,
    params: &Params,
    evaluator: &dyn ScheduleEvaluator,
) -> Result<EndpointPoint, PlanError> {
    let time = |name: &str, params: &Params| {
        plan_endpoint(request.clone(), Some(name), params, evaluator).map(|plan| plan.best().clone())
    };
    let shape = vec![request.collective.ranks];
    let sweep = Sweep { case: request.case(), shape, machine: &request.machine.name, time: &time };
    sweep_point(&sweep, names, baseline, params)
}

/// One point of a sweep: the case, and how an algorithm with its parameters is timed in it.
pub(crate) struct Sweep<'a> {
    pub case: Case,
    pub shape: Vec<u32>,
    pub machine: &'a str,
    pub time: &'a dyn Fn(&str, &Params) -> Result<Timed, PlanError>,
}

pub(crate) fn sweep_point(
    sweep: &Sweep,
    names: &[String],
    baseline: Option<&str>,
    params: &Params,
) -> Result<EndpointPoint, PlanError> {
    let collective = sweep.case.collective;
    let kind = collective.kind;
    let serves = |a: &&&dyn unisono_algorithms::Algorithm| {
        a.runs_on().contains(&sweep.case.kind()) && a.collectives().contains(&kind)
    };
    let all: Vec<String> = ALGORITHMS.iter().filter(serves).map(|a| a.name().to_owned()).collect();
    let time = |name: &str| -> Result<Timed, PlanError> {
        let algorithm = find(name)?;
        let known = |k: &str| algorithm.composed() || algorithm.params().iter().any(|p| p.name == k);
        let params = params.only(known);
        let mut settings = algorithm.candidates(&sweep.case);
        if !params.is_empty() || settings.is_empty() {
            settings = vec![params];
        }
        let mut best: Option<Timed> = None;
        let mut refused = None;
        for setting in settings {
            match (sweep.time)(name, &setting) {
                Ok(one) if best.as_ref().is_none_or(|b| one.nanoseconds < b.nanoseconds) => best = Some(one),
                Ok(_) => {}
                Err(e) => refused = Some(e),
            }
        }
        best.ok_or_else(|| refused.expect("there is a setting, and it was timed or refused"))
    };
    let mut timed = Vec::new();
    let mut refused = None;
    for name in if names.is_empty() { &all } else { names } {
        match time(name) {
            Ok(one) => timed.push((name, one)),
            Err(PlanError::Algorithm(e @ AlgorithmError::Unsupported { .. })) => refused = Some(e),
            Err(e) => return Err(e),
        }
    }
    // The first of equals, so that a user's order decides ties.
    let best = timed.iter().reduce(|best, t| if t.1.nanoseconds < best.1.nanoseconds { t } else { best });
    let Some((name, best)) = best else {
        return Err(refused.map_or_else(
            || PlanError::NoCandidate {
                kind: kind.to_string(),
                shape: format!("{} ranks", collective.ranks),
                machine: sweep.machine.to_owned(),
                hint: String::new(),
            },
            PlanError::from,
        ));
    };
    let baseline = baseline.unwrap_or_else(|| default_baseline(kind));
    let reference = time(baseline)?.nanoseconds;
    Ok(EndpointPoint {
        shape: sweep.shape.clone(),
        elements: collective.elements,
        best: (*name).clone(),
        params: map(&best.params),
        seconds: best.nanoseconds / 1e9,
        baseline: baseline.to_owned(),
        baseline_seconds: reference / 1e9,
        baseline_ratio: (best.nanoseconds > 0.0).then(|| reference / best.nanoseconds),
        seconds_by_algorithm: timed.iter().map(|(n, t)| ((*n).clone(), t.nanoseconds / 1e9)).collect(),
    })
}
