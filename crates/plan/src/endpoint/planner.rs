//! Ranks candidates among ranks, or times the one that was named.

use std::sync::OnceLock;

use serde::Serialize;
use unisono_algorithms::{Algorithm, AlgorithmError, Case, Params, resolve};
use unisono_cost::endpoint::{ScheduleEvaluator, rounds_ns};
use unisono_schedule::{
    Schedule,
    verify::{Method, Verified},
};

use super::EndpointRequest;
use crate::{PlanError, planner::candidates};

/// Where a time comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The algorithm's rounds in closed form, at the prices of the machine at large.
    Rounds,
    /// On a network: who sends how much to whom in closed form, routed over it.
    Exchanges,
    /// On a network: the messages of the schedule in rounds, routed over it.
    Messages,
    /// On switches that reduce: alpha and beta of their registers.
    Registers,
    /// A simulation of the schedule under the machine's model.
    Simulated,
}

/// An algorithm with its parameters and its time.
#[derive(Clone)]
pub struct Timed {
    pub algorithm: &'static dyn Algorithm,
    pub params: Params,
    pub nanoseconds: f64,
    pub source: Source,
}

pub struct EndpointPlan {
    pub request: EndpointRequest,
    /// Best first; never empty.
    pub candidates: Vec<Timed>,
    schedule: OnceLock<Result<Schedule, PlanError>>,
}

impl EndpointPlan {
    pub fn best(&self) -> &Timed {
        &self.candidates[0]
    }

    /// The schedule of the best candidate, built on first use.
    ///
    /// # Errors
    /// It is larger than its tables can hold.
    pub fn schedule(&self) -> Result<&Schedule, PlanError> {
        let built =
            self.schedule.get_or_init(|| build(self.best().algorithm, &self.best().params, &self.request.case()));
        built.as_ref().map_err(Clone::clone)
    }

    /// The schedule with its proof, at the cost of a copy.
    ///
    /// # Errors
    /// It cannot be built, or it is wrong: a fault of the algorithm.
    pub fn verified(&self, method: Method) -> Result<Verified, PlanError> {
        Verified::new(self.schedule()?.clone(), method).map_err(|proof| PlanError::NotProved {
            algorithm: self.best().algorithm.name().to_owned(),
            message: proof.diagnostics.first().map_or_else(String::new, ToString::to_string),
        })
    }
}

pub(crate) fn build(algorithm: &dyn Algorithm, params: &Params, case: &Case) -> Result<Schedule, PlanError> {
    let mut schedule = algorithm.schedule(case, params)?;
    schedule.set_origin(&format!("{} {params}", algorithm.name()));
    Ok(schedule)
}

/// Messages beyond which a candidate with known rounds is not built only to be ranked.
const MOST_SIMULATED: u64 = 1 << 22;

/// The time of one algorithm: by simulation, or from its rounds where the schedule is huge.
fn time(
    algorithm: &'static dyn Algorithm,
    params: Params,
    request: &EndpointRequest,
    evaluator: &dyn ScheduleEvaluator,
) -> Result<Timed, PlanError> {
    let case = request.case();
    if let Some(rounds) = algorithm.rounds(&case, &params) {
        let a_rank = rounds.iter().map(|r| u64::from(r.messages) * u64::from(r.repeat)).sum::<u64>();
        let messages = a_rank.saturating_mul(u64::from(request.collective.ranks));
        if messages > MOST_SIMULATED {
            let nanoseconds = rounds_ns(&rounds, request.prices.outermost());
            return Ok(Timed { algorithm, params, nanoseconds, source: Source::Rounds });
        }
    }
    let schedule = build(algorithm, &params, &case)?;
    let nanoseconds = evaluator.nanoseconds(&schedule, &request.prices).map_err(|message| PlanError::NotTimed {
        algorithm: algorithm.name().to_owned(),
        evaluator: evaluator.name(),
        message,
    })?;
    Ok(Timed { algorithm, params, nanoseconds, source: Source::Simulated })
}

/// Ranks every candidate, or times the algorithm that is named.
///
/// # Errors
/// Unknown names or parameters, cases that are not supported.
pub fn plan_endpoint(
    request: EndpointRequest,
    algorithm: Option<&str>,
    params: &Params,
    evaluator: &dyn ScheduleEvaluator,
) -> Result<EndpointPlan, PlanError> {
    let case = request.case();
    let mut timed = match algorithm {
        Some(name) => {
            let (algorithm, params) = resolve(name, &case, params)?;
            vec![time(algorithm, params, &request, evaluator)?]
        }
        None => {
            let mut timed = Vec::new();
            for (algorithm, params) in candidates(&case, params) {
                match time(algorithm, params, &request, evaluator) {
                    Ok(one) => timed.push(one),
                    // Too large to build, and without rounds in closed form.
                    Err(PlanError::Algorithm(AlgorithmError::Unsupported { .. } | AlgorithmError::Build(_))) => {}
                    Err(e) => return Err(e),
                }
            }
            timed
        }
    };
    if timed.is_empty() {
        return Err(PlanError::NoCandidate {
            kind: request.collective.kind.to_string(),
            shape: format!("{} ranks", request.collective.ranks),
            machine: request.machine.name.clone(),
            hint: if params.is_empty() { String::new() } else { format!(" with {params}") },
        });
    }
    timed.sort_by(|a, b| a.nanoseconds.total_cmp(&b.nanoseconds));
    Ok(EndpointPlan { request, candidates: timed, schedule: OnceLock::new() })
}
