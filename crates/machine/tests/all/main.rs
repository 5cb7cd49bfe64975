//! The integration tests of the crate, as one binary.

mod allocation;
mod network;
