//! NCCL's own choice, by its cost model.

use unisono_collective::{Dtype, Kind};
use unisono_cost::network::{
    NetworkPart,
    nccl::{Algorithm, Call, Facts, Nccl, Protocol, Time, VERSION, constants::base_us},
};

use super::{LibraryChoice, LibraryRegion, LibraryReport, mpi::Run};
use crate::{PlanError, Problem, targets::spread};

const NAME: &str = "nccl";

/// Returns the algorithm with the messages of a group: each block goes directly to its rank, and all messages are sent
/// at once. In an alltoall, NCCL sends to the ranks in the order of their distance, so that each rank receives from a
/// different rank.
fn same_messages(kind: Kind) -> &'static str {
    if kind == Kind::Alltoall { "balanced-shift" } else { "linear" }
}

/// The exponent of 2 of the largest size, in bytes, for which the choice is computed for a tuning file.
const MOST_POWER: u32 = 34;

/// Returns the network part on which a library for GPUs runs, if the library can add the problem's elements.
pub(super) fn part<'a>(name: &str, problem: &'a Problem) -> Result<&'a NetworkPart, PlanError> {
    let c = &problem.collective;
    if c.kind.reduces() && c.dtype == Dtype::I16 {
        let message = format!("{name} has no reductions of {}, as it has no such type; choose f16 or i32", c.dtype);
        return Err(PlanError::NoLibrary(message));
    }
    problem.target.part().downcast_ref::<NetworkPart>().ok_or_else(|| {
        let (machine, kind) = (problem.target.machine().name(), problem.target.machine().kind());
        PlanError::NoLibrary(format!("{name} runs on networks of GPUs; {machine} is of kind {kind}"))
    })
}

/// Returns NCCL's cost model on the problem's part of a network, and the call of its collective.
pub(super) fn nccl(problem: &Problem) -> Result<(Nccl, Call), PlanError> {
    let c = &problem.collective;
    let part = part(NAME, problem)?;
    let network_reduces = spread(problem).is_some_and(|spread| spread.boxes > 1 && spread.network_reduces);
    // NCCL uses nominal rates; for PCIe it uses the rates that programs reach.
    let facts = |part: &NetworkPart| Facts::new(&part.network, &*part.topology, part.model.places(), network_reduces);
    let of_both = facts(part.of_data_sheet()).and_then(|sheet| Ok(sheet.with_pcie_of(&facts(part)?)));
    let made = of_both.and_then(|facts| Nccl::new(facts, part.network.nccl.clone())).map_err(PlanError::NoLibrary)?;
    Ok((made, Call { kind: c.kind, operator: c.operator, dtype: c.dtype }))
}

/// Converts bytes counted as in MPI to bytes counted as in NCCL.
pub(super) fn counted(problem: &Problem, bytes: u64) -> u64 {
    match problem.collective.kind {
        Kind::Allgather | Kind::ReduceScatter => bytes.saturating_mul(u64::from(problem.collective.ranks)),
        _ => bytes,
    }
}

/// Returns NCCL's own choice: the algorithm of least cost by its model.
///
/// # Errors
///
/// Returns the errors of [`super::library_choice`].
pub fn choice(problem: &Problem) -> Result<LibraryReport, PlanError> {
    let (nccl, call) = nccl(problem)?;
    let c = &problem.collective;
    if c.bytes() == 0 {
        return Ok(nothing(NAME, VERSION));
    }
    if matches!(c.kind, Kind::Alltoall | Kind::Gather | Kind::Scatter) {
        return as_messages(problem, &nccl);
    }
    let times = nccl.times(call, counted(problem, c.bytes())).map_err(PlanError::NoLibraryTime)?;
    let best = times.first().ok_or_else(|| PlanError::NoLibrary(format!("{NAME} enables no algorithm here")))?;
    let note = if best.is_fitted {
        format!("the choice is that of NCCL's own model ({VERSION}); the time is by prices fitted to measurements")
    } else {
        format!("choice and time are those of NCCL's own model ({VERSION}); the time is not measured")
    };
    let choices: Vec<LibraryChoice> = times.iter().map(one_of).collect();
    let chosen = LibraryReport::of(&choices[0]);
    Ok(LibraryReport { name: NAME, version: VERSION, notes: vec![note], choices, ..chosen })
}

/// Returns the report of a call without elements. The library returns from such a call without starting a kernel
/// (`taskAppend` of NVIDIA/nccl, src/enqueue.cc).
pub(super) fn nothing(name: &'static str, version: &'static str) -> LibraryReport {
    LibraryReport {
        name,
        version,
        algorithm: "none",
        seconds: Some(0.0),
        cost_seconds: Some(0.0),
        notes: vec![format!("{name} returns from a call without elements at once, and starts no kernel ({version})")],
        ..LibraryReport::default()
    }
}

