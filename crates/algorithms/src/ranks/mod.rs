//! What algorithms among ranks share: ranks that all reach each other by messages, on a cluster or a node.

mod unit;

pub use unit::{Among, RankAlgorithm};
