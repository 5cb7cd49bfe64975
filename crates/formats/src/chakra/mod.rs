//! Chakra execution traces of a schedule: one file for each rank, with its sends, receives and reductions.
//!
//! A trace has no addresses and no operators. A send and a receive have their bytes, and as tag the number of their
//! stream; a reduction becomes a compute node with the bytes of its operands (`tensor_size`) and one operation for each
//! element (`num_ops`). Nodes are the tasks of [`unisono_lower::tasks::from_schedule`], so a trace that is read back
//! takes the same time.
//!
//! Source: `schema/protobuf/et_def.proto` (github.com/mlcommons/chakra); the keys of custom collectives are those of
//! the system file of ASTRA-sim 2.

mod format;
mod tasks;

pub use format::{AstraSim, Chakra};
pub use tasks::{NotTasks, Units, from_tasks, to_tasks};
