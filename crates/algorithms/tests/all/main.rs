//! The integration tests of the crate, as one binary.

mod multiplying;
mod registers;
