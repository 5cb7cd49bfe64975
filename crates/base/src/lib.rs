//! Types and functions that other crates use: ids, units, spans, diagnostics, limits, threads, queues, and readers.

mod diagnostic;
pub mod exact;
mod excerpt;
mod id;
pub mod interrupt;
pub mod keyed;
pub mod limits;
mod mix;
mod named;
mod narrow;
pub mod parallel;
pub mod queue;
mod span;
mod units;
pub mod xml;

pub use diagnostic::{Diagnostic, Diagnostics};
pub use excerpt::excerpt;
pub use id::{BufferId, CommandId, InstrId, LaneId, NodeId, PhaseId, StreamId, TaskId};
pub use mix::{Random, mix};
pub use narrow::{narrow, rounded, rounded_up};
pub use span::Span;
pub use units::{Bytes, Cycles, Wavelets};
