//! Emitters: one file each, registered in [`EMITTERS`]. An emitter may refuse a schedule, with the reason, and
//! never alters its meaning.

pub mod csl;

use unisono_lower::Placed;

/// Why a target cannot express a schedule: what was found, and what the target accepts.
#[derive(Debug, thiserror::Error)]
#[error("{target} cannot express this schedule: {reason}")]
pub struct Refused {
    pub target: &'static str,
    pub reason: String,
}

/// One output format.
pub trait Emitter: Sync {
    fn name(&self) -> &'static str;
    fn summary(&self) -> &'static str;
    fn reference(&self) -> &'static str;
    /// Says no, with the reason, before anything is written.
    fn supports(&self, placed: &Placed) -> Result<(), Refused>;
    /// Files by relative path.
    fn emit(&self, placed: &Placed) -> Result<Vec<(String, String)>, Refused>;
}

/// Sorted by name.
pub const EMITTERS: &[&dyn Emitter] = &[];
