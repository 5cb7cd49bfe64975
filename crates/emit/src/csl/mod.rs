//! CSL, the language of Cerebras' wafers: a project for SDK 1.0 and the WSE-2 from a wafer program.
//!
//! * [`emit`] writes `layout.csl`, one `pe_N.csl` a class of PEs, `run.py`, `commands.sh` and `README.md`, or refuses
//!   with the reason.
//! * [`emit_measured`] writes the same with functions that measure the time, and `measure.py`.
//! * [`emit_module`] writes modules that an own program imports.
//!
//! Nothing here was compiled with the vendor's SDK; every emitted file says so. Sources: the vendor's public examples
//! and guide, and the code of "Near-Optimal Wafer-Scale Reduce" that ran on a CS-2. `docs/csl.md` describes the
//! emitted files.

mod normal;
pub(crate) mod order;
mod target;
mod unit;
pub(crate) mod write;

pub use target::SdkTarget;
pub use unit::{Csl, CslMeasured, CslModule};
pub use write::{Files, emit, emit_measured, emit_module};
