//! What is said of a plan among ranks, with the keys of the command line's JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use unisono_collective::Collective;
use unisono_cost::{
    LowerBound,
    endpoint::{ENDPOINT_BOUNDS, schedule_terms, tightest_endpoint},
};
use unisono_lower::Terms;
use unisono_schedule::Schedule;

use super::{EndpointPlan, EndpointRequest, Source, Timed};
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

/// What a report is made of, on any machine with ranks.
pub(crate) struct Told<'a> {
    pub collective: &'a Collective,
    pub machine: &'a str,
    pub shape: Vec<u32>,
    pub model: &'static str,
    /// Best first.
    pub candidates: &'a [Timed],
    /// Of the best candidate's schedule, where it was built.
    pub terms: Option<Terms>,
    pub lower_bound: Option<EndpointBoundReport>,
    pub note: Option<&'static str>,
}

impl Told<'_> {
    pub fn report(self) -> EndpointReport {
        let (c, best) = (self.collective, &self.candidates[0]);
        let least = self.lower_bound.as_ref().map(|bound| bound.seconds).filter(|&bound| bound > 0.0);
        let ratio = |t: &Timed| least.map(|least| seconds(t.nanoseconds) / least);
        let candidate = |t: &Timed| EndpointCandidate {
            algorithm: t.algorithm.name(),
            params: map(&t.params),
            seconds: seconds(t.nanoseconds),
            ratio: ratio(t),
            source: t.source,
        };
        EndpointReport {
            collective: c.kind.name(),
            machine: self.machine.to_owned(),
            shape: self.shape,
            ranks: c.ranks,
            elements: c.elements,
            bytes: bytes(c),
            dtype: c.dtype.name(),
            operator: c.operator.name(),
            root: c.root,
            algorithm: best.algorithm.name(),
            params: map(&best.params),
            model: self.model,
            fits_sram: true,
            predicted: EndpointPrediction {
                seconds: seconds(best.nanoseconds),
                source: best.source,
                terms: self.terms,
            },
            ratio: ratio(best),
            lower_bound: self.lower_bound,
            note: self.note,
            candidates: self.candidates.iter().map(candidate).collect(),
        }
    }
}

fn bytes(c: &Collective) -> u64 {
    u64::from(c.elements) * c.dtype.bytes()
}

pub(crate) fn bound_report(bound: &dyn LowerBound, nanoseconds: f64) -> EndpointBoundReport {
    EndpointBoundReport {
        name: bound.name(),
        seconds: seconds(nanoseconds),
        reference: bound.reference(),
        source: bound.reference(),
        assumes: bound.assumes(),
    }
}

impl EndpointPlan {
    pub fn report(&self) -> EndpointReport {
        let (request, best) = (&self.request, self.best());
        let c = &request.collective;
        let (send, receive) = request.prices.outermost().ticks_per_byte();
        // What is timed by its rounds is too large to be built for its terms.
        let built = (best.source == Source::Simulated).then(|| self.schedule().ok()).flatten();
        Told {
            collective: c,
            machine: &request.machine.name,
            shape: vec![c.ranks],
            model: request.model.name(),
            candidates: &self.candidates,
            terms: built.and_then(|schedule| schedule_terms(schedule).ok()),
            lower_bound: tightest_endpoint(&request.bound_case()).map(|(b, ns)| bound_report(b, ns)),
            // A few words cost a message, whatever a byte costs.
            note: (send == 0.0 && receive == 0.0 && bytes(c) > 1024).then_some(FREE_BYTES),
        }
        .report()
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
