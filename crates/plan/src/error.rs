//! The errors of the planner.

use unisono_algorithms::AlgorithmError;
use unisono_base::limits::OverLimit;
use unisono_collective::CollectiveError;
use unisono_lower::wafer::LowerError;
use unisono_machine::MachineError;
use unisono_schedule::{MoreNodes, stored::StoreError};

use crate::workload::WorkloadError;

#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum PlanError {
    #[error(transparent)]
    OverLimit(#[from] OverLimit),
    #[error(transparent)]
    Collective(#[from] CollectiveError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Algorithm(#[from] AlgorithmError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    Lower(#[from] LowerError),
    #[error("'{found}' is not a model; accepted are {accepted}")]
    Model { found: String, accepted: String },
    #[error("root {row},{col} names a PE of a grid; {machine} has ranks, so name one by its number")]
    NoGrid { row: u64, col: u64, machine: String },
    #[error("the schedule has no machine; name one with --machine, or in Python with schedule.on(machine)")]
    NoMachine,
    #[error(
        "the schedule has no placement on {machine}; place it with --machine, or in Python with schedule.on(machine)"
    )]
    NoPlacement { machine: String },
    #[error(
        "the schedule has switches among its nodes, and no placement states which of {machine} they are; plan it there"
    )]
    NoSwitches { machine: String },
    #[error("{machine} is of kind {kind}, which has no model of single schedules; simulate the schedule")]
    NoPrediction { machine: String, kind: String },
    #[error("{machine} is of kind {kind}, which offers {offers}; {purpose} machines that offer {needed}")]
    NotOffered { machine: String, kind: &'static str, offers: String, purpose: String, needed: &'static str },
    #[error("a number of ranks and a subset both choose the cores that take part; give one")]
    ShapeAndSubset,
    #[error("the number of nodes is 0; accepted are 1 or more")]
    NoNodes,
    #[error("the plan is for {machine}, of kind {kind}; a .plan file is for MPI, so plan for a machine of ranks")]
    NotForMpi { machine: String, kind: &'static str },
    #[error("places are for a network; {machine} is of kind {kind}")]
    NoPlaces { machine: String, kind: &'static str },
    #[error("{0}")]
    NoCertificate(String),
    #[error(
        "{kind} of {count} elements has a time and no schedule, since the buffers of a schedule hold at most {} \
         elements; plan at most {most} elements for a schedule",
        u32::MAX
    )]
    NoSchedule { kind: &'static str, count: u64, most: u64 },
    #[error("the schedule has {count} {what}; the part of the machine has {found} {places}")]
    OtherSize { count: u64, what: &'static str, found: u64, places: &'static str },
    #[error("{found}; {machine}, of kind {kind}, has none")]
    Switches { found: MoreNodes, machine: String, kind: &'static str },
    #[error("{found}; {machine} has no free switch that computes and has links to all neighbors of node {node}")]
    NoSwitchFor { found: MoreNodes, machine: String, node: usize },
    #[error("{found}; it runs only on the switches and accelerators that it was planned for; plan it for {machine}")]
    MovedSwitches { found: MoreNodes, machine: String },
    #[error("the schedule is placed on {placed} of {machine}, not on {asked}; plan it for that part")]
    OtherPart { machine: String, placed: String, asked: String },
    #[error("{algorithm} runs on the cores of {machine}, where only plans have times; {simulated} can be simulated")]
    OnCores { algorithm: String, machine: String, simulated: &'static str },
    #[error("{part} is not a part of {machine}; accepted is {accepted}")]
    Part { part: String, machine: String, accepted: &'static str },
    #[error("root {row},{col} is outside the grid {grid}; rows are 0 to {}, columns 0 to {}", rows - 1, cols - 1)]
    RootOffGrid { row: u64, col: u64, grid: String, rows: u32, cols: u32 },
    #[error("'{found}' is not a format; accepted are {accepted}")]
    Format { found: String, accepted: String },
    #[error("the library whose table {format} must hold: {reason}")]
    Library { format: &'static str, reason: String },
    #[error("{0}")]
    NoLibrary(String),
    #[error("{0}")]
    NoLibraryTime(String),
    #[error("'{found}' names no bits; accepted are ranks, place, size and ranks-count")]
    Bits { found: String },
    #[error("'ranks-count' is of a number of contributors, and none is given; state it, as a multiple of the ranks")]
    NoContributors,
    #[error("{found} contributors belong to 'ranks-count', and the bits asked for are '{bits}'; drop one of them")]
    Contributors { found: u32, bits: String },
    #[error("{reason}")]
    NotExpressible { reason: String },
    #[error(
        "no algorithm makes {kind} on shape {shape} of {machine}{hint}; `unisono algorithms --collective {kind}` lists \
         the machines of each"
    )]
    NoCandidate { kind: String, shape: String, machine: String, hint: String },
    #[error("{} has no time by {model}: {message}", named(algorithm))]
    NotTimed { algorithm: String, model: &'static str, message: String },
    #[error("{} failed its proof: {message}", named(algorithm))]
    NotProved { algorithm: String, message: String },
}

/// Returns the name of a schedule for messages: its algorithm, if it has one.
fn named(algorithm: &str) -> String {
    if algorithm.is_empty() { "the schedule".to_owned() } else { format!("a schedule of {algorithm}") }
}

impl PlanError {
    /// Returns true if the request is valid but not supported.
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            Self::NoCandidate { .. }
                | Self::NotExpressible { .. }
                | Self::NoPrediction { .. }
                | Self::NotForMpi { .. }
                | Self::NoLibraryTime(_)
                | Self::NotOffered { .. }
                | Self::Lower(LowerError::Dtype { .. } | LowerError::Packed { .. })
                | Self::Algorithm(AlgorithmError::Unsupported { .. })
        )
    }
}
