//! The integration tests of the crate, as one binary.

mod filetests;
mod placement;
mod route;
mod tasks;
