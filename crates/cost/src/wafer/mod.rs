//! Wafers: cost terms of any placed schedule, models that compute times from them, and lower bounds.
//!
//! Terms are computed for each set of PEs that are connected by links in use, and a model uses the slowest set, because
//! a phase of an X-Y reduce runs on all rows at once. A message belongs to the phase that reads it. So the predicted
//! time of a schedule does not become too short by a division into phases.

pub mod bounds;
mod measure;
pub mod models;

use unisono_machine::Grid;

pub use measure::{PhaseLines, measure};
pub use models::{MODELS, Model, find_model};

/// The part of a wafer that runs a collective.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WaferPart {
    pub grid: Grid,
    /// The cycles that each message in a chain of dependent messages adds: [`unisono_machine::Wafer::depth_cycles`].
    pub depth_cycles: f64,
    pub clock_mhz: f64,
}
