//! RCCL's own choice, by its cost model.

use unisono_cost::network::rccl::{Rccl, Time, VERSION};

use super::{LibraryChoice, LibraryReport, nccl};
use crate::{PlanError, Problem};

const NAME: &str = "rccl";

/// Returns RCCL's own choice: its least time.
///
/// # Errors
/// As [`super::library_choice`].
pub fn choice(problem: &Problem) -> Result<LibraryReport, PlanError> {
    let part = nccl::part(NAME, problem)?;
    let c = &problem.collective;
    let rccl = Rccl::new(&part.network, &*part.topology, part.model.places()).map_err(PlanError::NoLibrary)?;
    let times = rccl.times(c.kind, nccl::counted(problem, c.bytes())).map_err(PlanError::NoLibraryTime)?;
    let best = times.first().ok_or_else(|| PlanError::NoLibrary(format!("{NAME} enables no algorithm here")))?;
    // The estimates for several boxes have factors that order the algorithms, and are not times.
    let seconds = (rccl.boxes() == 1).then_some(best.seconds);
    let bandwidths = seconds.and_then(|seconds| c.kind.bandwidths(c.ranks, c.bytes(), seconds));
    let time = if seconds.is_some() { "choice and time are" } else { "the choice is" };
    let none =
        if seconds.is_some() { "the time is not measured" } else { "its estimates on several boxes are not times" };
    Ok(LibraryReport {
        name: NAME,
        version: VERSION,
        algorithm: best.algorithm.name(),
        protocol: Some(best.protocol.name()),
        channels: best.channels,
        channel_gb_per_second: one_of(best).channel_gb_per_second,
        seconds,
        cost_seconds: Some(best.seconds),
        algbw: bandwidths.map(|b| b.algbw),
        busbw: bandwidths.map(|b| b.busbw),
        calibrated: false,
        notes: vec![format!(
            "{time} by RCCL's own model, {VERSION}; {none}, and MSCCL's files replace the choice at the sizes that they \
             state"
        )],
        choices: times.iter().map(one_of).collect(),
        bits: None,
    })
}

fn one_of(time: &Time) -> LibraryChoice {
    LibraryChoice {
        algorithm: time.algorithm.name(),
        protocol: time.protocol.name(),
        channels: time.channels,
        channel_gb_per_second: time.channel,
        gb_per_second: time.bandwidth,
        latency_us: time.latency_us,
        cost_seconds: time.seconds,
        seconds: time.seconds,
        calibrated: false,
        work: None,
        prices: None,
    }
}
