//! The integration tests of the crate, as one binary.

#[path = "../../../schedule/tests/all/cpu.rs"]
mod cpu;
mod filetests;
mod placement;
mod route;
mod tasks;
