//! The timeline of one iteration: phases of compute, each with the communication that begins after it.

use std::collections::BTreeMap;

use serde::Serialize;
use unisono_algorithms::Params;

use super::{graph::Interval, spans::Spans};

/// The algorithm of one communication, with its parameters and time.
#[derive(Clone, PartialEq, Debug)]
pub struct Taken {
    pub algorithm: String,
    pub given: Params,
    pub seconds: f64,
}

/// One communication with its start and end, in seconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename = "Communication")]
pub struct Communicated {
    pub collective: &'static str,
    pub bytes: u64,
    pub ranks: u32,
    pub blocking: bool,
    pub algorithm: String,
    pub params: BTreeMap<String, String>,
    pub begin: f64,
    pub end: f64,
}

/// A phase of compute and the communication that begins after it, with times in seconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename = "WorkloadPhase")]
pub struct Phase {
    pub name: String,
    pub begin: f64,
    pub compute_seconds: f64,
    pub communication_seconds: f64,
    /// The time from the end of the previous compute to the start of this phase. In this time the rank waits for
    /// communication.
    pub waited_seconds: f64,
    /// The bytes of all communication of the phase.
    pub bytes: u64,
    /// The operations of the forward pass, if the workload states them.
    pub forward_flops: Option<f64>,
    pub communication: Vec<Communicated>,
}

impl Phase {
    /// Returns a phase that begins at `begin`, without compute and communication so far.
    pub(super) fn begun(name: &str, begin: f64, waited_seconds: f64) -> Self {
        Self {
            name: name.to_owned(),
            begin,
            compute_seconds: 0.0,
            communication_seconds: 0.0,
            waited_seconds,
            bytes: 0,
            forward_flops: None,
            communication: Vec::new(),
        }
    }

    pub(super) fn communicate(&mut self, communication: Communicated) {
        self.bytes = self.bytes.saturating_add(communication.bytes);
        self.communication.push(communication);
    }
}

fn covered<'a>(communication: impl IntoIterator<Item = &'a Communicated>) -> Spans {
    Spans::new(communication.into_iter().map(|one| Interval { begin: one.begin, end: one.end }))
}

/// The times of one iteration. `seconds` is the sum of `compute_seconds`, `exposed_seconds` and `waiting_seconds`;
/// `communication_seconds` is the sum of `exposed_seconds` and `hidden_seconds`. Time in which several messages or
/// collectives are under way counts once.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Iteration {
    pub seconds: f64,
    pub compute_seconds: f64,
    pub communication_seconds: f64,
    /// The communication during which the rank does not compute.
    pub exposed_seconds: f64,
    /// The communication during which the rank computes.
    pub hidden_seconds: f64,
    /// The time in which the rank only waits for other ranks.
    pub waiting_seconds: f64,
    pub phases: Vec<Phase>,
}

/// The fraction of an iteration up to which waiting time is a rounding error.
pub(super) const ROUNDING: f64 = 1e-9;

impl Iteration {
    /// Creates a timeline from phases whose compute begins with the phase.
    pub(super) fn new(seconds: f64, compute_seconds: f64, mut phases: Vec<Phase>) -> Self {
        for phase in &mut phases {
            phase.communication_seconds = covered(&phase.communication).seconds();
        }
        let computed = phases.iter().map(|p| Interval { begin: p.begin, end: p.begin + p.compute_seconds });
        let communicated = covered(phases.iter().flat_map(|p| &p.communication));
        let hidden_seconds = communicated.shared_with(&Spans::new(computed));
        let not_computing = (seconds - compute_seconds).max(0.0);
        let exposed = (communicated.seconds() - hidden_seconds).max(0.0);
        let waiting = not_computing - exposed;
        let waiting_seconds = if waiting > ROUNDING * seconds { waiting } else { 0.0 };
        let exposed_seconds = not_computing - waiting_seconds;
        Self {
            seconds,
            compute_seconds,
            communication_seconds: exposed_seconds + hidden_seconds,
            exposed_seconds,
            hidden_seconds,
            waiting_seconds,
            phases,
        }
    }
}
