//! A library's own choice for a problem, with the times of its own model, beside the plan.

mod bits;

pub use bits::{LibraryBits, LibraryLoss, LibrarySettings, library_bits};
use serde::Serialize;
use unisono_collective::Kind;
use unisono_cost::network::{
    NetworkPart,
    nccl::{Call, Facts, Nccl, Time, VERSION},
};

use crate::{PlanError, Problem};

/// The libraries whose own choice is known.
pub const LIBRARIES: [&str; 1] = ["nccl"];

/// Sizes of a tuning file go up to this power of two.
const MOST_POWER: u32 = 34;
/// Bisections between two powers of two, at the ends of which the choice differs.
const BISECTIONS: u32 = 8;

/// The choice of a library: its least cost.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LibraryReport {
    pub name: &'static str,
    /// The source of the model.
    pub version: &'static str,
    pub algorithm: &'static str,
    pub protocol: &'static str,
    pub channels: u32,
    pub channel_gb_per_second: f64,
    /// The predicted time of the choice.
    pub seconds: f64,
    /// The library's own estimate, by which it chooses.
    pub cost_seconds: f64,
    pub algbw: Option<f64>,
    pub busbw: Option<f64>,
    /// True if the time is from prices that were fitted to measurements of this machine.
    pub calibrated: bool,
    /// Sentences on the source of the choice and of its time.
    pub notes: Vec<String>,
    /// All that the library enables, least cost first.
    pub choices: Vec<LibraryChoice>,
    /// The settings that give a property of the bits, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<LibraryBits>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LibraryChoice {
    pub algorithm: &'static str,
    pub protocol: &'static str,
    pub channels: u32,
    pub channel_gb_per_second: f64,
    /// Of the bytes, by the library's model.
    pub gb_per_second: f64,
    pub latency_us: f64,
    pub cost_seconds: f64,
    pub seconds: f64,
    pub calibrated: bool,
    pub work: Work,
    pub prices: Prices,
}

/// NCCL's own prices of this work.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Prices {
    pub start_us: f64,
    pub hop_us: f64,
    pub network_hop_us: f64,
    pub ns_per_byte: f64,
}

/// The work of one call, to which prices are fitted.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Work {
    pub blocks: f64,
    pub hops: f64,
    pub network_hops: f64,
    /// Of one block.
    pub sent_bytes: f64,
    pub worked_bytes: f64,
}

/// The algorithm that a library is told to use from `first_bytes` to `last_bytes`, which count as in MPI.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LibraryRegion {
    pub first_bytes: u64,
    pub last_bytes: Option<u64>,
    pub algorithm: &'static str,
    pub protocol: &'static str,
}

/// NCCL on the part of a problem, and the call.
fn nccl(name: &str, problem: &Problem) -> Result<(Nccl, Call), PlanError> {
    if !LIBRARIES.contains(&name) {
        return Err(PlanError::NoLibrary(format!(
            "the own choice of '{name}' is not known; accepted is {}",
            LIBRARIES.join(", ")
        )));
    }
    let c = &problem.collective;
    let Some(part) = problem.target.part().downcast_ref::<NetworkPart>() else {
        let (machine, kind) = (problem.target.machine_name(), problem.target.machine().kind());
        let message = format!("{name} runs on networks of GPUs; {machine} is of kind {kind}");
        return Err(PlanError::NoLibrary(message));
    };
    let network_reduces = problem.target.spread(c).is_some_and(|spread| spread.boxes > 1 && spread.network_reduces);
    // NCCL reads nominal rates, and of PCIe what programs reach.
    let facts = |part: &NetworkPart| Facts::new(&part.network, &*part.topology, part.model.places(), network_reduces);
    let of_both = facts(part.of_data_sheet()).and_then(|sheet| Ok(sheet.with_pcie_of(&facts(part)?)));
    let made = of_both.and_then(|facts| Nccl::new(facts, part.network.nccl.clone())).map_err(PlanError::NoLibrary)?;
    Ok((made, Call { kind: c.kind, operator: c.operator, dtype: c.dtype }))
}

