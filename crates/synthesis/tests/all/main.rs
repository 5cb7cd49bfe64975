//! The integration tests of the crate, as one binary.

mod arborescence;
mod arrivals;
mod common;
mod concurrent;
mod cut;
mod fabric;
mod graph;
mod growth;
mod least_price;
mod packing;
mod partition;
mod replay;
mod scatter;
mod slots;
#[path = "../../../schedule/tests/all/soak.rs"]
mod soak;
mod spanning;
mod symmetry;
mod timetable;
mod tree_cache;
