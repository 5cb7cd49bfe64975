//! Generators of schedules. Each has a file in [`catalog`], where it is registered.
//!
//! Most reduces on a line of PEs are trees in pre-order. Such an algorithm only defines its tree ([`line::LineTree`]);
//! the crate derives its schedule, its estimate and its use in `x-y` and `reduce-broadcast`. Algorithms among ranks
//! implement [`ranks::RankAlgorithm`].
//!
//! An algorithm states the means of communication that it needs as data (`Info::needs`), and a machine offers means, so
//! no algorithm names a kind of machine. Networks use the algorithms among ranks, with the extents of their dimensions.
//!
//! An element of an allreduce's result is the same expression on all ranks, so they end with the same bits. The
//! exception is dissemination in several rounds, for which the proof reports different bits. Among ranks, a tree or
//! chain reduces with an operator that does not commute to rank 0, which sends the result to the root: a tree numbered
//! from the root would rotate the operands. The reduce of a `reduce-broadcast` accumulates in the output instead of
//! scratch memory where ranks gain an output by the broadcast.

// Numbers too large for their types are refused when they are read; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod algorithm;
pub mod catalog;
mod compose;
mod error;
pub mod forest;
mod formula;
#[doc(hidden)]
pub mod internals;
pub mod line;
pub mod multiplying;
mod params;
pub mod ranks;
mod registered;
pub mod switches;

pub use algorithm::{Algorithm, Case, Info, Means, Message, Messages, Param, Place, Profile, Ranks, Size};
pub use catalog::ALGORITHMS;
pub use compose::{find, named, resolve, short_name};
pub use error::AlgorithmError;
pub use formula::Formula;
pub use params::Params;
pub use registered::{algorithms, register, unregister};
