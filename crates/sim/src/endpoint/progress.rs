//! Progress of tasks that wait for other tasks: a task that no longer waits gets its stamp, a sequence number that
//! orders events of equal times, and is queued. Table entries that queued events need are read ahead.

use std::hint::black_box;

use unisono_base::TaskId;
use unisono_cost::endpoint::Prices;
use unisono_lower::tasks::{Kind, Task};

use super::{
    blocked::{ClassKey, Use},
    carrier::Carrier,
    engine::{Engine, MESSAGE, WAITED},
    matching::{Envelope, Side},
};
use unisono_base::queue::Event;

/// The most events that are read ahead at a time. They already cause more cache misses than a core handles
/// concurrently, so more events would gain nothing.
const AHEAD: usize = 16;
/// The fewest events that are read ahead.
const FEW: usize = 4;

impl<P: Prices, C: Carrier> Engine<'_, P, C> {
    /// Reads the table entries that the next events of the present time need. Returns the number of events after which
    /// this must be called again. An event finds its entry in one table through another table, and the reads of several
    /// events overlap here.
    pub(super) fn read_ahead(&self) -> usize {
        let events = self.queue.present();
        let events = &events[..events.len().min(AHEAD)];
        if events.len() < FEW {
            return events.len();
        }
        // Branches do not depend on tables here, so that reads do not wait for each other.
        let touch = |id: u32| self.graph.read_ahead(TaskId(id)) ^ self.links[id as usize].owner;
        let mut read = 0;
        for event in events {
            let id = event.what & !(MESSAGE | WAITED);
            read ^= touch(id);
        }
        for event in events.iter().filter(|event| event.what & MESSAGE != 0) {
            let id = event.what & !(MESSAGE | WAITED);
            let Task { peer, tag, .. } = self.graph.task(TaskId(id));
            let envelope = Envelope { source: self.links[id as usize].owner, tag };
            read ^= touch(self.matching.read_ahead(peer, Side::Receives, envelope));
        }
        black_box(read);
        events.len() - 1
    }

    #[inline]
    pub(super) fn start(&mut self, id: u32) {
        if self.graph.is_start_awaited(TaskId(id)) {
            self.release(id, true, 0);
        }
    }

    /// Marks `id` as done, and adds the tasks that it makes free to `freed[place]`: 0 for the event's own rank, 1 for
    /// the rank at the other end of the message.
    pub(super) fn end(&mut self, id: u32, place: usize) {
        if self.links[id as usize].finish() {
            self.done += 1;
            self.release(id, false, place);
        }
    }

    fn release(&mut self, id: u32, started: bool, place: usize) {
        let (links, freed, all_due, until) = (&mut self.links, &mut self.freed[place], &mut self.due, self.until);
        // The compiler inlines a loop; `for_each` on this iterator would be a call.
        for (later, on_start) in self.graph.waiting(TaskId(id)) {
            if on_start != started {
                continue;
            }
            if let Some(due) = all_due.get_mut(later.index()) {
                *due = (*due).max(until);
            }
            if links[later.index()].let_go() {
                freed.push(later.0);
            }
        }
    }

    /// Admits the freed tasks of two ranks, in ascending order of the ranks.
    pub(super) fn admit_both(&mut self, rank: u32, other: u32) {
        if other < rank {
            self.admit(other, 1);
            self.admit(rank, 0);
        } else {
            self.admit(rank, 0);
            self.admit(other, 1);
        }
    }

    /// Stamps and queues the tasks that became free at a rank.
    #[inline]
    pub(super) fn admit(&mut self, rank: u32, place: usize) {
        match self.freed[place][..] {
            [] => {}
            [id] => {
                self.freed[place].clear();
                self.queue_task(rank, id);
            }
            _ => self.admit_several(rank, place),
        }
    }

    fn admit_several(&mut self, rank: u32, place: usize) {
        let mut freed = std::mem::take(&mut self.freed[place]);
        let mut left = freed.len();
        // The order is: sends, receives, all other tasks.
        for order in [Kind::Send, Kind::Receive, Kind::Calc] {
            for &id in &freed {
                let kind = self.graph.task(TaskId(id)).kind;
                if kind == order || order == Kind::Calc && kind == Kind::Reduce {
                    self.queue_task(rank, id);
                    left -= 1;
                }
            }
            if left == 0 {
                break;
            }
        }
        freed.clear();
        self.freed[place] = freed;
    }

    fn queue_task(&mut self, rank: u32, id: u32) {
        let task = self.graph.task(TaskId(id));
        let usage = if task.kind == Kind::Send { Use::Send } else { Use::Compute };
        let free = self.free(usage, self.at(ClassKey { rank, usage, cpu: task.cpu, nic: task.nic }));
        // If messages occupy CPUs, a busy CPU delays the task until now. Otherwise the event that made the task free
        // delays it.
        let now = if self.uses_cpus { 0 } else { self.until };
        let time = free.max(now).max(self.due.get(id as usize).copied().unwrap_or(0));
        self.queue.push(Event { time, stamp: self.stamp, what: id });
        self.stamp += 1;
    }
}
