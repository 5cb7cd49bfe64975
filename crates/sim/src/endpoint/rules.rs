//! The rules of tasks and messages, one function each.

use std::cmp::Reverse;

use unisono_base::TaskId;
use unisono_cost::endpoint::Prices;
use unisono_lower::tasks::{Kind, Task};

use super::{
    TraceEvent,
    blocked::{ClassKey, Use},
    carrier::Carrier,
    engine::{Engine, Halt, MESSAGE, WAITED},
    link::Link,
    matching::{Envelope, Side},
};
use unisono_base::queue::Event;

impl<P: Prices, C: Carrier> Engine<'_, P, C> {
    pub(super) fn step(&mut self, event: Event) -> Result<(), Halt> {
        let id = event.what & !(MESSAGE | WAITED);
        let task = self.graph.task(TaskId(id));
        let owner = self.links[id as usize].owner;
        self.until = event.time;
        if event.what & MESSAGE != 0 {
            return self.message(event, id, task, owner);
        }
        match task.kind {
            // If messages occupy no CPU, a message has one more event after its send is done.
            Kind::Send if !self.uses_cpus && self.links[id as usize].is_done() => {
                let at = self.at(ClassKey { rank: task.peer, usage: Use::Arrive, cpu: task.cpu, nic: task.nic });
                self.hold_cpu(at.cpu, event.time, event.time)?;
                self.received(event.time, id, task, owner);
                Ok(())
            }
            Kind::Send => self.send(event, id, task, owner),
            Kind::Receive => {
                self.receive(event.time, id, task, owner);
                Ok(())
            }
            Kind::Calc => self.compute(event, id, task, owner, self.prices.calc(task.amount)),
            Kind::Reduce => self.compute(event, id, task, owner, self.prices.reduce(owner, task.amount)),
        }
    }

    fn compute(&mut self, event: Event, id: u32, task: Task, rank: u32, ticks: u64) -> Result<(), Halt> {
        let key = ClassKey { rank, usage: Use::Compute, cpu: task.cpu, nic: 0 };
        let at = self.at(key);
        if ticks > 0 && self.is_parked(event, key, at) || self.waits(event, id, key, at) {
            return Ok(());
        }
        let end = self.after(rank, event.time, &[ticks, self.noise(rank, id, 0)])?;
        self.hold_cpu(at.cpu, event.time, end)?;
        self.record(rank, task, None, event.time, end);
        self.counts[task.kind as usize] += 1;
        self.start(id);
        self.until = end;
        self.end(id, 0);
        if let Ok(at) = self.options.watch.binary_search(&TaskId(id)) {
            self.watched[at] = end;
        }
        self.next_of_class(event, key, at);
        self.admit(rank, 0);
        Ok(())
    }

    fn send(&mut self, event: Event, id: u32, task: Task, rank: u32) -> Result<(), Halt> {
        let key = ClassKey { rank, usage: Use::Send, cpu: task.cpu, nic: task.nic };
        let at = self.at(key);
        if self.is_parked(event, key, at) || self.waits(event, id, key, at) {
            return Ok(());
        }
        let (time, price) = (event.time, self.prices.send(rank, task.peer, task.amount));
        let noise = self.noise(rank, id, 0);
        let end = self.after(rank, time, &[price.cpu, noise])?;
        self.hold_cpu(at.cpu, time, end)?;
        self.hold_nic(rank, at.nic, time, price.nic)?;
        self.record(rank, task, Some(task.peer), time, end);
        if C::PRICED {
            let arrival = self.after(rank, time, &[price.flight, noise])?;
            self.queue.push(Event { time: arrival, stamp: self.stamp, what: id | MESSAGE });
            self.stamp += 1;
        } else {
            self.carrier.carry(end, id, rank, task.peer, task.amount);
        }
        let leaving = &self.options.leaving;
        let leaves = !leaving.is_empty() && leaving.binary_search(&TaskId(id)).is_ok();
        if let (true, Some(held)) = (leaves, self.held.get_mut(at.cpu)) {
            *held = true;
        }
        if C::PRICED && leaves {
            self.begun(time, id);
            self.leaves.push(Reverse((end.max(self.after(rank, time, &[price.nic])?), id)));
        }
        self.counts[Kind::Send as usize] += 1;
        self.start(id);
        if task.amount <= self.eager && !leaves {
            self.end(id, 0);
        }
        self.next_of_class(event, key, at);
        self.admit(rank, 0);
        Ok(())
    }

    fn message(&mut self, event: Event, id: u32, task: Task, from: u32) -> Result<(), Halt> {
        let key = ClassKey { rank: task.peer, usage: Use::Arrive, cpu: task.cpu, nic: task.nic };
        let at = self.at(key);
        if self.waits(event, id, key, at) {
            return Ok(());
        }
        let (time, price) = (event.time, self.prices.receive(from, task.peer, task.amount));
        let end = self.after(task.peer, time, &[price.cpu, self.noise(task.peer, id, 1)])?;
        self.hold_nic(task.peer, at.nic, time, price.nic)?;
        self.record(task.peer, Task { kind: Kind::Receive, ..task }, Some(from), time, end);
        if self.uses_cpus {
            self.hold_cpu(at.cpu, time, end)?;
            self.until = end;
            self.received(time, id, task, from);
        } else {
            self.queue.push(Event { time: end, stamp: self.stamp, what: id });
            self.stamp += 1;
        }
        self.next_of_class(event, key, at);
        Ok(())
    }

    /// Gives a message to the receive that waits for it. If there is none, the message waits for a receive.
    fn received(&mut self, time: u64, id: u32, task: Task, from: u32) {
        let (graph, envelope) = (self.graph, Envelope { source: from, tag: task.tag });
        let posted = |id: u32, _: Link| {
            let receive = graph.task(TaskId(id));
            Envelope { source: receive.peer, tag: receive.tag }
        };
        match self.matching.take(&mut self.links, task.peer, Side::Receives, envelope, posted) {
            Some(receive) => {
                self.end(receive, 0);
                if task.amount > self.eager {
                    self.release_sender(time, id, from, task.peer, task);
                }
            }
            None => {
                self.left_over += 1;
                self.matching.append(&mut self.links, task.peer, Side::Messages, id, envelope);
            }
        }
        self.admit_both(task.peer, from);
    }

    fn receive(&mut self, time: u64, id: u32, task: Task, rank: u32) {
        self.counts[Kind::Receive as usize] += 1;
        self.start(id);
        let graph = self.graph;
        let wanted = Envelope { source: task.peer, tag: task.tag };
        let arrived = |id: u32, link: Link| Envelope { source: link.owner, tag: graph.task(TaskId(id)).tag };
        let mut from = rank;
        match self.matching.take(&mut self.links, rank, Side::Messages, wanted, arrived) {
            Some(message) => {
                self.left_over -= 1;
                self.end(id, 0);
                from = self.links[message as usize].owner;
                if task.amount > self.eager {
                    self.release_sender(time, message, from, rank, task);
                }
            }
            None => self.matching.append(&mut self.links, rank, Side::Receives, id, wanted),
        }
        self.admit_both(rank, from);
    }

    /// Ends the send of a matched long message. The sender's CPU and interface with the numbers that `named` holds were
    /// busy until `time`.
    fn release_sender(&mut self, time: u64, send: u32, from: u32, to: u32, named: Task) {
        let at = self.at(ClassKey { rank: from, usage: Use::Send, cpu: named.cpu, nic: named.nic });
        for clock in [at.cpu, at.nic] {
            self.clocks[clock] = self.clocks[clock].max(time);
        }
        self.end(send, usize::from(from != to));
    }

    fn record(&mut self, rank: u32, task: Task, peer: Option<u32>, start: u64, end: u64) {
        if !self.traced.is_empty() && self.traced[rank as usize] {
            let bytes = if task.kind == Kind::Calc { 0 } else { task.amount };
            self.trace.push(TraceEvent { rank, kind: task.kind.name(), cpu: task.cpu, peer, bytes, start, end });
        }
    }
}
