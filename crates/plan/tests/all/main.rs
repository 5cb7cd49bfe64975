//! The integration tests of the crate, as one binary.

mod best;
mod bound_certificate;
mod chakra;
mod charges;
mod choices;
mod circulant;
mod common;
mod concurrent_flow;
mod csl_choices;
#[expect(dead_code, reason = "a module that the tests of two crates share")]
#[path = "../../../csl/tests/all/interpreter/mod.rs"]
mod csl_interpreter;
mod discovered;
mod every_algorithm;
mod every_rank_algorithm;
mod forest;
mod guidelines;
mod large;
mod levels;
mod lowering;
mod multiplying;
mod mutations;
mod names;
mod near_bounds;
mod networks;
mod paper;
mod phases;
mod program;
mod random_choices;
mod reducing_switches;
mod rounds;
mod simulable;
#[path = "../../../schedule/tests/all/soak.rs"]
mod soak;
mod stored;
mod sweeps;
mod thread_blocks;
mod torus_trees;
mod tuning;
mod workload;
mod workload_graph;
