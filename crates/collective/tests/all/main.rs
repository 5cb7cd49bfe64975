//! The integration tests of the crate, as one binary.

mod decision;
mod spec;
