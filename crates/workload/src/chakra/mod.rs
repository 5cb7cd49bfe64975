//! The reader and writer of Chakra execution traces: one file for each rank, `NAME.RANK.et`, optionally compressed by
//! gzip. The JSON form, `NAME.RANK.json`, is also read.
//!
//! A node computes, takes part in a collective of its process group, sends or receives a message, or only orders other
//! nodes. Work of the host (`is_cpu_op`) takes no time, because the host runs ahead of the device. The bytes of a
//! collective are those of its input, as in ASTRA-sim.

mod comm_groups;
mod json;
mod messages;
mod order;
mod rank;
mod ranks;
mod write;

pub use ranks::{is_it, read};
pub use write::write;
