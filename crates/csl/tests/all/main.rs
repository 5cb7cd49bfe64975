//! The integration tests of the crate, as one binary.

mod algorithms;
mod common;
mod interpreter;
mod measured;
mod module;
mod order;
mod projects;
mod ranges;
mod refused;
mod rules;
#[path = "../../../schedule/tests/all/soak.rs"]
mod soak;
mod sums;
mod wse3;
