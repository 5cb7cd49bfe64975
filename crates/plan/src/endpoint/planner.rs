//! Ranks candidates among ranks, or times the one that was named.

use std::sync::OnceLock;

use unisono_algorithms::{Algorithm, Params, resolve};
use unisono_cost::endpoint::{ScheduleEvaluator, rounds_ns};
use unisono_schedule::Schedule;

use super::{
    EndpointRequest,
    ranked::{Source, Timed, build, ranked, time_all},
};
use crate::{PlanError, planner::candidates};

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
    let time = |algorithm, params| time(algorithm, params, &request, evaluator);
    let timed = match algorithm {
        Some(name) => {
            let (algorithm, params) = resolve(name, &case, params)?;
            vec![time(algorithm, params)?]
        }
        None => time_all(candidates(&case, params), time)?,
    };
    let candidates = ranked(timed, &request.collective, &request.machine.name, params)?;
    Ok(EndpointPlan { request, candidates, schedule: OnceLock::new() })
}
