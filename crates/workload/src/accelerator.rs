//! The time of compute on an accelerator, by the roofline model.
//!
//! T = max(operations / peak rate, bytes / memory rate). Source: Williams, Waterman and Patterson, "Roofline: An
//! Insightful Visual Performance Model", CACM 52(4), 2009.

use crate::Compute;

/// The peak rate and the memory rate of an accelerator.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Accelerator {
    pub operations_per_second: f64,
    pub memory_bytes_per_second: f64,
}

impl Accelerator {
    /// Returns the seconds of a piece of compute; measured seconds are kept.
    pub fn seconds(&self, compute: &Compute) -> f64 {
        match *compute {
            Compute::Measured { seconds } => seconds,
            Compute::Counted { operations, bytes } => self.counted(operations, bytes),
            #[expect(clippy::cast_precision_loss, reason = "counts of operations and bytes are floating point")]
            Compute::Reduced { bytes, operations } => self.counted(operations as f64, bytes as f64),
        }
    }

    fn counted(&self, operations: f64, bytes: f64) -> f64 {
        (operations / self.operations_per_second).max(bytes / self.memory_bytes_per_second)
    }
}
