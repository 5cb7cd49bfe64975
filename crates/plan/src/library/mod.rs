//! A library's own choice for a problem, with its time, for comparison with the plan.
//!
//! NCCL and RCCL choose by cost models (`nccl.rs`, `rccl.rs`). MPI libraries choose by tables (`openmpi.rs`,
//! `mpich.rs`), and their algorithms are timed like candidates of a plan (`mpi.rs`).

mod mpi;
mod mpich;
mod nccl;
mod nccl_bits;
mod openmpi;
mod rccl;

use serde::Serialize;
use unisono_cost::{
    network::nccl::{StepPrices, Steps},
    tightest,
};

use crate::{Bits, PlanError, Problem};

pub use nccl::library_regions;
pub use nccl_bits::{LibraryBits, LibraryLoss, LibrarySettings};

/// The libraries whose own choice is known here.
pub const LIBRARIES: [&str; 4] = ["mpich", "nccl", "openmpi", "rccl"];

/// The choice of a library, for `unisono plan --as`. Values that the library's model does not have are `None`. MPI
/// libraries choose by rules, so they have no protocol and no channels.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct LibraryReport {
    pub name: &'static str,
    /// The library's version, and the source of its rules or model.
    pub version: &'static str,
    pub algorithm: &'static str,
    pub protocol: Option<&'static str>,
    pub channels: Option<u32>,
    pub channel_gb_per_second: Option<f64>,
    /// The predicted time of the chosen algorithm; `None` if Unisono has no equivalent algorithm.
    pub seconds: Option<f64>,
    /// The library's own estimate of the time, by which it chooses.
    pub cost_seconds: Option<f64>,
    pub algbw: Option<f64>,
    pub busbw: Option<f64>,
    /// True if the time is computed from prices that were fitted to measurements of this machine.
    pub calibrated: bool,
    /// Sentences on the source of the choice and of its time.
    pub notes: Vec<String>,
    /// All choices that the library's model compares, in ascending order of cost; empty for tables.
    pub choices: Vec<LibraryChoice>,
    /// The settings with which results have the requested property of bits; `None` if none was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<LibraryBits>,
}

impl LibraryReport {
    /// Returns the part of a report that states a choice.
    fn of(choice: &LibraryChoice) -> Self {
        Self {
            algorithm: choice.algorithm,
            protocol: Some(choice.protocol),
            channels: choice.channels,
            channel_gb_per_second: choice.channel_gb_per_second,
            seconds: Some(choice.seconds),
            cost_seconds: Some(choice.cost_seconds),
            calibrated: choice.calibrated,
            ..Self::default()
        }
    }
}

/// An algorithm and a protocol that a library enables.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct LibraryChoice {
    pub algorithm: &'static str,
    pub protocol: &'static str,
    pub channels: Option<u32>,
    pub channel_gb_per_second: Option<f64>,
    /// The rate of a call's bytes by the library's model, in GB/s.
    pub gb_per_second: f64,
    pub latency_us: f64,
    /// The library's own estimate. `seconds` equals it if there is no other prediction.
    pub cost_seconds: f64,
    pub seconds: f64,
    pub calibrated: bool,
    /// The amounts of work whose prices can be fitted; `None` if the library's model has no such prices.
    pub work: Option<Steps>,
    pub prices: Option<StepPrices>,
}

/// The algorithm that a tuning file names for calls from `first_bytes` to `last_bytes` (`None` for no limit), counted
/// as in MPI.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LibraryRegion {
    pub first_bytes: u64,
    pub last_bytes: Option<u64>,
    pub algorithm: &'static str,
    pub protocol: &'static str,
}

/// Returns a library's own choice.
///
/// # Errors
/// Returns an error if the library is unknown or has no algorithm for the collective, or the machine lacks a fact that
/// the library's model reads.
pub fn library_choice(name: &str, problem: &Problem) -> Result<LibraryReport, PlanError> {
    let found = match name {
        "mpich" => mpi::choice(&mpich::MPICH, problem),
        "nccl" => nccl::choice(problem),
        "openmpi" => mpi::choice(&openmpi::OPEN_MPI, problem),
        "rccl" => rccl::choice(problem),
        other => {
            let accepted = LIBRARIES.join(", ");
            Err(PlanError::NoLibrary(format!("the own choice of '{other}' is not known; accepted are {accepted}")))
        }
    };
    let report = within_bound(found?, problem);
    let c = &problem.collective;
    let bandwidths = report.seconds.and_then(|seconds| c.kind.bandwidths(c.ranks, c.bytes(), seconds));
    Ok(LibraryReport { algbw: bandwidths.map(|b| b.algbw), busbw: bandwidths.map(|b| b.busbw), ..report })
}

/// The relative tolerance in comparisons of times.
const SLACK: f64 = 1e-9;

/// Raises all times of the report to at least the lower bound of the machine, which the models of the libraries ignore.
fn within_bound(mut report: LibraryReport, problem: &Problem) -> LibraryReport {
    let c = &problem.collective;
    // Without elements there are no messages, and a bound is that of an empty one.
    let Some(found) = tightest(&problem.cost()).filter(|_| c.bytes() > 0) else { return report };
    let least = found.time;
    for choice in &mut report.choices {
        choice.seconds = choice.seconds.max(least.seconds);
    }
    if let Some(seconds) = report.seconds.filter(|&seconds| seconds < least.seconds * (1.0 - SLACK)) {
        report.notes.push(format!(
            "{} predicts {:.3} µs, less than the links of this machine allow; the time is their lower bound ({})",
            report.name,
            seconds * 1e6,
            found.name()
        ));
        report.seconds = Some(least.seconds);
    }
    report
}

/// Returns the settings with which the results of a library have a property of bits.
///
/// # Errors
/// Returns an error if the order of the library's additions is unknown, or an error of [`library_choice`].
pub fn library_bits(name: &str, problem: &Problem, bits: Bits) -> Result<LibraryBits, PlanError> {
    if name == "nccl" {
        return nccl_bits::settings_with(problem, bits);
    }
    Err(PlanError::NoLibrary(format!("the order in which {name} adds is not known, only that of nccl; drop --bits")))
}