/// Returns the time of a group of `ncclSend` and `ncclRecv`, which NCCL starts for a collective that moves blocks.
///
/// # Errors
/// Returns an error if the messages have no time on the machine.
fn as_messages(problem: &Problem, nccl: &Nccl) -> Result<LibraryReport, PlanError> {
    let c = &problem.collective;
    // The kernel of a group starts like that of a ring, and a short message uses the same protocol.
    let start_us = base_us(Algorithm::Ring, Protocol::Ll);
    let same = same_messages(c.kind);
    let on_links = Run::of(same).seconds(problem)? - part(NAME, problem)?.network.launch_ns / 1e9;
    let seconds = (on_links + start_us / 1e6).max(nccl.kernels_us() / 1e6);
    Ok(LibraryReport {
        name: NAME,
        version: VERSION,
        algorithm: "sendrecv",
        seconds: Some(seconds),
        notes: vec![format!(
            "NCCL moves the blocks of {} in one group of ncclSend and ncclRecv, for which its model has no choice and \
             no time; the time is that of {same} among the candidates with NCCL's start of {start_us} µs \
             ({VERSION}), and not measured",
            c.kind
        )],
        ..LibraryReport::default()
    })
}

fn one_of(time: &Time) -> LibraryChoice {
    LibraryChoice {
        algorithm: time.algorithm.name(),
        protocol: time.protocol.name(),
        channels: Some(time.channels),
        channel_gb_per_second: Some(time.channel),
        gb_per_second: time.bandwidth,
        latency_us: time.latency_us,
        cost_seconds: time.cost_seconds,
        seconds: time.seconds,
        calibrated: time.is_fitted,
        work: Some(time.steps),
        prices: Some(time.prices),
    }
}

/// A size in bytes, and the algorithm and protocol that are chosen from this size on.
type From = (u64, (Algorithm, Protocol));

/// Appends the sizes at which the choice changes, after `low` up to `high`. Between two powers of two NCCL's estimates
/// are linear in the size, so an algorithm that is best at both ends is also best between them.
fn add_changes(
    best: &dyn Fn(u64) -> Result<(Algorithm, Protocol), PlanError>,
    low: From,
    high: From,
    found: &mut Vec<From>,
) -> Result<(), PlanError> {
    if low.1 == high.1 {
        return Ok(());
    }
    if low.0 + 1 == high.0 {
        found.push(high);
        return Ok(());
    }
    let size = low.0.midpoint(high.0);
    let middle = (size, best(size)?);
    add_changes(best, low, middle, found)?;
    add_changes(best, middle, high, found)
}

/// Returns, for each range of sizes, the library's own choice. If this choice has prices fitted to measurements,
/// returns instead the algorithm with the least predicted time among all algorithms with such prices.
///
/// # Errors
///
/// Returns the errors of [`super::library_choice`], or an error if the library has no model of times.
pub fn library_regions(name: &str, problem: &Problem) -> Result<Vec<LibraryRegion>, PlanError> {
    if name != NAME {
        let message = format!("files are written of the own algorithms of {NAME}, and not of {name}");
        return Err(PlanError::NoLibrary(message));
    }
    let (nccl, call) = nccl(problem)?;
    let best = |bytes: u64| -> Result<_, PlanError> {
        let times = nccl.times(call, counted(problem, bytes)).map_err(PlanError::NoLibraryTime)?;
        let own = times.first().ok_or_else(|| PlanError::NoLibrary(format!("{NAME} enables no algorithm here")))?;
        // Fitted times are compared only with each other, because NCCL's own estimates are often shorter.
        let fitted = times.iter().filter(|time| own.is_fitted && time.is_fitted);
        let least = fitted.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).unwrap_or(own);
        Ok((least.algorithm, least.protocol))
    };
    let mut last = (1, best(1)?);
    let mut found = vec![(0, last.1)];
    for power in 0..=MOST_POWER {
        for size in [1_u64 << power, (2_u64 << power) - 1] {
            let next = (size, best(size)?);
            add_changes(&best, last, next, &mut found)?;
            last = next;
        }
    }
    let ends: Vec<Option<u64>> = found.iter().skip(1).map(|(first, _)| Some(first - 1)).chain([None]).collect();
    let regions = found.into_iter().zip(ends).map(|((first_bytes, (algorithm, protocol)), last_bytes)| LibraryRegion {
        first_bytes,
        last_bytes,
        algorithm: algorithm.name(),
        protocol: protocol.name(),
    });
    Ok(regions.collect())
}
