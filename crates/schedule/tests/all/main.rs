//! The integration tests of the crate, as one binary.

mod embed;
mod judge;
mod races;
mod random;
mod soundness;
