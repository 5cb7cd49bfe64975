//! Simulators of schedules and programs that other crates have chosen.

// Numbers that do not fit are refused when they are read; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

pub mod collective_engine;
pub mod endpoint;
pub mod fabric;
#[doc(hidden)]
pub mod internals;
pub mod network;
