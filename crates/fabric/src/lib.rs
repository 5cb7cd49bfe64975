//! A network of hosts, switches and cables that carries packets by a clock that the caller reads.
//!
//! [`Topology`] is the text form; [`Network`] has the queues. Neither calls the system, so tests choose the time. The
//! program `unisono-fabric` (`main.rs`) connects a network to the network devices of namespaces.

pub mod network;
pub mod topology;

pub use network::{Network, Port};
pub use topology::{Cable, Topology};
