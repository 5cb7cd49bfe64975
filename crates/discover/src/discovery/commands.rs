//! What comes out of a program: forwards for all ranks, commands for one.

use std::sync::Arc;

use unisono_base::{BufferId, CommandId, TaskId};

use crate::{
    exchange::Operation,
    hazards::Waits,
    pattern::Pattern,
    space::{Box3, Region},
};

/// A forward task: data on its way from the task that wrote it to one that reads it.
#[derive(Clone, PartialEq, Debug)]
pub struct Forward {
    pub after: TaskId,
    pub before: TaskId,
    pub buffer: BufferId,
    pub region: Arc<Region>,
    /// None where it does not materialise and messages between pairs of ranks follow, or nothing.
    pub pattern: Option<Pattern>,
    /// Forwards that one operation serves have one number.
    pub group: Option<u32>,
}

/// What one rank does for one step.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// One message to one rank. Messages between two ranks come in the order of their commands. `read` is the place of
    /// the plan of the read in `take_reads`, here and of what is awaited.
    Push { buffer: BufferId, to: u32, region: Arc<Region>, read: u32 },
    /// The messages of one read, by source.
    AwaitPush { buffer: BufferId, from: Arc<[(u32, Arc<Region>)]>, read: u32 },
    /// A collective; groups are issued in ascending order on every rank.
    Collective { buffer: BufferId, group: u32, operation: Arc<Operation>, given: Arc<Region>, received: Arc<Region> },
    /// The task's kernel on this rank's part of its range.
    Execute { chunk: Box3 },
}

#[derive(Clone, PartialEq, Debug)]
pub struct Command {
    pub id: CommandId,
    /// The task that is executed, or that the data is for.
    pub task: TaskId,
    pub action: Action,
    pub waits: Waits,
}
