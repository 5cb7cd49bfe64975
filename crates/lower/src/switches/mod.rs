//! The registers of switches that reduce: a collective as each switch is configured for it; the check of them, and the schedule
//! that they are.
//!
//! "Accelerating Allreduce with in-network reduction on Intel PIUMA", "Configuration Registers" and "Request-response
//! Mechanism". Requests carry inputs and partial results towards the root of a tree, responses carry results away from it.

mod check;
mod load;
mod registers;
mod schedule;
mod text;

pub use check::check;
pub use load::{LinkLoads, check_together, loads};
pub use registers::{Configured, ENGINE, Embedding, NONE, REQUEST, RESPONSE, Registers, ports};
pub use schedule::schedule;
pub use text::{RegistersError, parse, print};
