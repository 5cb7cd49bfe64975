//! Switches that reduce: the placement of schedules on them, and the registers to which schedules are lowered.
//!
//! Requests carry inputs and partial results towards the root of a tree. Responses carry results away from the root.
//! Source: "Accelerating Allreduce with in-network reduction on Intel PIUMA", sections "Configuration Registers" and
//! "Request-response Mechanism".

mod error;
mod load;
mod lower;
mod placement;
mod raise;
mod registers;

pub use error::RegisterError;
pub use load::{LinkLoads, check_together, loads};
pub use lower::lower;
pub(crate) use placement::channels;
pub use placement::{SwitchPlacement, VirtualChannel};
pub use raise::{RaiseError, raise};
pub use registers::{Configured, ENGINE, Embedding, NONE, REQUEST, RESPONSE, Registers, ports};
