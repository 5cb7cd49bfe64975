//! Reduces over several concurrent trees, each for a part of the vector. A PE has a lane for each tree and receives
//! from its children alternately, element by element or in chunks of `chunk` elements.
//!
//! Every edge goes along the row first or along the column first, chosen so that no link carries much more than other
//! links. Lowering gives every edge its own color along its path, so no router switches.

mod emit;
mod estimate;
mod quad;
mod routes;
mod tree;
mod unit;

pub(crate) use emit::depth_cycles;
pub use emit::{CHUNK, most_children, shares};
use emit::{build, chunk, supports};
use estimate::{estimate, estimate_steps};
pub use quad::{Lines, MERGE, View, quad};
pub use tree::{Edge, Tree};
pub use unit::{GridTrees, Over};

use routes::Ways;
pub use routes::{links, spare_turns};
