//! The best of named algorithms at one point of a sweep, beside a baseline.

use std::collections::BTreeMap;

use serde::Serialize;
use unisono_algorithms::{ALGORITHMS, AlgorithmError, Params, PlaceKind, find, resolve};
use unisono_collective::Kind;

use crate::{PlanError, Request, planner::evaluate, request::model};

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Point {
    pub shape: Vec<u32>,
    pub elements: u32,
    /// As the user named it.
    pub best: String,
    pub params: BTreeMap<String, String>,
    pub cycles: f64,
    pub seconds: f64,
    pub baseline: String,
    pub baseline_cycles: f64,
    pub baseline_ratio: Option<f64>,
    pub cycles_by_algorithm: BTreeMap<String, f64>,
}

/// Times every algorithm of `names` (all that are not made of others, where none are named) and the baseline (a
/// chain for reductions, a flood for broadcasts). Those that do not support the case are left out.
///
/// # Errors
/// Unknown names, or no name that supports the case.
pub fn sweep_point(
    request: &Request,
    names: &[String],
    baseline: Option<&str>,
    params: &Params,
    model_name: Option<&str>,
) -> Result<Point, PlanError> {
    let case = request.case();
    let model = model(model_name.unwrap_or("paper"))?;
    let kind = case.collective.kind;
    let plain: Vec<String> = ALGORITHMS
        .iter()
        .filter(|a| !a.composed() && a.runs_on().contains(&PlaceKind::Wafer))
        .map(|a| a.name().to_owned())
        .collect();
    let names = if names.is_empty() { &plain } else { names };
    let time = |name: &str| {
        let known = |k: &str| find(name).is_ok_and(|a| a.composed() || a.params().iter().any(|p| p.name == k));
        let (algorithm, params) = resolve(name, &case, &params.only(known))?;
        evaluate(algorithm, params, &case, model)
    };
    let mut timed = Vec::new();
    let mut refused = None;
    for name in names {
        match time(name) {
            Ok(chosen) => timed.push((name, chosen)),
            Err(PlanError::Algorithm(e @ AlgorithmError::Unsupported { .. })) => refused = Some(e),
            Err(e) => return Err(e),
        }
    }
    // The first of equals, so that a user's order decides ties.
    let mut best = timed.first();
    for t in &timed {
        if best.is_some_and(|b| t.1.cycles.0 < b.1.cycles.0) {
            best = Some(t);
        }
    }
    let Some((name, chosen)) = best else {
        return Err(refused.map_or_else(
            || PlanError::NoCandidate {
                kind: kind.to_string(),
                shape: request.shape.to_string(),
                machine: request.wafer.name.clone(),
                hint: String::new(),
            },
            PlanError::from,
        ));
    };
    let default = match kind {
        Kind::Broadcast => "flood",
        Kind::Message => "message",
        _ => "chain",
    };
    let baseline = baseline.unwrap_or(default);
    let baseline_cycles = time(baseline)?.cycles.0;
    Ok(Point {
        shape: request.shape.dims(),
        elements: case.collective.elements,
        best: (*name).clone(),
        params: chosen.params.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        cycles: chosen.cycles.0,
        seconds: chosen.cycles.seconds(request.wafer.clock_mhz),
        baseline: baseline.to_owned(),
        baseline_cycles,
        baseline_ratio: (chosen.cycles.0 > 0.0).then(|| baseline_cycles / chosen.cycles.0),
        cycles_by_algorithm: timed.iter().map(|(n, c)| ((*n).clone(), c.cycles.0)).collect(),
    })
}
