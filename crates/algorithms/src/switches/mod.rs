//! Units of algorithms on switches that reduce: trees inside nodes and between nodes, grown toward a root, and their
//! registers.
//!
//! Source: "Accelerating Allreduce with in-network reduction on Intel PIUMA", "Allreduce Embedding".

mod chain;
mod grow;
mod identifiers;
pub(crate) mod over_links;
mod packing;
mod several;
mod tree;
mod ways;

pub use identifiers::{Wanted, embed_together};
pub use packing::{Packed, pack};
pub use unisono_machine::in_network::Site;

pub(crate) use chain::chain;
pub(crate) use grow::TreeSlice;
pub(crate) use identifiers::used_up;
pub(crate) use several::several;
pub(crate) use tree::shortest;
