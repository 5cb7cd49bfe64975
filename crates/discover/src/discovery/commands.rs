//! The output of discovery: forwards for all ranks, and the commands of one rank.

use std::sync::Arc;

use unisono_base::{BufferId, CommandId, TaskId};

use crate::{
    exchange::Operation,
    hazards::Waits,
    pattern::Pattern,
    space::{Box3, Region},
};

/// A forward task: it passes data from the task that wrote them to a task that reads them.
#[derive(Clone, PartialEq, Debug)]
pub struct Forward {
    pub after: TaskId,
    pub before: TaskId,
    pub buffer: BufferId,
    pub region: Arc<Region>,
    /// The collective that implements the forward; `None` for messages between pairs of ranks, or no communication.
    pub pattern: Option<Pattern>,
    /// The number of the forward's operation, which several forwards may share.
    pub group: Option<u32>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// One message to one rank. Messages between two ranks are sent in the order of their commands. `read` is the index
    /// of the read's plan in the result of `take_reads`, here and in `AwaitPush`.
    Push { buffer: BufferId, to: u32, region: Arc<Region>, read: u32 },
    /// The expected messages of one read, by source.
    AwaitPush { buffer: BufferId, from: Arc<[(u32, Arc<Region>)]>, read: u32 },
    /// A collective. Every rank issues collectives in ascending order of `group`.
    Collective { buffer: BufferId, group: u32, operation: Arc<Operation>, given: Arc<Region>, received: Arc<Region> },
    /// The task's kernel on this rank's part of its range.
    Execute { chunk: Box3 },
}

#[derive(Clone, PartialEq, Debug)]
pub struct Command {
    pub id: CommandId,
    /// The task that is executed, or that reads the data.
    pub task: TaskId,
    pub action: Action,
    pub waits: Waits,
}
