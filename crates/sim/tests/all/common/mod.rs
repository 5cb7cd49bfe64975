//! The rules of LogGOPSim, implemented directly: every waiting event is queued again by itself. This is the oracle of
//! the endpoint simulator.
#![allow(dead_code, reason = "each test file uses what it needs")]

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
};

use unisono_base::TaskId;
use unisono_cost::endpoint::Goal;
use unisono_lower::tasks::{ANY, Kind, Task, TaskGraph};

/// Returns the finish time of each rank and the number of events, or the number of tasks never done.
pub fn simulate(graph: &TaskGraph, p: &Goal) -> Result<(Vec<u64>, u64), u64> {
    simulate_far(graph, p, |_, _, _| 0)
}

/// Simulates with longer flights: each message arrives `far(from, to, bytes)` later.
pub fn simulate_far(graph: &TaskGraph, p: &Goal, far: fn(u32, u32, u64) -> u64) -> Result<(Vec<u64>, u64), u64> {
    Reference::new(graph, *p, far).run()
}

#[derive(Default, Clone)]
struct Host {
    cpu_free: Vec<u64>,
    nic_recv_free: Vec<u64>,
    nic_send_free: Vec<u64>,
    /// Tasks of posted receives; `uq` has the tasks of unexpected messages.
    rq: VecDeque<u32>,
    uq: VecDeque<u32>,
}

struct Reference<'a> {
    graph: &'a TaskGraph,
    p: Goal,
    far: fn(u32, u32, u64) -> u64,
    hosts: Vec<Host>,
    owner: Vec<usize>,
    waits_for: Vec<usize>,
    done: Vec<bool>,
    /// (time, stamp, is a message, task).
    queue: BinaryHeap<Reverse<(u64, u64, bool, u32)>>,
    stamp: u64,
    events: u64,
    freed: BTreeMap<usize, Vec<u32>>,
}

impl<'a> Reference<'a> {
    fn new(graph: &'a TaskGraph, p: Goal, far: fn(u32, u32, u64) -> u64) -> Self {
        let host = Host {
            cpu_free: vec![0; graph.cpus() as usize],
            nic_recv_free: vec![0; graph.nics() as usize],
            nic_send_free: vec![0; graph.nics() as usize],
            ..Host::default()
        };
        let ranks = graph.rank_count();
        let owner: Vec<_> = (0..ranks).flat_map(|r| graph.tasks(r).map(move |_| r as usize)).collect();
        let mut waits_for = vec![0; owner.len()];
        for id in 0..owner.len() {
            graph.waiting(TaskId(id as u32)).for_each(|(later, _)| waits_for[later.index()] += 1);
        }
        let done = vec![false; owner.len()];
        let hosts = vec![host; ranks as usize];
        let (queue, freed) = (BinaryHeap::new(), BTreeMap::new());
        Self { graph, p, far, hosts, owner, waits_for, done, queue, stamp: 0, events: 0, freed }
    }

    fn run(mut self) -> Result<(Vec<u64>, u64), u64> {
        for id in 0..self.owner.len() {
            if self.waits_for[id] == 0 {
                self.freed.entry(self.owner[id]).or_default().push(id as u32);
            }
        }
        self.queue_freed();
        while let Some(Reverse((t, stamp, message, id))) = self.queue.pop() {
            self.event(t, stamp, message, id);
            self.queue_freed();
        }
        let left = self.done.iter().filter(|d| !**d).count() as u64;
        if left > 0 {
            return Err(left);
        }
        let finish = self.hosts.iter().map(|h| h.cpu_free.iter().copied().max().unwrap_or(0)).collect();
        Ok((finish, self.events))
    }

    fn queue_freed(&mut self) {
        for (host, mut tasks) in std::mem::take(&mut self.freed) {
            tasks.sort_by_key(|&id| match self.graph.task(TaskId(id)).kind {
                Kind::Send => 0,
                Kind::Receive => 1,
                Kind::Calc | Kind::Reduce => 2,
            });
            for id in tasks {
                let task = self.graph.task(TaskId(id));
                let h = &self.hosts[host];
                let (cpu, nic) = (h.cpu_free[usize::from(task.cpu)], h.nic_send_free[usize::from(task.nic)]);
                let time = if task.kind == Kind::Send { cpu.max(nic) } else { cpu };
                self.queue.push(Reverse((time, self.stamp, false, id)));
                self.stamp += 1;
            }
        }
    }

