//! Emitters: one folder or file each, registered in [`EMITTERS`]. An emitter may refuse a schedule, with the reason, and
//! never alters its meaning.

pub mod csl;
pub mod goal;

use unisono_lower::{File, wafer::LowerError};

/// Why a target cannot express a schedule: what was found, and what the target accepts.
#[derive(Debug, thiserror::Error)]
#[error("{target} cannot express this schedule: {reason}")]
pub struct Refused {
    pub target: &'static str,
    pub reason: String,
}

impl Refused {
    fn lowering(target: &'static str, error: &LowerError) -> Self {
        Self { target, reason: error.to_string() }
    }
}

/// Files by relative path.
pub type Files = Vec<(String, String)>;

/// One output format.
pub trait Emitter: Sync {
    fn name(&self) -> &'static str;
    fn summary(&self) -> &'static str;
    fn reference(&self) -> &'static str;
    /// The files, or why there are none. What was written is checked before it is handed out.
    ///
    /// # Errors
    /// The reason why the target cannot express the schedule.
    fn emit(&self, file: &File) -> Result<Files, Refused>;
}

/// Sorted by name.
pub const EMITTERS: &[&dyn Emitter] = &[&csl::Csl, &goal::Goal];
