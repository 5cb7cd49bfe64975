//! Ranks candidates on a network, or times the one that was named.

use std::sync::OnceLock;

use unisono_algorithms::{Algorithm, AlgorithmError, Params, resolve};
use unisono_schedule::{Schedule, stored::Stored};

use super::NetworkRequest;
use crate::{
    PlanError,
    endpoint::{EndpointPoint, Source, Sweep, Timed, build, ranked, store_best, sweep_point, time_all},
    planner::candidates,
};

pub struct NetworkPlan {
    pub request: NetworkRequest,
    /// Best first; never empty.
    pub candidates: Vec<Timed>,
    schedule: OnceLock<Result<Schedule, PlanError>>,
}

impl NetworkPlan {
    pub fn best(&self) -> &Timed {
        &self.candidates[0]
    }

    /// The schedule of the best candidate, built on first use.
    ///
    /// # Errors
    /// It is larger than its tables can hold.
    pub fn schedule(&self) -> Result<&Schedule, PlanError> {
        let best = self.best();
        let built = self.schedule.get_or_init(|| build(best.algorithm, &best.params, &self.request.case()));
        built.as_ref().map_err(Clone::clone)
    }

    /// The schedule in the form that an MPI program runs.
    ///
    /// # Errors
    /// The schedule is none that message passing can run, or too large.
    pub fn stored(&self) -> Result<Stored, PlanError> {
        store_best(&self.request.case(), self.best(), || self.schedule())
    }
}

/// A candidate without closed form is ranked if its schedule has at most so many instructions: part of a second's work.
const MOST_RANKED: u64 = 1 << 18;

/// The time of one algorithm, from its exchanges or from the messages of its schedule.
fn time(algorithm: &'static dyn Algorithm, params: Params, request: &NetworkRequest) -> Result<Timed, PlanError> {
    let case = request.case();
    if let Some(exchanges) = algorithm.exchanges(&case, &params) {
        let nanoseconds = request.model.exchanges_ns(&exchanges);
        return Ok(Timed { algorithm, params, nanoseconds, source: Source::Exchanges });
    }
    let schedule = build(algorithm, &params, &case)?;
    let nanoseconds = request
        .model
        .schedule_ns(&schedule)
        .map_err(|message| PlanError::NotProved { algorithm: algorithm.name().to_owned(), message })?;
    Ok(Timed { algorithm, params, nanoseconds, source: Source::Messages })
}

/// Ranks every candidate, or times the algorithm that is named. Candidates that would have to be built to be timed are left
/// out where their schedules are huge.
///
/// # Errors
/// Unknown names or parameters, cases that are not supported.
pub fn plan_network(
    request: NetworkRequest,
    algorithm: Option<&str>,
    params: &Params,
) -> Result<NetworkPlan, PlanError> {
    let case = request.case();
    let time = |algorithm, params| time(algorithm, params, &request);
    let timed = match algorithm {
        Some(name) => {
            let (algorithm, params) = resolve(name, &case, params)?;
            vec![time(algorithm, params)?]
        }
        None => {
            let huge =
                |a: &dyn Algorithm, params: &Params| a.instructions(&case, params).is_none_or(|n| n > MOST_RANKED);
            let worth = |(a, params): &(&'static dyn Algorithm, Params)| {
                !huge(*a, params) || a.exchanges(&case, params).is_some()
            };
            time_all(candidates(&case, params).into_iter().filter(worth), time)?
        }
    };
    let candidates = ranked(timed, &request.collective, &request.machine.name, params)?;
    Ok(NetworkPlan { request, candidates, schedule: OnceLock::new() })
}

/// Times every algorithm of `names` (all of the collective that need not be built large, where none are named), and the
/// baseline.
///
/// # Errors
/// Unknown names, or no name that supports the case.
pub fn network_sweep_point(
    request: &NetworkRequest,
    names: &[String],
    baseline: Option<&str>,
    params: &Params,
) -> Result<EndpointPoint, PlanError> {
    let case = request.case();
    let one = |name: &str, params: &Params| {
        let (algorithm, params) = resolve(name, &case, params)?;
        let huge = algorithm.instructions(&case, &params).is_none_or(|n| n > MOST_RANKED);
        let many = names.len() != 1 && baseline != Some(name);
        if huge && many && algorithm.exchanges(&case, &params).is_none() {
            let reason = "its schedule would have to be built to be timed, and is huge".to_owned();
            return Err(AlgorithmError::Unsupported { algorithm: algorithm.name(), reason }.into());
        }
        time(algorithm, params, request)
    };
    let shape = request.extents.dims().to_vec();
    sweep_point(&Sweep { case, shape, machine: &request.machine.name, time: &one }, names, baseline, params)
}
