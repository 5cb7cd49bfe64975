//! One iteration in time, given what each communication takes.
//!
//! Steps compute one after the other. A step's communication begins when it has computed and when what was begun before is
//! over: a device has one queue of communication, as training frameworks use it. What is blocking holds the next step back; a
//! step that waits is held back by all. The iteration is over when all is.

use std::collections::BTreeMap;

use serde::Serialize;
use unisono_algorithms::Params;

use super::{Communication, Workload, description::Step};
use crate::report::map;

/// What one communication takes, by which algorithm.
#[derive(Clone, PartialEq, Debug)]
pub struct Taken {
    pub algorithm: String,
    pub given: Params,
    pub seconds: f64,
}

/// A communication in time.
#[derive(Clone, PartialEq, Debug, Serialize)]
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

/// A step in time; seconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Phase {
    pub name: String,
    pub begin: f64,
    pub compute_seconds: f64,
    pub communication_seconds: f64,
    /// Time from the end of the previous step's compute to the begin of this step, which waits for communication.
    pub waited_seconds: f64,
    /// Of all communication.
    pub bytes: u64,
    /// Operations of the forward pass, where the workload states them.
    pub forward_flops: Option<f64>,
    pub communication: Vec<Communicated>,
}

impl Phase {
    pub(super) fn new(step: &Step, begin: f64, waited_seconds: f64, communication: Vec<Communicated>) -> Self {
        Self {
            name: step.name.clone(),
            begin,
            compute_seconds: step.compute_us * 1e-6,
            communication_seconds: communication.iter().fold(0.0, |sum, c| sum + (c.end - c.begin)),
            waited_seconds,
            bytes: communication.iter().map(|c| c.bytes).sum(),
            forward_flops: None,
            communication,
        }
    }

    /// A phase that begins, without compute or communication yet.
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
        self.communication_seconds += communication.end - communication.begin;
        self.bytes = self.bytes.saturating_add(communication.bytes);
        self.communication.push(communication);
    }
}

/// One iteration. `seconds` is the sum of `compute_seconds` and `exposed_seconds`, the communication time that no compute hides.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Iteration {
    pub seconds: f64,
    pub compute_seconds: f64,
    pub communication_seconds: f64,
    pub exposed_seconds: f64,
    pub phases: Vec<Phase>,
}

impl Iteration {
    pub(super) fn new(seconds: f64, compute_seconds: f64, phases: Vec<Phase>) -> Self {
        Self {
            seconds,
            compute_seconds,
            communication_seconds: phases.iter().fold(0.0, |sum, p| sum + p.communication_seconds),
            exposed_seconds: (seconds - compute_seconds).max(0.0),
            phases,
        }
    }
}

/// # Errors
/// The first of `take`.
pub fn iterate<E>(
    workload: &Workload,
    overlap: bool,
    mut take: impl FnMut(&Communication) -> Result<Taken, E>,
) -> Result<Iteration, E> {
    // When the last compute, the last blocking communication and the last communication are over.
    let (mut computed, mut blocked, mut free) = (0.0_f64, 0.0_f64, 0.0_f64);
    let mut phases = Vec::with_capacity(workload.steps.len());
    for step in &workload.steps {
        let begin = if step.waits || !overlap { computed.max(free) } else { computed.max(blocked) };
        let waited_seconds = begin - computed;
        computed = begin + step.compute_us * 1e-6;
        let mut communication = Vec::with_capacity(step.communication.len());
        for c in &step.communication {
            let taken = take(c)?;
            let begin = computed.max(free);
            free = begin + taken.seconds;
            if c.blocking {
                blocked = free;
            }
            communication.push(Communicated {
                collective: c.collective.name(),
                bytes: 4 * c.elements,
                ranks: workload.group_size(c),
                blocking: c.blocking,
                algorithm: taken.algorithm,
                params: map(&taken.given),
                begin,
                end: free,
            });
        }
        phases.push(Phase::new(step, begin, waited_seconds, communication));
    }
    Ok(Iteration::new(computed.max(free), workload.compute_seconds(), phases))
}
