//! Machine descriptions: numbers with units, read from TOML. This crate does not depend on schedules.

// Numbers that do not fit are refused when they are read; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod endpoint;
mod error;
mod grid;
pub mod in_network;
#[doc(hidden)]
pub mod internals;
mod machine;
pub mod network;
mod presets;
mod wafer;

pub use endpoint::{Endpoint, EndpointModel, Level, Parameters, Protocol, RankOrder};
pub use error::MachineError;
pub use grid::{Direction, Grid, Shape};
pub use in_network::InNetwork;
pub use machine::{Description, Machine, MachineKind, MachineText};
pub use presets::{PRESETS, Preset};
pub use wafer::{Architecture, Wafer};

/// The kinds of machines, sorted by name.
pub const KINDS: &[MachineKind] = &[
    MachineKind::of::<Endpoint>(),
    MachineKind::of::<InNetwork>(),
    MachineKind::of::<network::Network>(),
    MachineKind::of::<Wafer>(),
];
