//! The reasons why a schedule has no task graph.

use unisono_base::{Diagnostic, NodeId, TaskId, limits::OverLimit};
use unisono_schedule::MoreNodes;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TaskError {
    #[error(transparent)]
    OverLimit(#[from] OverLimit),
    #[error("the task graph has {found} {what}; at most {most} fit")]
    TooMany { what: &'static str, found: u64, most: u64 },
    #[error("task {task} is not of the rank that is being built; tasks wait for tasks of their own rank only")]
    OtherRank { task: TaskId },
    #[error("a task is given before the first rank; begin a rank first")]
    NoRank,
    #[error("a {kind} names rank {peer}; the ranks are 0 to {}", ranks.saturating_sub(1))]
    NoPeer { kind: &'static str, peer: u32, ranks: u32 },
    #[error("the schedule is not well-formed: {0}")]
    Malformed(Diagnostic),
    #[error(
        "{later} waits for {earlier} of another node, and no message orders them; send a stream between them instead"
    )]
    AcrossNodes { later: NodeId, earlier: NodeId },
    #[error("{0}; messages go among ranks only")]
    Switches(MoreNodes),
}
