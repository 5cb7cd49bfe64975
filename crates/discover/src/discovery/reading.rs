//! The exchange before one read. Each distinct exchange is planned once, and the plan is reused.
//!
//! The decision about a read depends on the state of each point: its writer's role, and the sides with copies. A
//! forward without communication therefore does not hide the writer from later readers, except by
//! [`crate::Rules::Paper`]; and no rank receives an element that it already has. A plan's key identifies writers by
//! their order and not by their numbers, so the rate of a loop does not depend on the number of ranks.

use std::sync::Arc;

use unisono_base::{CommandId, TaskId, narrow};

use super::{
    Discovery,
    commands::{Action, Forward},
    contents::{Content, Moving, NONE, State},
};
use crate::{
    exchange::{Group, Piece},
    hazards::Waits,
    plan::{ReadPlan, group_number, plan},
    role::RoleId,
    rules::{Read, Tables},
    shape::Played,
    space::Box3,
};

/// The maximum number of stored plans. If there are more, all are dropped and computed again on demand, with the same
/// results.
const MOST_PLANS: usize = 1 << 16;

/// Allocations that are reused for every read.
#[derive(Default)]
pub(super) struct Scratch {
    met: Vec<(Box3, Content)>,
    producers: Vec<u32>,
    promised: Vec<u32>,
    key: Vec<u64>,
}

impl Discovery {
    /// Returns the role of the next waiting task whose ranks all read the same points of the buffer. Returns `None` in
    /// three cases: there is no such task; the current task, or a task between the two, changes the buffer; or both
    /// tasks read the same regions on all ranks (the same side).
    fn later(&self, task: u32, read: &Played) -> Option<RoleId> {
        let mut after = self.buffers[read.buffer.index()].pending.iter().filter(|p| p.task >= task);
        if after.next().is_some_and(|own| own.changes) {
            return None;
        }
        for next in after {
            if let Some(role) = next.read.filter(|_| next.broadcasts) {
                let differs = self.roles[role].side != self.roles[read.role].side;
                return differs.then_some(role);
            }
            if next.changes {
                return None;
            }
        }
        None
    }

    pub(super) fn read(&mut self, task: u32, read: &Played) {
        let later = self.later(task, read);
        let Some((plan, producers, earlier)) = self.plan_of(read, later) else { return };
        let next_group = self.next_group;
        if self.options.report {
            for (listing, region) in &plan.listed {
                self.forwards.push(Forward {
                    after: TaskId(producers[listing.producer]),
                    before: TaskId(task),
                    buffer: read.buffer,
                    region: region.clone(),
                    pattern: listing.pattern,
                    group: group_number(listing.group, next_group, &earlier),
                });
            }
            if !plan.operations.is_empty() || !plan.pushed.parts.is_empty() {
                // The row stores the plan, so its address is not reused.
                let key = (self.tasks[task as usize].1, read.buffer, Arc::as_ptr(&plan).addr());
                let next = self.moving.len();
                match *self.moving_ids.entry(key).or_insert(next) {
                    known if known < next => self.moving[known].count += 1,
                    _ => {
                        let (first, buffer, plan) = (TaskId(task), read.buffer, plan.clone());
                        self.moving.push(Moving { first, buffer, plan, count: 1 });
                    }
                }
            }
            let bytes = self.buffers[read.buffer.index()].about.element_bytes;
            self.traffic.pushes += plan.traffic.pushes;
            self.traffic.pushed_elements += plan.traffic.pushed_elements;
            self.traffic.collectives += plan.traffic.collectives;
            self.traffic.collective_elements += plan.traffic.collective_elements;
            self.bytes.0 += plan.traffic.pushed_elements.saturating_mul(bytes);
            self.bytes.1 += plan.traffic.collective_elements.saturating_mul(bytes);
        }
        self.next_group += narrow::<u32>(plan.groups);
        let buffer = read.buffer;
        for share in &plan.shares {
            let (id, mut waits) = (CommandId(self.next_command), Waits::default());
            let hazards = &mut self.buffers[buffer.index()].hazards;
            hazards.read(id, &share.given, &mut waits);
            hazards.write(id, &share.received, &mut waits);
            let (group, operation) = (next_group + narrow::<u32>(share.group), share.operation.clone());
            let (given, received) = (share.given.clone(), share.received.clone());
            self.push_command(task, Action::Collective { buffer, group, operation, given, received }, waits);
        }
        let read = narrow(self.reads.len());
        if !plan.pushes.is_empty() || !plan.awaits.is_empty() {
            self.reads.push(plan.clone());
        }
        for (to, region) in &plan.pushes {
            let (id, mut waits) = (CommandId(self.next_command), Waits::default());
            self.buffers[buffer.index()].hazards.read(id, region, &mut waits);
            self.push_command(task, Action::Push { buffer, to: *to, region: region.clone(), read }, waits);
        }
        if !plan.awaits.is_empty() {
            let (id, mut waits) = (CommandId(self.next_command), Waits::default());
            self.buffers[buffer.index()].hazards.write(id, &plan.awaited, &mut waits);
            self.push_command(task, Action::AwaitPush { buffer, from: plan.awaits.clone(), read }, waits);
        }
        for piece in &plan.after {
            let promised = piece.promised.map(|(side, pattern, group)| {
                let group = group_number(Some(group), next_group, &earlier).unwrap_or(NONE);
                (side, pattern, group)
            });
            let content = Content {
                state: if piece.partial { State::Partial } else { State::Written },
                forwarded: piece.forwarded,
                task: producers[piece.producer],
                role: piece.owner.0,
                holders: self.holders.intern(&piece.holders),
                promised,
            };
            let map = &mut self.buffers[buffer.index()].content;
            piece.region.boxes().iter().for_each(|b| map.set(b, content));
        }
        (self.scratch.producers, self.scratch.promised) = (producers, earlier);
    }

