//! Fuzzing in process, on the stable compiler.
//!
//! A [`FuzzTarget`] runs one input: a text for a reader, the bytes of a plan, or draws from which it builds a
//! structured problem. A panic is a failure, and so is exceeding the limit of CPU time or memory. [`guard`] runs an
//! input under these limits, [`mutate`] makes new inputs from old ones, and [`coverage`] finds inputs that reach new
//! code if the compiler counts edges, as in `make fuzz`. [`session`] is the loop. The program `unisono-fuzz` runs
//! sessions in child processes, so that an abort ends one input, not the run. Inputs that once failed are files of
//! `corpus/`, named after their fault.

pub mod corpus;
pub mod coverage;
mod draws;
pub mod guard;
#[doc(hidden)]
pub mod internals;
pub mod memory;
pub mod mutate;
mod plan_bytes;
mod random;
pub mod session;
mod target;
pub mod targets;
mod uses;

pub use draws::Draws;
pub use random::Random;
pub use target::{Form, FuzzTarget};
pub use targets::TARGETS;
