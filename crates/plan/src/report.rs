//! What is said of a plan, with the keys of the command line's JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use unisono_algorithms::Params;
use unisono_base::Cycles;
use unisono_cost::{BOUNDS, Model, measure, tightest};
use unisono_lower::{Estimate, Placed, Terms};

use crate::{Chosen, Plan, PlanError, Request};

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PhaseReport {
    pub name: String,
    pub cycles: f64,
    /// Of the slowest of the phase's parallel lines.
    pub terms: Terms,
    /// What the algorithm chose for itself, and why the time is sharper than the model's, where it is.
    pub note: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Prediction {
    pub cycles: f64,
    pub seconds: f64,
    pub terms: Terms,
    pub phases: Vec<PhaseReport>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BoundReport {
    pub name: &'static str,
    pub cycles: f64,
    pub seconds: f64,
    pub reference: &'static str,
    /// The same as `reference`, by the key that plans use.
    pub source: &'static str,
    pub assumes: &'static str,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CandidateReport {
    pub algorithm: &'static str,
    pub params: BTreeMap<String, String>,
    pub cycles: f64,
    pub seconds: f64,
    pub ratio: Option<f64>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlanReport {
    pub collective: &'static str,
    pub machine: String,
    pub shape: Vec<u32>,
    pub elements: u32,
    pub dtype: &'static str,
    pub operator: &'static str,
    pub root: u32,
    pub algorithm: &'static str,
    pub params: BTreeMap<String, String>,
    pub model: &'static str,
    pub fits_sram: bool,
    pub predicted: Prediction,
    pub lower_bound: Option<BoundReport>,
    pub ratio: Option<f64>,
    pub note: Option<&'static str>,
    pub candidates: Vec<CandidateReport>,
}

const IMPROVED_STAR: &str = "the bound rests on Eq. 1; the paper's improved form for star is not Eq. 1 and leaves out \
    the first hop, so the ratio may go under 1";
const AVERAGED: &str = "Eq. 1 averages the load over all links, so on a grid it may go under what its busiest link can \
    carry; the model links does not";

impl Plan {
    /// # Errors
    /// The schedule cannot be built.
    pub fn report(&self) -> Result<PlanReport, PlanError> {
        let (request, best) = (&self.request, self.best());
        let c = &request.collective;
        let bound = lower_bound(request);
        let ratio = |cycles: Cycles| ratio(cycles, bound.as_ref());
        let candidate = |c: &Chosen| CandidateReport {
            algorithm: c.algorithm.name(),
            params: map(&c.params),
            cycles: c.cycles.0,
            seconds: c.cycles.seconds(request.wafer.clock_mhz),
            ratio: ratio(c.cycles),
        };
        let best_ratio = ratio(best.cycles);
        Ok(PlanReport {
            collective: c.kind.name(),
            machine: request.wafer.name.clone(),
            shape: request.shape.dims(),
            elements: c.elements,
            dtype: c.dtype.name(),
            operator: c.operator.name(),
            root: c.root,
            algorithm: best.algorithm.name(),
            params: map(&best.params),
            model: self.model.name(),
            fits_sram: self.placed()?.fits_sram(request.wafer.sram_bytes),
            predicted: prediction(&best.estimate, self.model, request),
            note: best_ratio.filter(|&r| r < 1.0).map(|_| {
                let sharper = best.estimate.phases.iter().any(|p| p.sharper.is_some());
                if sharper { IMPROVED_STAR } else { AVERAGED }
            }),
            ratio: best_ratio,
            candidates: self.candidates.iter().map(candidate).collect(),
            lower_bound: bound,
        })
    }
}

pub(crate) fn map(params: &Params) -> BTreeMap<String, String> {
    params.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

fn ratio(cycles: Cycles, bound: Option<&BoundReport>) -> Option<f64> {
    bound.filter(|b| b.cycles > 0.0).map(|b| cycles.0 / b.cycles)
}

fn prediction(estimate: &Estimate, model: &dyn Model, request: &Request) -> Prediction {
    let depth_cycles = request.wafer.depth_cycles();
    let phases: Vec<PhaseReport> = estimate
        .phases
        .iter()
        .map(|p| PhaseReport {
            name: p.name.clone(),
            cycles: model.phase(p, depth_cycles).0,
            terms: p.terms,
            note: p.note.clone().or_else(|| p.sharper.map(|s| s.why.to_owned())),
        })
        .collect();
    let cycles: Cycles = phases.iter().map(|p| Cycles(p.cycles)).sum();
    Prediction { cycles: cycles.0, seconds: cycles.seconds(request.wafer.clock_mhz), terms: estimate.total(), phases }
}

/// What a model says of a placed schedule from the terms computed on the grid, whoever made it.
///
/// # Errors
/// The schedule or its placement is wrong; the first finding is named.
pub fn predict(placed: &Placed, request: &Request, model: &'static dyn Model) -> Result<Prediction, PlanError> {
    let phases = measure(placed).map_err(|found| PlanError::NotProved {
        algorithm: placed.schedule.origin().to_owned(),
        message: found.first().map_or_else(String::new, ToString::to_string),
    })?;
    Ok(prediction(&model.slowest(phases, request.wafer.depth_cycles()), model, request))
}

/// Every lower bound that applies, in the order of the registry.
pub fn bounds(request: &Request) -> Vec<BoundReport> {
    let case = request.bound_case();
    let report = |b: &&'static dyn unisono_cost::Bound| Some(bound_report(*b, b.cycles(&case)?, request));
    BOUNDS.iter().filter_map(report).collect()
}

fn lower_bound(request: &Request) -> Option<BoundReport> {
    let (bound, cycles) = tightest(&request.bound_case())?;
    Some(bound_report(bound, cycles, request))
}

fn bound_report(bound: &'static dyn unisono_cost::Bound, cycles: Cycles, request: &Request) -> BoundReport {
    BoundReport {
        name: bound.name(),
        cycles: cycles.0,
        seconds: cycles.seconds(request.wafer.clock_mhz),
        reference: bound.reference(),
        source: bound.reference(),
        assumes: bound.assumes(),
    }
}
