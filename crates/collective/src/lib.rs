//! What a collective means: its buffers, and for every output element which inputs it must hold; and the tables that
//! say which algorithm serves it.
//!
//! Nothing here knows an algorithm or a time.

// A number that does not fit is refused where it enters; see `unisono_base::narrow`.
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
