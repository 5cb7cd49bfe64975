//! CSL, the language of Cerebras' wafers: writes a wafer program as a project for SDK 1.0 and the WSE-2, or SDK 2 and
//! the WSE-3. [`emit`] writes layout, PE programs, run script and a description; [`emit_measured`] adds functions that
//! measure the time; [`emit_module`] writes modules that a user's program imports. Each returns an error if the target
//! cannot hold the program. Begin with [`Csl`], which lowers a schedule and writes it; then read the head of `write`
//! and [`SdkTarget`], which has the facts of the targets.
//!
//! The emitted code has not been compiled with the vendor's SDK, and every emitted file contains this statement.
//! Sources: the vendor's public examples and guide, and the code of "Near-Optimal Wafer-Scale Reduce" that ran on a
//! CS-2. `docs/csl.md` describes the emitted files.

// A number that does not fit is rejected on input; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod format;
#[doc(hidden)]
pub mod internals;
mod normal;
mod order;
mod target;
mod write;

pub use format::{CSL, CSL_MEASURED, CSL_MODULE, Csl};
pub use target::SdkTarget;
pub use write::{Files, emit, emit_measured, emit_module};
