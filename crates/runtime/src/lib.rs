//! The program of one rank of a stored schedule runs on a transport. The crate plans nothing, and an [`Executor`]
//! allocates nothing after its creation.
//!
//! [`Transport`] is the interface of a run to messages between ranks, and to copies and sums of local memory. [`local`]
//! is a transport inside one process, which delivers the messages of a [`Mail`] in an order drawn from a seed.

mod blocks;
mod executor;
pub mod local;
mod mail;
mod transport;

pub use blocks::Blocks;
pub use executor::{Executor, Progress};
pub use mail::{Delivery, Mail};
pub use transport::{Buffer, Slice, Transport};
