//! Units that several algorithms among ranks share, and the trait of these algorithms.

mod blocks;
pub mod board_trees;
pub mod circulant;
pub mod extents;
mod fold;
pub mod halving;
pub mod hamilton;
mod lanes;
pub mod pipelined;
pub mod radix;
mod ring;
pub mod segments;
pub mod shapes;
mod shifts;
mod sums;
pub mod torus_trees;
pub mod tree;
mod unit;

pub use blocks::Blocks;
pub use extents::Extents;
pub use fold::Fold;
pub use lanes::Lanes;
pub use ring::{Around, RING_COLLECTIVES, RankRing, exchanges_around};
pub use shifts::shifts;
pub use sums::Sums;
pub use unit::{Among, RankAlgorithm, build, profile, supports};
