//! Cost: the terms of any placed schedule, models that compute times from them, and lower bounds. Nothing is simulated.
//!
//! Each kind of machine has a folder; [`Time`], [`Bound`] and its registry are common to all.

// Numbers too large for their types are refused when they are read; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod bound;
pub mod endpoint;
pub mod in_network;
#[doc(hidden)]
pub mod internals;
pub mod network;
mod time;
pub mod wafer;

pub use bound::{
    Bound, CONTAINED, CostProblem, Found, Standing, all as all_bounds, assumption, bounds, model_optimum, tightest,
};
pub use time::Time;

/// The lower bounds of each kind of machine.
pub const BOUNDS: &[&[&Bound]] =
    &[endpoint::bounds::BOUNDS, in_network::bounds::BOUNDS, network::bounds::BOUNDS, wafer::bounds::BOUNDS];
