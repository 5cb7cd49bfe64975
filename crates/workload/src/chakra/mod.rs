//! Reads and writes Chakra execution traces: one file for each rank, `NAME.RANK.et`, optionally compressed by gzip. The
//! JSON form, `NAME.RANK.json`, is read too.
//!
//! A node computes, makes a collective with its process group, or only orders others. Work of the host (`is_cpu_op`)
//! takes no time, because it runs ahead of the device. The number of bytes of a collective is that of its input, as in
//! ASTRA-sim.

mod comm_groups;
mod json;
mod messages;
mod order;
mod rank;
mod ranks;
mod write;

pub use ranks::{is_it, read};
pub use write::write;
