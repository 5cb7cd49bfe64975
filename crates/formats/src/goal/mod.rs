//! GOAL, the language of LogGOPSim: reads and writes a task graph as text.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//! l1: calc 100
//! l2: send 8b to 1 tag 0
//! l2 requires l1
//! }
//! rank 1 {
//! l1: recv 8b from 0 tag 0
//! }
//! ```
//!
//! Source: "Group Operation Assembly Language - A Flexible Way to Express Collective Communication", Hoefler, Siebert,
//! Lumsdaine, 2009, and the grammar of LogGOPSim's own reader. GOAL has no data. A reduction of a schedule becomes a
//! calc with the nanoseconds that the reduction takes on the schedule's machine.

mod error;
mod format;
pub(crate) mod labels;
pub(crate) mod line;
mod program;
mod read;
mod write;

pub use error::{Problem, ReadError};
pub use format::Goal;
pub use program::FORMAT;
pub use read::read;
pub use write::write;
