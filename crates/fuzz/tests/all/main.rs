//! The integration tests of the crate, as one binary.

mod mutate;
mod plan_bytes;
mod quick;
#[path = "../../../schedule/tests/all/soak.rs"]
mod soak;