    /// Returns the plan of a read, with the tasks and the groups to which the numbers in the plan refer; `None` if no
    /// task has written any of the contents.
    fn plan_of(&mut self, read: &Played, later: Option<RoleId>) -> Option<(Arc<ReadPlan>, Vec<u32>, Vec<u32>)> {
        let scratch = &mut self.scratch;
        let held = &self.buffers[read.buffer.index()];
        scratch.met.clear();
        let image = &self.roles[read.role].image;
        let mut later = later;
        let wide = later.map(|role| image.union(&self.roles[role].image));
        for window in wide.as_ref().unwrap_or(image).boxes() {
            held.content.query(window, |b, content| scratch.met.push((b, content)));
        }
        if wide.is_some() && scratch.met.iter().any(|(_, c)| c.state == State::Absent) {
            // Contents that no task has written will become a separate piece, so there is no look-ahead for this read.
            later = None;
            scratch.met.clear();
            for window in image.boxes() {
                held.content.query(window, |b, content| scratch.met.push((b, content)));
            }
        }
        scratch.met.retain(|(_, content)| matches!(content.state, State::Written | State::Partial));
        if scratch.met.is_empty() {
            return None;
        }
        let (mut producers, mut earlier) =
            (std::mem::take(&mut scratch.producers), std::mem::take(&mut scratch.promised));
        producers.clear();
        producers.extend(scratch.met.iter().map(|(_, c)| c.task));
        earlier.clear();
        earlier.extend(scratch.met.iter().filter_map(|(_, c)| c.promised.map(|p| p.2)));
        for list in [&mut producers, &mut earlier] {
            list.sort_unstable();
            list.dedup();
        }
        let place = |list: &[u32], id: u32| list.binary_search(&id).unwrap_or(0);
        scratch.key.clear();
        scratch.key.extend([u64::from(read.role.0), later.map_or(u64::MAX, |role| u64::from(role.0))]);
        for (b, content) in &scratch.met {
            scratch.key.extend(b.min.iter().chain(&b.max).map(|&x| x.cast_unsigned()));
            let flags = u64::from(content.state == State::Partial) | u64::from(content.forwarded) << 1;
            scratch.key.push(u64::from(content.role) << 32 | u64::from(content.holders));
            scratch.key.push((place(&producers, content.task) as u64) << 2 | flags);
            scratch.key.push(content.promised.map_or(u64::MAX, |(side, pattern, group)| {
                u64::from(side.0) << 32 | (place(&earlier, group) as u64) << 8 | pattern as u64
            }));
        }
        if let Some(plan) = self.plans.get(&scratch.key[..]) {
            return Some((plan.clone(), producers, earlier));
        }
        let mut pieces: Vec<Piece> = Vec::new();
        for (b, content) in &scratch.met {
            let piece = Piece {
                region: (*b).into(),
                producer: place(&producers, content.task),
                owner: RoleId(content.role),
                owner_side: self.roles[RoleId(content.role)].side,
                partial: content.state == State::Partial,
                holders: self.holders.rows[content.holders as usize].clone(),
                forwarded: content.forwarded,
                promised: content
                    .promised
                    .map(|(side, pattern, g)| (side, pattern, Group::Earlier(place(&earlier, g)))),
            };
            match pieces.iter_mut().find(|p| p.is_like(&piece)) {
                Some(same) => same.region = same.region.union(&piece.region),
                None => pieces.push(piece),
            }
        }
        pieces.sort_by(|a, b| (a.producer, &a.region).cmp(&(b.producer, &b.region)));
        let about = Read {
            reader: read.role,
            wanted: image.clone(),
            later,
            buffer: held.about.shape,
            nodes: self.options.nodes,
        };
        let mut tables = Tables { sides: &mut self.sides, roles: &mut self.roles };
        let made = plan(self.options.rules, &mut tables, &about, pieces, self.options.rank, self.options.report);
        let made = Arc::new(made);
        if self.plans.len() >= MOST_PLANS {
            self.plans.clear();
        }
        self.plans.insert(self.scratch.key.clone().into_boxed_slice(), made.clone());
        Some((made, producers, earlier))
    }
}
