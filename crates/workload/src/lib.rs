//! Programs that compute and communicate, as a graph, and the readers of other tools' files.
//!
//! All readers of this crate build a [`WorkloadGraph`]: [`hlo`] from compiled XLA programs, [`chakra`] and [`kineto`]
//! from traces of runs.

// A number that does not fit is refused when it is read; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod accelerator;
pub mod chakra;
mod circle;
mod error;
mod graph;
mod groups;
pub mod hlo;
pub mod kineto;
mod meetings;
mod packed;
mod pairs;
mod read;

pub use accelerator::Accelerator;
pub use error::{Place, ReadError};
pub use graph::{Choice, Collected, Compute, Queues, RankClass, Work, WorkNode, WorkloadGraph};
pub use groups::{Groups, GroupsError};
pub use hlo::Finding;
pub use pairs::Unmatched;
pub use read::{Format, SourceFile, read, read_also};
