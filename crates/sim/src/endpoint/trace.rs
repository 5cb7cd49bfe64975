//! Traces: the uses of the CPUs of some ranks, with their times.

use serde::Serialize;

/// Ranks whose tasks are recorded, ascending.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TraceRequest {
    pub ranks: Vec<u32>,
}

/// One use of a CPU. A message is recorded at its receiver; the receive itself uses no CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct TraceEvent {
    pub rank: u32,
    /// `send`, `recv`, `calc` or `reduce`.
    pub kind: &'static str,
    pub cpu: u8,
    /// Rank at the other end of a message; `None` for calcs and reduces.
    pub peer: Option<u32>,
    /// Bytes of a message or a reduction; 0 for a calc.
    pub bytes: u64,
    /// Start and end of the use, in ticks.
    pub start: u64,
    pub end: u64,
}
