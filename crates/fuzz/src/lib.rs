//! Fuzzing in process, on the stable compiler.
//!
//! A [`FuzzTarget`] runs one input: a text for a reader, the bytes of a plan, or draws from which it builds a
//! structured problem. A panic and an input over its bound of CPU time or memory are failures. [`guard`] runs an input
//! under these bounds, [`mutate`] makes new inputs from old ones, and [`coverage`] finds inputs that reach new code if
//! the compiler counts edges, as in `make fuzz`. [`session`] is the loop. The program `unisono-fuzz` runs sessions in
//! child processes, so that an abort ends one input and not the run. Inputs that failed once are files of `corpus/`,
//! named after their fault.

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
