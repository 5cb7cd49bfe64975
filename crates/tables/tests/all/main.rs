//! The integration tests of the crate, as one binary.

mod files;
mod mpich_table;
#[path = "../../../schedule/tests/all/soak.rs"]
mod soak;
