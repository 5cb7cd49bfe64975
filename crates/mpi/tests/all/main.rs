//! The integration tests of the crate, as one binary.
#![expect(unsafe_code, reason = "the interfaces are those of C")]

mod abi;
mod conditions;
mod home;
mod kernels;
mod learned;
mod parts;
mod patience;
mod route;
mod shared;
mod switch;
mod watch;
