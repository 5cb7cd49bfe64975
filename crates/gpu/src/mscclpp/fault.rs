//! Faults of plans: each with its place, and the shortest run that shows it.

use serde::Serialize;

use super::plan::Name;

/// The place of an operation: GPU, thread block, index, and inside a pipeline the inner index and the iteration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    pub gpu: u32,
    pub block: u32,
    pub op: u32,
    pub inner: Option<(u32, u32)>,
    /// The number of the launch, from 1, if several launches are checked.
    pub launch: Option<u32>,
    pub name: Name,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "gpus[{}].threadblocks[{}].ops[{}]", self.gpu, self.block, self.op)?;
        match self.inner {
            Some((inner, iteration)) => write!(f, ".ops[{inner}] ({}, iteration {iteration})", self.name)?,
            None => write!(f, " ({})", self.name)?,
        }
        self.launch.map_or(Ok(()), |launch| write!(f, " of launch {launch}"))
    }
}

/// A finding, with the same first keys as a finding of a schedule. `instruction` is the operation's index.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename = "GpuPlanFinding")]
pub struct Fault {
    pub code: &'static str,
    pub rank: Option<u32>,
    pub threadblock: Option<u32>,
    pub instruction: Option<u32>,
    pub message: String,
    /// The steps of the shortest run that shows the fault; empty if the fault needs no run.
    pub trace: Vec<String>,
}

impl Fault {
    pub fn at(code: &'static str, place: &Place, message: String) -> Self {
        Self {
            code,
            rank: Some(place.gpu),
            threadblock: Some(place.block),
            instruction: Some(place.op),
            message,
            trace: Vec::new(),
        }
    }

    pub fn of_gpu(code: &'static str, gpu: u32, message: String) -> Self {
        Self { code, rank: Some(gpu), threadblock: None, instruction: None, message, trace: Vec::new() }
    }

    pub fn of_plan(code: &'static str, message: String) -> Self {
        Self { code, rank: None, threadblock: None, instruction: None, message, trace: Vec::new() }
    }

    #[must_use]
    pub fn with_trace(mut self, trace: Vec<String>) -> Self {
        self.trace = trace;
        self
    }
}
