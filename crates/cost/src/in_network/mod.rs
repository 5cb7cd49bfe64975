//! Times on machines whose switches reduce: alpha + beta m by given registers, algorithms on the cores, and bounds.
//!
//! Source: "Accelerating Allreduce with in-network reduction on Intel PIUMA", section "Analysis".

pub mod bounds;
mod embedded;
mod host;

pub use embedded::{Hockney, embedded, embedded_ns, eq2_ns};
pub use host::{Host, host_ns};
