//! The output of discovery: forwards for all ranks, commands for one.

use std::sync::Arc;

use unisono_base::{BufferId, CommandId, TaskId};

use crate::{
    exchange::Operation,
    hazards::Waits,
    pattern::Pattern,
    space::{Box3, Region},
};

/// A forward task: data that one task wrote, on its way to a task that reads it.
#[derive(Clone, PartialEq, Debug)]
pub struct Forward {
    pub after: TaskId,
    pub before: TaskId,
    pub buffer: BufferId,
    pub region: Arc<Region>,
    /// None if the forward does not materialise: messages between pairs of ranks follow, or nothing.
    pub pattern: Option<Pattern>,
    /// The operation that serves the forward; forwards of one operation have one number.
    pub group: Option<u32>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// One message to one rank. Messages between two ranks are sent in the order of their commands. `read` is the index
    /// of the plan of the read in `take_reads`, also in `AwaitPush`.
    Push { buffer: BufferId, to: u32, region: Arc<Region>, read: u32 },
    /// The messages of one read, by source.
    AwaitPush { buffer: BufferId, from: Arc<[(u32, Arc<Region>)]>, read: u32 },
    /// A collective. Every rank issues groups in ascending order.
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
