//! Traces: the cycles in which each operation of some PEs ran.

use serde::Serialize;

/// The PEs whose operations are recorded, ascending.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TraceRequest {
    pub pes: Vec<u32>,
}

/// One operation of one PE.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct TraceEvent {
    pub pe: u32,
    /// The index of the thread among the PE's threads.
    pub thread: u32,
    pub instr: u32,
    pub phase: u16,
    pub elements: u32,
    /// First cycle in which the operation did a step; `end` is the cycle after its last step.
    pub start: u32,
    pub end: u32,
}
