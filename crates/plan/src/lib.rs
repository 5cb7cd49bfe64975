//! The planner. It ranks every algorithm, with its parameters, for a problem by the model of the machine.
//!
//! All machines use one path: `problem.rs` opens the [`Target`] of a request and checks the collective; `candidates.rs`
//! lists, times and ranks algorithms; `plan.rs` chooses the best and builds its schedule on first use; `report.rs`
//! reports it with its lower bounds; and `run.rs` simulates a proved schedule. Each kind of machine implements
//! [`Target`] in a file of `targets/`.

// The interface refuses numbers that do not fit; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod bits;
mod bound_certificate;
mod candidates;
mod compositions;
mod error;
mod expressible;
mod fastest_file;
mod forests;
mod format;
#[doc(hidden)]
pub mod internals;
mod library;
mod messages;
mod options;
mod part;
mod pieces;
mod plan;
mod problem;
pub mod program;
mod registry;
mod report;
mod run;
mod stored;
mod sweep;
mod target;
mod targets;
pub mod tuning;
pub mod workload;
mod written;

pub use bits::Bits;
pub use bound_certificate::{BoundCertificate, BoundProof};
pub use candidates::{TimeSource, Timed};
pub use error::PlanError;
pub use expressible::{Expressible, chunks_of_code};
pub use forests::{ChunkTree, ForestTrees, Front, FrontPoint};
pub use format::Format;
pub use library::{
    LIBRARIES, LibraryBits, LibraryLoss, LibraryRegion, LibraryReport, LibrarySettings, library_bits, library_choice,
    library_regions,
};
pub use options::{PlanOptions, plan_with};
pub use part::Part;
pub use plan::{Plan, plan, plan_at, plan_best, plan_for};
pub use problem::{Problem, Request, Root};
pub use registry::{AlgorithmReport, registry};
pub use report::{BoundReport, CandidateReport, MemoryReport, PhaseReport, PlanReport, Prediction, bounds, predict};
pub use run::{
    Checked, Finish, Records, Run, RunError, RunOptions, Simulator, Trace, Value, simulate, simulate_beside,
};
pub use stored::stored;
pub use sweep::{Point, sweep_point};
pub use target::{Details, Refined, Target};
pub use targets::{Placing, TARGETS, TargetKind, kind_of, measure_on_fabric, notes, part_of, place, require};
pub use written::written;
