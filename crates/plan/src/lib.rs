//! The planner: every algorithm that applies, over its parameters, ranked by the model it is handed.

// A number that does not fit is refused where it enters; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

pub mod endpoint;
mod error;
pub mod exchange;
pub mod in_network;
pub mod network;
mod planner;
mod report;
mod request;
mod sweep;
pub mod workload;

pub use error::PlanError;
pub use planner::{Chosen, Plan, plan};
pub use report::{BoundReport, CandidateReport, PhaseReport, PlanReport, bounds, predict};
pub use request::Request;
pub use sweep::{Point, sweep_point};
