//! The state of buffers: their contents, the ranks with copies, and the tasks that will read them.

use std::{collections::VecDeque, sync::Arc};

use rustc_hash::FxHashMap;
use unisono_base::{BufferId, TaskId};

use crate::{
    hazards::Hazards, pattern::Pattern, plan::ReadPlan, region_map::RegionMap, role::RoleId, side::SideId,
    space::Region, task::Buffer,
};

pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Absent,
    /// Initial contents, the same on every rank.
    Host,
    Written,
    Partial,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Content {
    pub(super) state: State,
    pub(super) forwarded: bool,
    pub(super) task: u32,
    pub(super) role: u32,
    /// The index in [`HolderLists`] of the list of sides whose ranks have copies.
    pub(super) holders: u32,
    pub(super) promised: Option<(SideId, Pattern, u32)>,
}

impl Content {
    pub(super) fn bare(state: State) -> Self {
        Self { state, forwarded: false, task: NONE, role: NONE, holders: 0, promised: None }
    }
}

pub(super) struct BufferState {
    pub(super) about: Buffer,
    pub(super) content: RegionMap<Content>,
    /// The points that a submitted task has written, or that are initialized.
    pub(super) defined: Region,
    pub(super) hazards: Hazards,
    /// The accesses of tasks in the look-ahead window.
    pub(super) pending: VecDeque<Pending>,
    /// The number of the buffer's declaration in the hash chain.
    pub(super) submission: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Pending {
    pub(super) task: u32,
    pub(super) read: Option<RoleId>,
    pub(super) broadcasts: bool,
    pub(super) changes: bool,
}

/// The reads of a buffer that use one plan, by tasks with the same name.
pub(super) struct Moving {
    pub(super) first: TaskId,
    pub(super) buffer: BufferId,
    pub(super) plan: Arc<ReadPlan>,
    pub(super) count: u64,
}

/// The distinct lists of sides; row 0 is the empty list.
pub(super) struct HolderLists {
    pub(super) rows: Vec<Vec<SideId>>,
    pub(super) ids: FxHashMap<Vec<SideId>, u32>,
}

impl HolderLists {
    pub(super) fn intern(&mut self, list: &[SideId]) -> u32 {
        if let Some(&id) = self.ids.get(list) {
            return id;
        }
        let id = u32::try_from(self.rows.len()).expect("fewer than 2^32 lists");
        self.rows.push(list.to_vec());
        self.ids.insert(list.to_vec(), id);
        id
    }
}
