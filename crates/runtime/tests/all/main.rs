//! The integration tests of the crate, as one binary.

mod every_algorithm;
mod judge;
mod proven;
mod random;
mod slots;
#[path = "../../../schedule/tests/all/soak.rs"]
mod soak;
