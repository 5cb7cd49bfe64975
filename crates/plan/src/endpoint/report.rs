//! What is said of a plan among ranks, with the keys of the command line's JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use unisono_cost::endpoint::{ENDPOINT_BOUNDS, EndpointBound, schedule_terms, tightest_endpoint};
use unisono_lower::Terms;
use unisono_schedule::Schedule;

use super::{EndpointPlan, EndpointRequest, Timed, planner::Source};
use crate::{PlanError, report::map};

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EndpointPrediction {
    pub seconds: f64,
    pub source: Source,
    /// None where the schedule is too large to be built.
    pub terms: Option<Terms>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EndpointBoundReport {
    pub name: &'static str,
    pub seconds: f64,
    pub reference: &'static str,
    /// The same as `reference`, by the key that plans use.
    pub source: &'static str,
    pub assumes: &'static str,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EndpointCandidate {
    pub algorithm: &'static str,
    pub params: BTreeMap<String, String>,
    pub seconds: f64,
    pub ratio: Option<f64>,
    pub source: Source,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EndpointReport {
    pub collective: &'static str,
    pub machine: String,
    pub shape: Vec<u32>,
    pub ranks: u32,
    pub elements: u32,
    pub bytes: u64,
    pub dtype: &'static str,
    pub operator: &'static str,
    pub root: u32,
    pub algorithm: &'static str,
    pub params: BTreeMap<String, String>,
    pub model: &'static str,
    /// Endpoints have memory enough.
    pub fits_sram: bool,
    pub predicted: EndpointPrediction,
    pub lower_bound: Option<EndpointBoundReport>,
    pub ratio: Option<f64>,
    pub note: Option<&'static str>,
    pub candidates: Vec<EndpointCandidate>,
}

const FREE_BYTES: &str = "a byte costs nothing on this machine (no beta, no G), so the length of the vector has no \
    part in this plan; for long vectors use a machine file that says what a byte costs";

/// Nanoseconds as seconds.
fn seconds(nanoseconds: f64) -> f64 {
    nanoseconds / 1e9
}

impl EndpointPlan {
    pub fn report(&self) -> EndpointReport {
        let (request, best) = (&self.request, self.best());
        let c = &request.collective;
        let case = request.bound_case();
        let bound = tightest_endpoint(&case);
        let ratio = |t: &Timed| bound.filter(|(_, ns)| *ns > 0.0).map(|(_, ns)| t.nanoseconds / ns);
        let candidate = |t: &Timed| EndpointCandidate {
            algorithm: t.algorithm.name(),
            params: map(&t.params),
            seconds: seconds(t.nanoseconds),
            ratio: ratio(t),
            source: t.source,
        };
        let terms = |schedule: &Schedule| schedule_terms(schedule).ok();
        let (send, receive) = request.prices.outermost().ticks_per_byte();
        let bytes = u64::from(c.elements) * c.dtype.bytes();
        EndpointReport {
            collective: c.kind.name(),
            machine: request.machine.name.clone(),
            shape: vec![c.ranks],
            ranks: c.ranks,
            elements: c.elements,
            bytes,
            dtype: c.dtype.name(),
            operator: c.operator.name(),
            root: c.root,
            algorithm: best.algorithm.name(),
            params: map(&best.params),
            model: request.model.name(),
            fits_sram: true,
            predicted: EndpointPrediction {
                seconds: seconds(best.nanoseconds),
                source: best.source,
                // What is timed by its rounds is too large to be built for its terms.
                terms: (best.source == Source::Simulated).then(|| self.schedule().ok().and_then(terms)).flatten(),
            },
            lower_bound: bound.map(|(b, ns)| bound_report(b, ns)),
            ratio: ratio(best),
            // A few words cost a message, whatever a byte costs.
            note: (send == 0.0 && receive == 0.0 && bytes > 1024).then_some(FREE_BYTES),
            candidates: self.candidates.iter().map(candidate).collect(),
        }
    }
}

fn bound_report(bound: &'static dyn EndpointBound, nanoseconds: f64) -> EndpointBoundReport {
    EndpointBoundReport {
        name: bound.name(),
        seconds: seconds(nanoseconds),
        reference: bound.reference(),
        source: bound.reference(),
        assumes: bound.assumes(),
    }
}

/// Every lower bound that applies, in the order of the registry.
pub fn endpoint_bounds(request: &EndpointRequest) -> Vec<EndpointBoundReport> {
    let case = request.bound_case();
    ENDPOINT_BOUNDS.iter().filter_map(|&b| Some(bound_report(b, b.nanoseconds(&case)?))).collect()
}

/// What [`PlanError`] and callers need of a schedule that came from elsewhere: its time under the machine's model.
///
/// # Errors
/// The evaluator found none.
pub fn predict_endpoint(
    schedule: &Schedule,
    request: &EndpointRequest,
    evaluator: &dyn unisono_cost::endpoint::ScheduleEvaluator,
) -> Result<EndpointPrediction, PlanError> {
    let nanoseconds = evaluator.nanoseconds(schedule, &request.prices).map_err(|message| PlanError::NotTimed {
        algorithm: schedule.origin().to_owned(),
        evaluator: evaluator.name(),
        message,
    })?;
    Ok(EndpointPrediction {
        seconds: seconds(nanoseconds),
        source: Source::Simulated,
        terms: schedule_terms(schedule).ok(),
    })
}
