//! The integration tests of the crate, as one binary.
#![allow(unsafe_code, reason = "messages and collectives are copies between addresses")]

mod calls;
mod library_call;
mod local;
mod order;
mod programs;
#[path = "../../../schedule/tests/all/soak.rs"]
mod soak;
