//! Candidates among ranks with their times, whatever machine carries the messages.

use serde::Serialize;
use unisono_algorithms::{Algorithm, AlgorithmError, Case, Params};
use unisono_base::interrupt::check;
use unisono_collective::Collective;
use unisono_schedule::Schedule;

use crate::{PlanError, planner::admit};

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

pub(crate) fn build(algorithm: &dyn Algorithm, params: &Params, case: &Case) -> Result<Schedule, PlanError> {
    admit(algorithm, case, params)?;
    let mut schedule = algorithm.schedule(case, params)?;
    schedule.set_origin(&format!("{} {params}", algorithm.name()));
    Ok(schedule)
}

/// Times candidates, except those that do not support the case, are too large to build, or are over a limit.
///
/// # Errors
/// Any other error of one of them; where none is left, why the first was not.
pub(crate) fn time_all(
    candidates: impl IntoIterator<Item = (&'static dyn Algorithm, Params)>,
    time: impl Fn(&'static dyn Algorithm, Params) -> Result<Timed, PlanError>,
) -> Result<Vec<Timed>, PlanError> {
    let (mut timed, mut refused) = (Vec::new(), None::<PlanError>);
    for (algorithm, params) in candidates {
        check();
        match time(algorithm, params) {
            Ok(one) => timed.push(one),
            Err(
                e @ (PlanError::Algorithm(AlgorithmError::Unsupported { .. } | AlgorithmError::Build(_))
                | PlanError::OverLimit(_)),
            ) => {
                refused.get_or_insert(e);
            }
            Err(e) => return Err(e),
        }
    }
    match refused {
        Some(e) if timed.is_empty() => Err(e),
        _ => Ok(timed),
    }
}

/// Best first.
///
/// # Errors
/// There is none.
pub(crate) fn ranked(
    mut timed: Vec<Timed>,
    collective: &Collective,
    machine: &str,
    params: &Params,
) -> Result<Vec<Timed>, PlanError> {
    if timed.is_empty() {
        return Err(PlanError::NoCandidate {
            kind: collective.kind.to_string(),
            shape: format!("{} ranks", collective.ranks),
            machine: machine.to_owned(),
            hint: if params.is_empty() { String::new() } else { format!(" with {params}") },
        });
    }
    timed.sort_by(|a, b| a.nanoseconds.total_cmp(&b.nanoseconds));
    Ok(timed)
}
