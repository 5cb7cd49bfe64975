//! The integration tests of the crate, as one binary.

mod msccl;
mod mscclpp;
#[path = "../../../schedule/tests/all/soak.rs"]
mod soak;
