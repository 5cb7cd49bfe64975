//! Reasons why a run fails.

use std::fmt;

use unisono_base::limits::OverLimit;
use unisono_lower::tasks::{ANY, Kind, Task};

/// A task that is never done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stuck {
    pub rank: u32,
    /// Index of the task within its rank, from 0.
    pub index: u32,
    pub task: Task,
    pub why: String,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Task { kind, peer, tag, amount, .. } = self.task;
        write!(f, "rank {} task {} ({} {amount}", self.rank, self.index + 1, kind.name())?;
        let any = |n: u32| if n == ANY { "any".to_owned() } else { n.to_string() };
        match kind {
            Kind::Send => write!(f, "b to {peer}, tag {}", any(tag))?,
            Kind::Receive => write!(f, "b from {}, tag {}", any(peer), any(tag))?,
            Kind::Calc => {}
            Kind::Reduce => write!(f, "b")?,
        }
        write!(f, ") {}", self.why)
    }
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SimError {
    #[error(transparent)]
    OverLimit(#[from] OverLimit),
    #[error("deadlock: {count} tasks are never done, among them {}", stuck.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Deadlock {
        count: u64,
        /// At most [`super::STUCK_KEPT`] of the stuck tasks. Tasks that wait for another rank are listed first.
        stuck: Vec<Stuck>,
    },
    #[error("deadlock in the network: {packets} packets wait for each other for ever, among them {}", stuck.join("; "))]
    Jammed {
        packets: u64,
        /// Descriptions of at most [`super::STUCK_KEPT`] of the waiting packets.
        stuck: Vec<String>,
    },
    #[error("the routing '{routing}' is at fault: {what}")]
    Routing { routing: String, what: String },
    #[error("a time of {place} is beyond 2^64 ticks of the simulator's clock; its prices, or its calcs, are too long")]
    Overflow { place: String },
    #[error("a rank finishes after {most} ticks, the most that the caller accepts")]
    Late { most: u64 },
    #[error("{what} is {found}; the simulator takes {accepted}")]
    Unsupported { what: &'static str, found: String, accepted: String },
}
