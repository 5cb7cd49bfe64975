//! Times and simulations of schedules, for kinds of machines that have prices of messages.

use std::time::Instant;

use unisono_base::rounded;
use unisono_collective::Kind;
use unisono_cost::{
    Time,
    endpoint::{Prices, TICKS_PER_NS},
};
use unisono_lower::{
    VerifiedFile,
    tasks::{draft, from_schedule},
};
use unisono_schedule::Schedule;
use unisono_sim::endpoint::{self, SimError};

use crate::{PlanError, Run, RunError, RunOptions};

const WAFER_ONLY: &str = "queue_depth and noop_probability are a wafer's; among ranks there are late and noise";

/// Returns the simulated time of an unproved schedule; `None` if the simulation stopped because it takes longer than
/// `most`. Errors name `algorithm` and `model`.
///
/// # Errors
/// Returns an error if the schedule has no task graph, or its run cannot finish.
pub(crate) fn time(
    schedule: &Schedule,
    prices: &impl Prices,
    algorithm: &str,
    model: &'static str,
    most: Option<Time>,
) -> Result<Option<Time>, PlanError> {
    let failed = |message| PlanError::NotTimed { algorithm: algorithm.to_owned(), model, message };
    let graph = draft(schedule).map_err(|e| failed(e.to_string()))?;
    let most = most.map(|most| rounded((most.seconds * 1e9 * TICKS_PER_NS).ceil()));
    match endpoint::run(&graph, prices, &endpoint::Options { most, ..Default::default() }) {
        Ok(run) => Ok(Some(Time::from_ns(run.makespan as f64 / TICKS_PER_NS))),
        Err(SimError::Late { .. }) => Ok(None),
        Err(e) => Err(failed(e.to_string())),
    }
}

/// Simulates a proved schedule by the prices of messages.
///
/// # Errors
/// Returns an error for options of wafers, an invalid start of a rank, a schedule without a task graph, or a run that
/// gets stuck.
pub(crate) fn simulate(proven: &VerifiedFile, prices: &impl Prices, options: &RunOptions) -> Result<Run, RunError> {
    if options.for_wafers() {
        return Err(RunError::Options(WAFER_ONLY));
    }
    let graph = from_schedule(proven.verified())?;
    let begin = Instant::now();
    let run = endpoint::run(&graph, prices, &options.in_ticks()?)?;
    Ok(Run::among_ranks(run, TICKS_PER_NS, begin.elapsed().as_secs_f64()))
}

/// Returns an algorithm that MPI libraries use for a collective, in most collectives for short vectors. It is the
/// customary baseline.
pub(crate) fn of_libraries(kind: Kind) -> &'static str {
    match kind {
        Kind::Allreduce | Kind::Scan | Kind::Allgather => "recursive-doubling",
        Kind::Alltoall | Kind::ReduceScatter => "pairwise",
        Kind::Barrier => "dissemination",
        Kind::Broadcast | Kind::Reduce | Kind::Gather | Kind::Scatter => "binomial",
        Kind::Message => "linear",
    }
}
