//! RCCL's own choice, by its cost model.

use unisono_cost::network::rccl::{FileTime, Rccl, Time, VERSION};

use super::{LibraryChoice, LibraryReport, nccl};
use crate::{PlanError, Problem};

const NAME: &str = "rccl";

/// Returns RCCL's own choice: its file of MSCCL for the call, if it has one, otherwise the algorithm of least time by
/// its model.
///
/// # Errors
/// Returns the errors of [`super::library_choice`].
pub fn choice(problem: &Problem) -> Result<LibraryReport, PlanError> {
    let part = nccl::part(NAME, problem)?;
    let c = &problem.collective;
    let rccl = Rccl::new(&part.network, &*part.topology, part.model.places()).map_err(PlanError::NoLibrary)?;
    if c.bytes() == 0 {
        return Ok(nccl::nothing(NAME, VERSION));
    }
    let times = rccl.times(c.kind, nccl::counted(problem, c.bytes())).map_err(PlanError::NoLibraryTime)?;
    // If RCCL has a file for the call, it runs the file without comparing times.
    let file = rccl.file(c.kind, c.operator, u64::from(c.elements), c.bytes());
    let choices: Vec<LibraryChoice> = file.iter().map(by_file).chain(times.iter().map(one_of)).collect();
    let best = choices.first().ok_or_else(|| PlanError::NoLibrary(format!("{NAME} enables no algorithm here")))?;
    // The estimates for several boxes contain factors that only order the algorithms. So these estimates are not times.
    let seconds = (rccl.boxes() == 1).then_some(best.seconds);
    let own = if seconds.is_some() { "choice and time are" } else { "the choice is" };
    let none =
        if seconds.is_some() { "the time is not measured" } else { "its estimates on several boxes are not times" };
    let note = match file {
        Some(_) => format!(
            "RCCL runs calls out of place of this size by a file of MSCCL ({VERSION}, tools/msccl-algorithms); the time \
             is by RCCL's own latencies and the rates of thread blocks, and not measured"
        ),
        None => format!("{own} by RCCL's own model, {VERSION}; {none}"),
    };
    let chosen = LibraryReport::of(best);
    Ok(LibraryReport { name: NAME, version: VERSION, seconds, notes: vec![note], choices, ..chosen })
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
        ..LibraryChoice::default()
    }
}

fn by_file(file: &FileTime) -> LibraryChoice {
    LibraryChoice {
        algorithm: file.name,
        protocol: file.protocol.name(),
        channels: Some(file.channels),
        gb_per_second: file.bandwidth,
        latency_us: file.latency_us,
        cost_seconds: file.seconds,
        seconds: file.seconds,
        ..LibraryChoice::default()
    }
}
