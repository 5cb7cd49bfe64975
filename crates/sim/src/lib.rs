//! Simulators. They run what others chose, and choose nothing.

// A number that does not fit is refused where it enters; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

pub mod collective_engine;
pub mod endpoint;
pub mod fabric;
#[doc(hidden)]
pub mod internals;
pub mod network;
mod queue;