/// Returns the bytes as NCCL counts them, of bytes as in MPI.
fn counted(problem: &Problem, bytes: u64) -> u64 {
    match problem.collective.kind {
        Kind::Allgather | Kind::ReduceScatter => bytes.saturating_mul(u64::from(problem.collective.ranks)),
        _ => bytes,
    }
}

/// Returns the own choice of a library.
///
/// # Errors
/// The library is not known, has no algorithm for the collective, or the machine does not state what its model reads.
pub fn library_choice(name: &str, problem: &Problem) -> Result<LibraryReport, PlanError> {
    let (nccl, call) = nccl(name, problem)?;
    let c = &problem.collective;
    let times = nccl.times(call, counted(problem, c.bytes())).map_err(PlanError::NoLibraryTime)?;
    let best = times.first().ok_or_else(|| PlanError::NoLibrary(format!("{name} enables no algorithm here")))?;
    let bandwidths = c.kind.bandwidths(c.ranks, c.bytes(), best.seconds);
    let note = if best.is_fitted {
        format!("the choice is that of NCCL's own model ({VERSION}); the time is by prices fitted to measurements")
    } else {
        format!("choice and time are those of NCCL's own model ({VERSION}); the time is not measured")
    };
    Ok(LibraryReport {
        name: LIBRARIES[0],
        version: VERSION,
        algorithm: best.algorithm.name(),
        protocol: best.protocol.name(),
        channels: best.channels,
        channel_gb_per_second: best.channel,
        seconds: best.seconds,
        cost_seconds: best.cost_seconds,
        algbw: bandwidths.map(|b| b.algbw),
        busbw: bandwidths.map(|b| b.busbw),
        calibrated: best.is_fitted,
        notes: vec![note],
        choices: times.iter().map(choice).collect(),
        bits: None,
    })
}

fn choice(time: &Time) -> LibraryChoice {
    let steps = time.steps;
    LibraryChoice {
        algorithm: time.algorithm.name(),
        protocol: time.protocol.name(),
        channels: time.channels,
        channel_gb_per_second: time.channel,
        gb_per_second: time.bandwidth,
        latency_us: time.latency_us,
        cost_seconds: time.cost_seconds,
        seconds: time.seconds,
        calibrated: time.is_fitted,
        work: Work {
            blocks: steps.blocks,
            hops: steps.hops,
            network_hops: steps.network_hops,
            sent_bytes: steps.sent,
            worked_bytes: steps.worked,
        },
        prices: Prices {
            start_us: time.prices.start_us,
            hop_us: time.prices.hop_us,
            network_hop_us: time.prices.network_hop_us,
            ns_per_byte: time.prices.ns_per_byte,
        },
    }
}

/// Returns the best of the library's own algorithms for all sizes: the least predicted time. Where some times are
/// measured, only these and the library's own choice are compared.
///
/// # Errors
/// As [`library_choice`].
pub fn library_regions(name: &str, problem: &Problem) -> Result<Vec<LibraryRegion>, PlanError> {
    let (nccl, call) = nccl(name, problem)?;
    let best = |bytes: u64| -> Result<_, PlanError> {
        let times = nccl.times(call, counted(problem, bytes)).map_err(PlanError::NoLibraryTime)?;
        let is_measured = times.iter().any(|time| time.is_fitted);
        let compared = times.iter().enumerate().filter(|(at, time)| !is_measured || time.is_fitted || *at == 0);
        let least = compared.map(|(_, time)| time).min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        least
            .map(|time| (time.algorithm, time.protocol))
            .ok_or_else(|| PlanError::NoLibrary(format!("{name} enables no algorithm here")))
    };
    let mut found: Vec<(u64, _)> = vec![(0, best(1)?)];
    for power in 1..=MOST_POWER {
        let (mut low, mut high) = (1_u64 << (power - 1), 1_u64 << power);
        let last = best(high)?;
        if found.last().is_some_and(|(_, before)| *before == last) {
            continue;
        }
        for _ in 0..BISECTIONS {
            let middle = low.midpoint(high);
            if middle > low && best(middle)? == last {
                high = middle;
            } else {
                low = middle;
            }
        }
        found.push((high, last));
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
