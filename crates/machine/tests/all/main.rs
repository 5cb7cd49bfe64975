//! The integration tests of the crate, as one binary.

mod allocation;
mod in_network {
    mod layout;
    mod nodes;
}
mod machine;
mod network;
#[path = "../../../schedule/tests/all/soak.rs"]
mod soak;
