//! The integration tests of the crate, as one binary.

mod diagnostic;
mod excerpt;
mod interrupt;
mod keyed;
mod limits;
mod narrow;
mod parallel;
mod queue;
mod units;
