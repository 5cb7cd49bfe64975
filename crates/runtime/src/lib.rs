//! Runs what one rank does in a stored schedule, over a transport. It plans nothing, and once an [`Executor`] is made
//! it allocates nothing.
//!
//! [`Transport`] is all that a run needs of the outside: messages between ranks, and copies and sums of local memory.
//! [`local`] is a transport inside one process, which delivers messages in an order drawn from a seed.

mod blocks;
mod executor;
pub mod local;
mod transport;

pub use blocks::Blocks;
pub use executor::{Executor, Progress};
pub use transport::{Buffer, Slice, Transport};
