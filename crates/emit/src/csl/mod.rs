//! CSL, the language of Cerebras' wafers: a project for SDK 1.0 and the WSE-2 from a wafer program, and back.
//!
//! * [`emit`] writes `layout.csl`, one `pe_N.csl` a class of PEs, `run.py`, `commands.sh` and `README.md`, or refuses
//!   with the reason.
//! * [`emit_measured`] writes the same with functions that measure the time, and `measure.py`.
//! * [`emit_module`] writes modules that an own program imports.
//! * [`Project::parse`] reads the subset of CSL that [`emit`] writes; [`read`] makes a wafer program of it again, equal
//!   to [`normalised`] of what was emitted.
//! * [`check`] holds a project against the rules of the language and of the fabric that are known without the compiler.
//!
//! Nothing here was compiled with the vendor's SDK; every emitted file says so. Sources: the vendor's public examples
//! and guide, and the code of "Near-Optimal Wafer-Scale Reduce" that ran on a CS-2. `docs/csl.md` tells what is
//! emitted.

mod check;
mod normal;
pub(crate) mod order;
mod read;
mod target;
mod unit;
pub(crate) mod write;

pub use check::{Finding, check};
pub use normal::normalised;
pub use read::{Project, ReadError, read};
pub use target::SdkTarget;
pub use unit::{Csl, CslMeasured, CslModule};
use write::there_and_back;
pub use write::{Files, emit, emit_measured, emit_module};
