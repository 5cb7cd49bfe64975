//! CPUs and interfaces: the times at which they are free, and the events that wait for them in classes
//! ([`super::blocked`]).

use unisono_base::TaskId;
use unisono_cost::endpoint::Prices;

use super::{
    SimError,
    blocked::{ClassKey, Use},
    carrier::Carrier,
    engine::{Engine, Halt, MESSAGE, WAITED},
};
use unisono_base::queue::Event;

/// Indices of a task's clocks in `Engine::clocks`.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub cpu: usize,
    /// Interface, in the direction of the event.
    pub nic: usize,
}

impl<P: Prices, C: Carrier> Engine<'_, P, C> {
    #[inline]
    pub(super) fn at(&self, key: ClassKey) -> At {
        let first = self.clocks_each * key.rank as usize;
        let sending = if key.usage == Use::Send { self.graph.nics() as usize } else { 0 };
        let nic = first + self.graph.cpus() as usize + sending + usize::from(key.nic);
        At { cpu: first + usize::from(key.cpu), nic }
    }

    /// Returns the time from which these clocks permit the use.
    #[inline]
    pub(super) fn free(&self, usage: Use, at: At) -> u64 {
        match usage {
            Use::Compute => self.clocks[at.cpu],
            Use::Send | Use::Arrive if !self.uses_cpus => self.clocks[at.nic],
            Use::Send | Use::Arrive => self.clocks[at.cpu].max(self.clocks[at.nic].saturating_sub(self.slack)),
        }
    }

    /// Returns true if the event must not be executed now. Either the event waits for its clocks and is queued again or
    /// joins its class, or it is the stale event of a head that was replaced.
    #[inline]
    pub(super) fn waits(&mut self, event: Event, id: u32, key: ClassKey, at: At) -> bool {
        let free = self.free(key.usage, at);
        (free > event.time || event.what & WAITED != 0) && self.waits_until(free, event, id, key)
    }

    fn waits_until(&mut self, free: u64, event: Event, id: u32, key: ClassKey) -> bool {
        let waited = event.what & WAITED != 0;
        if waited && !self.blocked.is_head(key, event.time, event.stamp) {
            return true;
        }
        if free <= event.time {
            return false;
        }
        if !self.classes {
            self.queue.push(Event { time: free, ..event });
        } else if waited {
            self.blocked.wait_on(key, free);
            self.queue.push(Event { time: free, ..event });
        } else if self.blocked.wait(key, free, event.stamp, id) {
            self.queue.push(Event { time: free, what: event.what | WAITED, ..event });
        }
        true
    }

    /// Returns true if the CPU of the event waits for a message to leave. Unless it is stale, the event is then parked
    /// until the message has left.
    #[inline]
    pub(super) fn is_parked(&mut self, event: Event, key: ClassKey, at: At) -> bool {
        let is_held = self.held.get(at.cpu).is_some_and(|&held| held);
        if is_held && self.is_current(event, key) {
            self.parked.entry(at.cpu).or_default().push((event, key));
        }
        is_held
    }

    /// Records that the message of a send has left. If the CPU waited for this, the CPU continues.
    pub(super) fn let_go(&mut self, time: u64, id: u32) {
        let task = self.graph.task(TaskId(id));
        let of = ClassKey { rank: self.links[id as usize].owner, usage: Use::Send, cpu: task.cpu, nic: task.nic };
        let cpu = self.at(of).cpu;
        if self.held.get_mut(cpu).is_some_and(std::mem::take) {
            self.clocks[cpu] = self.clocks[cpu].max(time);
            for (event, key) in self.parked.remove(&cpu).unwrap_or_default() {
                if !self.is_current(event, key) {
                    continue;
                }
                if event.what & WAITED != 0 {
                    self.blocked.wait_on(key, time);
                }
                self.queue.push(Event { time, ..event });
            }
        }
    }

    /// Returns false for the stale event of a head that was replaced.
    fn is_current(&mut self, event: Event, key: ClassKey) -> bool {
        event.what & WAITED == 0 || self.blocked.is_head(key, event.time, event.stamp)
    }

    /// Queues the next event of the class, if `event` was the head of a class.
    #[inline]
    pub(super) fn next_of_class(&mut self, event: Event, key: ClassKey, at: At) {
        if event.what & WAITED != 0 {
            self.replace_head(event, key, at);
        }
    }

    fn replace_head(&mut self, event: Event, key: ClassKey, at: At) {
        let time = self.free(key.usage, at).max(event.time);
        if let Some((stamp, id)) = self.blocked.next(key, time) {
            self.queue.push(Event { time, stamp, what: id | event.what & (MESSAGE | WAITED) });
        }
    }

    pub(super) fn hold(&mut self, cpu: usize, from: u64, to: u64) -> Result<(), Halt> {
        self.clocks[cpu] = to;
        if self.classes && to < from { Err(Halt::Fell) } else { Ok(()) }
    }

    /// Makes a task or a message occupy a CPU. If messages occupy no CPU, they change only the finish of the rank.
    /// Clocks of CPUs do not decrease, so a rank whose CPU is occupied beyond `most` finishes too late.
    pub(super) fn hold_cpu(&mut self, cpu: usize, from: u64, to: u64) -> Result<(), Halt> {
        let until = if self.uses_cpus { to } else { self.clocks[cpu].max(to) };
        if let Some(most) = self.options.most.filter(|&most| until > most && !self.wraps) {
            return Err(Halt::Failed(SimError::Late { most }));
        }
        self.hold(cpu, from, until)
    }

    pub(super) fn hold_nic(&mut self, rank: u32, nic: usize, from: u64, ticks: u64) -> Result<(), Halt> {
        // Without slack, the interface is free at this time, so `free` equals `from`.
        let free = self.clocks[nic].max(from);
        let until = self.after(rank, free, &[ticks])?;
        self.hold(nic, free, until)
    }

    /// Returns the sum of `time` and all `ticks`. A sum beyond 2^64 is an error, or is taken modulo 2^64 if prices may
    /// be negative.
    #[inline]
    pub(super) fn after(&self, rank: u32, time: u64, ticks: &[u64]) -> Result<u64, Halt> {
        if let Some(sum) = ticks.iter().try_fold(time, |sum, &ticks| sum.checked_add(ticks)) {
            return Ok(sum);
        }
        if self.wraps {
            return Ok(ticks.iter().fold(time, |sum, &ticks| sum.wrapping_add(ticks)));
        }
        Err(Halt::Failed(SimError::Overflow { place: format!("rank {rank}") }))
    }

    pub(super) fn noise(&self, rank: u32, id: u32, direction: u64) -> u64 {
        self.options
            .noise
            .filter(|_| self.prices.is_noisy(rank))
            .map_or(0, |noise| noise.ticks(self.options.seed, 2 * u64::from(id) + direction))
    }
}
