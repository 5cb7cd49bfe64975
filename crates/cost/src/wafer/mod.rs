//! Wafers: cost terms of any placed schedule, models that make times of them, and lower bounds.

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
    /// T_R, cycles.
    pub ramp_latency: u32,
    pub clock_mhz: f64,
}

impl WaferPart {
    /// Cycles of one step of the depth: 2 T_R + 1.
    pub fn depth_cycles(&self) -> f64 {
        f64::from(2 * self.ramp_latency + 1)
    }
}
