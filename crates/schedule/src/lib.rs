//! The schedule language. There is one instruction:
//!
//! ```text
//! combine(sources) -> sinks      over a span of elements
//! ```
//!
//! Element `k` of every sink is the reduction, in the order written, of element `k` of every source. A source is a
//! slice of a buffer or an incoming stream; a sink is a slice of a buffer or an outgoing stream. A stream is a FIFO of
//! elements from one node to one or more nodes. Lanes of a node run independently; the instructions of a lane run in
//! order.
//!
//! [`Builder`] builds schedules, [`text`] and [`json`] write and read them, [`interpret`] runs them on real data,
//! [`verify`] proves them, [`stored`] converts them to programs for message passing, and [`plan_file`] stores tables of
//! those programs.
//!
//! Instructions are rows of compact tables, sorted by node, lane and program order: 8 bytes for an instruction, because
//! values that instructions share are stored once, 5 bytes for an operand, 16 bytes for a stream. Instructions of a
//! lane whose operands have equal distances share one row. All operands of an instruction have its length, so an
//! operand is only a position.

// In these modules a number that does not fit its type is refused on input, or converted by `unisono_base::narrow`.
#[warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
mod builder;
#[warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
mod embed;
#[warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
mod flow;
#[warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
mod instrs;
#[warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#[doc(hidden)]
pub mod internals;
pub mod interpret;
#[warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub mod json;
mod order;
pub mod plan_file;
mod restrict;
mod runs;
mod schedule;
pub mod stored;
#[warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub mod text;
pub mod verify;
#[warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
mod well_formed;

pub use builder::{BuildError, Builder};
pub use flow::Flow;
pub use instrs::{Instr, Operands};
pub use order::{topological, topological_with};
pub use schedule::{MoreNodes, Operand, Schedule, Stream};
