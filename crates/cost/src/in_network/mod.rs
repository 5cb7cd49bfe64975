//! Time on switches that reduce: T(m) = alpha + beta m of given registers, algorithms on the cores, and bounds.
//!
//! "Accelerating Allreduce with in-network reduction on Intel PIUMA", "Analysis".

pub mod bounds;
mod embedded;
mod host;

pub use embedded::{Hockney, embedded, embedded_ns, eq1_ns, eq2_ns};
pub use host::{Host, host_ns};
