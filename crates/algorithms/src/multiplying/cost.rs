//! Costs of stages in the pipelining postal model.
//!
//! A stage takes alpha_p + sends (alpha_r + n beta) + reduced n gamma (Eq. 3), where a rank sends at most `sends`
//! messages of n bytes and reduces at most `reduced`; the times of a schedule's stages add up. For schedules with a
//! split or a merge this is an upper bound of the simulated time, because ranks that are set apart run ahead of others.

use super::{Stage, Stages};
use crate::Case;

/// The times from which the cost of a stage is computed, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StagePrices {
    /// alpha_p, once per stage.
    pub latency_ns: f64,
    /// alpha_r + n beta, for every message that a rank sends.
    pub send_ns: f64,
    /// n gamma, for every message that a rank reduces.
    pub reduce_ns: f64,
}

impl StagePrices {
    /// Returns the times for messages with the whole vector of a case.
    pub fn of(case: &Case) -> Self {
        let (ranks, bytes) = (case.ranks(), case.bytes(case.collective.elements) as f64);
        Self {
            latency_ns: ranks.latency_ns,
            send_ns: ranks.issue_ns + bytes * ranks.ns_per_byte,
            reduce_ns: bytes * ranks.reduce_ns_per_byte,
        }
    }

    /// Returns the times if the receiver, rather than the sender, limits the rate of messages by its interface and CPU.
    /// In the LogP family a receive costs more than a send. If an interface may run ahead of its gaps, gaps do not
    /// count.
    pub fn of_receiver(case: &Case) -> Self {
        let message = case.message(case.bytes(case.collective.elements));
        let apart = if message.slack > 0.0 { message.send_cpu } else { message.gap_ns() };
        let send_ns = apart.max(message.receive_cpu);
        Self { latency_ns: message.arrival_ns(false) - send_ns, send_ns, reduce_ns: message.reduce }
    }

    /// Returns the cost of a stage with one factor, in ns.
    pub fn factor_ns(&self, factor: u32) -> f64 {
        self.latency_ns + f64::from(factor - 1) * (self.send_ns + self.reduce_ns)
    }

    pub fn stage_ns(&self, stage: Stage) -> f64 {
        let (sends, reduced) = stage.most_messages();
        self.latency_ns + f64::from(sends) * self.send_ns + f64::from(reduced) * self.reduce_ns
    }

    pub fn total_ns(&self, stages: &Stages) -> f64 {
        stages.iter().map(|stage| self.stage_ns(stage)).sum()
    }
}

impl Stage {
    /// Returns the most messages that a rank sends in this stage, and the most that a rank reduces.
    pub fn most_messages(self) -> (u32, u32) {
        match self {
            Stage::Factor { factor } => (factor - 1, factor - 1),
            Stage::Collapse { base, .. } => (1, base - 1),
            Stage::Expand { base, .. } => (base - 1, 0),
            // A rank that is set apart sends to a whole group, whose members receive its message besides their own
            // messages.
            Stage::Merge { rest, groups, factor } => (factor, factor - 1 + rest.div_ceil(groups)),
            Stage::InverseMerge { rest, groups, factor } => (factor - 1 + rest.div_ceil(groups), factor - 1),
        }
    }
}
