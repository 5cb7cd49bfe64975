//! The integration tests of the crate, as one binary.

mod collective_engine;
mod collective_engine_oracle;
mod common;
mod endpoint_goal;
mod endpoint_models;
mod endpoint_oracle;
mod fabric;
mod fabric_every_algorithm;
mod fabric_measure;
mod fabric_oracle;
mod fabric_skips;
mod network;
mod network_plans;
mod endpoint {
    mod noise;
}
#[path = "../../../schedule/tests/all/soak.rs"]
mod soak;
