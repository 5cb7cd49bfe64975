//! Collectives: their buffers, and the input elements from which every output element must result; and decision tables,
//! which name the algorithm that serves a collective.
//!
//! No code in this crate depends on an algorithm or a time.

// Numbers too large for their types are refused when they are read; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod decision;
mod dtype;
mod error;
mod kind;
mod operator;
mod spec;

pub use decision::{Choice, DecisionTable, OperatorClass, Row};
pub use dtype::Dtype;
pub use error::CollectiveError;
pub use kind::{Bandwidths, Kind};
pub use operator::Operator;
pub use spec::{Collective, Required, Source};
