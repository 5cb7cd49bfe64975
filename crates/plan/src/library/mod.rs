//! A library's own choice for a problem, with the time that it takes, beside the plan.
//!
//! NCCL and RCCL choose by their cost models (`nccl.rs`, `rccl.rs`). MPI libraries choose by tables (`openmpi.rs`,
//! `mpich.rs`), whose algorithms are timed as candidates of a plan are (`mpi.rs`).

mod mpi;
mod mpich;
mod nccl;
mod nccl_bits;
mod openmpi;
mod rccl;

use serde::Serialize;

use crate::{Bits, PlanError, Problem};

pub use nccl::library_regions;
pub use nccl_bits::{LibraryBits, LibraryLoss, LibrarySettings};

/// The libraries whose own choice is known.
pub const LIBRARIES: [&str; 4] = ["mpich", "nccl", "openmpi", "rccl"];

/// The choice of a library. Values that its model does not have are `None`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LibraryReport {
    pub name: &'static str,
    /// The source of the rules or of the model.
    pub version: &'static str,
    pub algorithm: &'static str,
    pub protocol: Option<&'static str>,
    pub channels: Option<u32>,
    pub channel_gb_per_second: Option<f64>,
    /// The predicted time of the choice.
    pub seconds: Option<f64>,
    /// The library's own estimate, by which it chooses.
    pub cost_seconds: Option<f64>,
    pub algbw: Option<f64>,
    pub busbw: Option<f64>,
    /// True if the time is from prices that were fitted to measurements of this machine.
    pub calibrated: bool,
    /// Sentences on the source of the choice and of its time.
    pub notes: Vec<String>,
    /// All that the library's model compares, least cost first; empty for rules.
    pub choices: Vec<LibraryChoice>,
    /// The settings that give a property of the bits, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<LibraryBits>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LibraryChoice {
    pub algorithm: &'static str,
    pub protocol: &'static str,
    pub channels: Option<u32>,
    pub channel_gb_per_second: Option<f64>,
    /// The rate of the bytes, by the library's model.
    pub gb_per_second: f64,
    pub latency_us: f64,
    pub cost_seconds: f64,
    pub seconds: f64,
    pub calibrated: bool,
    /// The work to which prices are fitted; `None` if the library's model has no such prices.
    pub work: Option<Work>,
    pub prices: Option<Prices>,
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
    /// The bytes that are sent of one block.
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

/// Returns the own choice of a library.
///
/// # Errors
/// The library is not known, has no algorithm for the collective, or the machine does not state what its model reads.
pub fn library_choice(name: &str, problem: &Problem) -> Result<LibraryReport, PlanError> {
    match name {
        "mpich" => mpi::choice(&mpich::MPICH, problem),
        "nccl" => nccl::choice(problem),
        "openmpi" => mpi::choice(&openmpi::OPEN_MPI, problem),
        "rccl" => rccl::choice(problem),
        other => {
            let accepted = LIBRARIES.join(", ");
            Err(PlanError::NoLibrary(format!("the own choice of '{other}' is not known; accepted are {accepted}")))
        }
    }
}

/// Returns the settings of a library with which its sums have a property of the bits.
///
/// # Errors
/// The order in which the library adds is not known, or as [`library_choice`].
pub fn library_bits(name: &str, problem: &Problem, bits: Bits) -> Result<LibraryBits, PlanError> {
    if name == "nccl" {
        return nccl_bits::settings_with(problem, bits);
    }
    Err(PlanError::NoLibrary(format!("the order in which {name} adds is not known, only that of nccl; drop --bits")))
}
