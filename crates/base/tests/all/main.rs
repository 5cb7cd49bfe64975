//! The integration tests of the crate, as one binary.

mod excerpt;
mod interrupt;
mod limits;
mod narrow;
mod units;