    fn free(&mut self, id: u32, started: bool) {
        for (later, on_start) in self.graph.waiting(TaskId(id)) {
            if on_start == started {
                self.waits_for[later.index()] -= 1;
                if self.waits_for[later.index()] == 0 {
                    self.freed.entry(self.owner[later.index()]).or_default().push(later.0);
                }
            }
        }
    }

    fn finish(&mut self, id: u32) {
        if !std::mem::replace(&mut self.done[id as usize], true) {
            self.free(id, false);
        }
    }

    fn matches(&self, receive: u32, message: u32) -> bool {
        let (r, m) = (self.graph.task(TaskId(receive)), self.graph.task(TaskId(message)));
        let source = self.owner[message as usize] as u32;
        (r.peer == ANY || r.peer == source) && (r.tag == ANY || m.tag == ANY || r.tag == m.tag)
    }

    fn event(&mut self, t: u64, stamp: u64, message: bool, id: u32) {
        let task = self.graph.task(TaskId(id));
        let Task { amount: s, peer, .. } = task;
        let (cpu, nic) = (usize::from(task.cpu), usize::from(task.nic));
        let me = self.owner[id as usize];
        let rest = s.wrapping_sub(1);
        let (per_o, per_g) = (rest.wrapping_mul(self.p.O), rest.wrapping_mul(self.p.G));
        let (o, g, l) = (self.p.o, self.p.g, self.p.L);
        if message {
            let h = &mut self.hosts[peer as usize];
            let w = h.cpu_free[cpu].max(h.nic_recv_free[nic]);
            if w > t {
                self.queue.push(Reverse((w, stamp, true, id)));
                return;
            }
            self.events += 1;
            h.cpu_free[cpu] = t.wrapping_add(o).wrapping_add(per_o.max(per_g));
            h.nic_recv_free[nic] = t.wrapping_add(g).wrapping_add(per_g);
            let found = self.hosts[peer as usize].rq.iter().position(|&r| self.matches(r, id));
            match found {
                Some(at) => {
                    let receive = self.hosts[peer as usize].rq.remove(at).unwrap();
                    self.finish(receive);
                    if s > self.p.S {
                        let h = &mut self.hosts[me];
                        h.cpu_free[cpu] = h.cpu_free[cpu].max(t);
                        h.nic_send_free[nic] = h.nic_send_free[nic].max(t);
                        self.finish(id);
                    }
                }
                None => self.hosts[peer as usize].uq.push_back(id),
            }
            return;
        }
        let h = &mut self.hosts[me];
        match task.kind {
            Kind::Calc | Kind::Reduce => {
                if h.cpu_free[cpu] > t {
                    self.queue.push(Reverse((h.cpu_free[cpu], stamp, false, id)));
                    return;
                }
                self.events += 1;
                h.cpu_free[cpu] = t.wrapping_add(if task.kind == Kind::Calc { s } else { 0 });
                self.free(id, true);
                self.finish(id);
            }
            Kind::Send => {
                let w = h.cpu_free[cpu].max(h.nic_send_free[nic]);
                if w > t {
                    self.queue.push(Reverse((w, stamp, false, id)));
                    return;
                }
                self.events += 1;
                h.cpu_free[cpu] = t.wrapping_add(o).wrapping_add(per_o);
                h.nic_send_free[nic] = t.wrapping_add(g).wrapping_add(per_g);
                let arrival = t.wrapping_add(o).wrapping_add(l).wrapping_add((self.far)(me as u32, peer, s));
                self.queue.push(Reverse((arrival, self.stamp, true, id)));
                self.stamp += 1;
                self.free(id, true);
                if s <= self.p.S {
                    self.finish(id);
                }
            }
            Kind::Receive => {
                self.events += 1;
                self.free(id, true);
                let found = h_uq(&self.hosts[me]).position(|m| self.matches(id, m));
                match found {
                    Some(at) => {
                        let message = self.hosts[me].uq.remove(at).unwrap();
                        self.finish(id);
                        if s > self.p.S {
                            let h = &mut self.hosts[self.owner[message as usize]];
                            h.cpu_free[cpu] = h.cpu_free[cpu].max(t);
                            h.nic_send_free[nic] = h.nic_send_free[nic].max(t);
                            self.finish(message);
                        }
                    }
                    None => self.hosts[me].rq.push_back(id),
                }
            }
        }
    }
}

fn h_uq(host: &Host) -> impl Iterator<Item = u32> + '_ {
    host.uq.iter().copied()
}
