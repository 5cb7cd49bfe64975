//! Lowered forms of schedules: placements of nodes and streams on a machine, with their checks; task graphs of messages
//! among ranks; and the registers of switches that reduce.

// Numbers too large for their types are refused when they are read; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod exchange;
mod grid_links;
mod grid_placement;
#[doc(hidden)]
pub mod internals;
mod json;
mod network_placement;
mod placed;
mod placement;
mod placement_error;
mod route;
pub mod switches;
pub mod tasks;
mod terms;
mod text;
mod thread_blocks;
pub mod wafer;

pub use exchange::{Exchange, Flow, Trees};
pub use grid_links::{LinkLoad, link_loads};
pub use grid_placement::{ANY_COLOR, Distances, GridPlacement};
pub use json::{from_json, to_json};
pub use placed::{File, FileError, OnGrid, Placed, VerifiedFile};
pub use placement::Placement;
pub use placement_error::PlacementError;
pub use route::{Route, Routes, Segment};
pub use terms::{Estimate, Phase, Round, Sharper, Terms, Waits};
pub use text::{parse, print};
pub use thread_blocks::ThreadBlocks;
