//! The integration tests of the crate, as one binary.

mod chain;
mod common;
mod devices;
mod direct;
mod errors;
mod faults;
mod full;
mod moved;
mod operations;
mod paper;
mod points;
mod random;
mod region_map;
mod worked;
mod rules {
    mod full;
}
#[path = "../../../schedule/tests/all/soak.rs"]
mod soak;
mod space;
mod split;
