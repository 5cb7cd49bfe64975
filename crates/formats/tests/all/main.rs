//! The integration tests of the crate, as one binary.

mod goal;
mod registers;
