//! Check 10: an untimed run. Wavelets move in bursts through queues without bounds; a router forwards what its current
//! position accepts, a control wavelet by the position it meets and then advances it. Every position accepts one port,
//! so the outcome does not depend on the order of steps. What is not found here: whether finite queues suffice.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use unisono_base::{interrupt::poll, narrow};
use unisono_lower::wafer::{End, Port, WaferProgram};

use super::{Findings, fabric};

#[derive(Clone, Copy)]
enum Item {
    Data(u64),
    Control,
    /// After the last wavelet of an operation: the router of the sender advances.
    Advance,
}

#[derive(Clone, Copy)]
enum Work {
    Thread(u32),
    Router(u32),
}

struct Run<'a> {
    program: &'a WaferProgram,
    /// PE of each thread, PE and position of each route, first route of each PE.
    pe_of_thread: Vec<u32>,
    pe_of_route: Vec<u32>,
    first_route: Vec<u32>,
    position: Vec<u8>,
    /// Wavelets that wait at a router, by route and port.
    waiting: FxHashMap<(u32, Port), VecDeque<Item>>,
    /// Wavelets that wait at a PE.
    arrived: Vec<u64>,
    /// Current operation of each thread and its elements that remain.
    at: Vec<(u32, u64)>,
    ended: Vec<bool>,
    work: Vec<Work>,
    lost: Vec<(u32, Port)>,
}

pub fn check(program: &WaferProgram, found: &mut Findings) {
    let mut run = Run::new(program);
    while let Some(work) = run.work.pop() {
        match work {
            Work::Thread(t) => run.thread(t as usize),
            Work::Router(r) => run.router(r),
        }
    }
    run.report(found);
}

impl<'a> Run<'a> {
    fn new(program: &'a WaferProgram) -> Self {
        let (mut pe_of_thread, mut pe_of_route, mut first_route, mut at) = (vec![], vec![], vec![], vec![]);
        for pe in 0..program.pe_count() {
            poll();
            first_route.push(narrow(pe_of_route.len()));
            pe_of_route.extend(program.routes(pe).iter().map(|_| narrow::<u32>(pe)));
            for thread in program.threads(pe) {
                pe_of_thread.push(narrow(pe));
                let first = program.thread_ops(thread).start;
                let len = if program.thread_ops(thread).is_empty() { 0 } else { program.op(first).len };
                at.push((narrow(first), u64::from(len)));
            }
        }
        let work = (0..narrow::<u32>(pe_of_thread.len())).rev().map(Work::Thread).collect();
        Self {
            program,
            position: vec![0; pe_of_route.len()],
            arrived: vec![0; pe_of_route.len()],
            waiting: FxHashMap::default(),
            ended: vec![false; program.op_count()],
            pe_of_thread,
            pe_of_route,
            first_route,
            at,
            work,
            lost: Vec::new(),
        }
    }

    fn route(&self, pe: u32, color: u8) -> Option<u32> {
        let local = fabric::route(self.program, pe as usize, color)?;
        Some(self.first_route[pe as usize] + narrow::<u32>(local))
    }

    fn push(&mut self, route: u32, port: Port, item: Item) {
        let queue = self.waiting.entry((route, port)).or_default();
        match (queue.back_mut(), item) {
            (Some(Item::Data(n)), Item::Data(more)) => *n += more,
            _ => queue.push_back(item),
        }
        self.work.push(Work::Router(route));
    }

    fn thread(&mut self, thread: usize) {
        let pe = self.pe_of_thread[thread];
        loop {
            let (op, left) = self.at[thread];
            let ops = self.program.thread_ops(thread);
            let number = op as usize;
            if number >= ops.end || self.program.waits(number).any(|w| self.ended.get(w) != Some(&true)) {
                return;
            }
            let mut ready = left;
            for source in self.program.sources(number) {
                if let End::Fabric(c) = *source {
                    ready = ready.min(self.route(pe, c).map_or(0, |r| self.arrived[r as usize]));
                }
            }
            if ready == 0 && left > 0 {
                return;
            }
            for source in self.program.sources(number) {
                if let End::Fabric(c) = *source
                    && let Some(r) = self.route(pe, c)
                {
                    self.arrived[r as usize] = self.arrived[r as usize].saturating_sub(ready);
                }
            }
            let o = self.program.op(number);
            let sink = self.program.sinks(number).iter().find(|s| matches!(s, End::Fabric(_)));
            let items = [Some(Item::Data(ready)), o.advance.map(|_| Item::Advance), o.control.map(|_| Item::Control)];
            let last = ready == left;
            for (n, item) in items.into_iter().enumerate() {
                if let (Some(item), Some(End::Fabric(c))) = (item, sink)
                    && (n == 0 || last)
                    && let Some(r) = self.route(pe, *c)
                {
                    self.push(r, Port::Ramp, item);
                }
            }
            if !last {
                self.at[thread].1 -= ready;
                return;
            }
            self.ended[number] = true;
            let next = number + 1;
            let len = if next < ops.end { self.program.op(next).len } else { 0 };
            self.at[thread] = (narrow(next), u64::from(len));
            // Others may have waited for this one.
            for other in self.program.threads(pe as usize).filter(|&t| t != thread) {
                self.work.push(Work::Thread(narrow(other)));
            }
        }
    }

    fn router(&mut self, route: u32) {
        let pe = self.pe_of_route[route as usize];
        let local = route - self.first_route[pe as usize];
        let r = self.program.routes(pe as usize)[local as usize];
        loop {
            let position = r.positions()[usize::from(self.position[route as usize])];
            let mut taken = None;
            for port in position.rx.iter() {
                if let Some(queue) = self.waiting.get_mut(&(route, port)) {
                    taken = queue.pop_front();
                    if queue.is_empty() {
                        self.waiting.remove(&(route, port));
                    }
                }
                if taken.is_some() {
                    break;
                }
            }
            let Some(item) = taken else { return };
            if !matches!(item, Item::Advance) {
                for port in position.tx.iter() {
                    self.forward(pe, route, port, r.color, item);
                }
            }
            if !matches!(item, Item::Data(_)) {
                let last = narrow::<u8>(r.positions().len()) - 1;
                let now = &mut self.position[route as usize];
                *now = (*now + 1).min(last);
            }
        }
    }

    fn forward(&mut self, pe: u32, route: u32, port: Port, color: u8, item: Item) {
        if port == Port::Ramp {
            if let Item::Data(n) = item {
                self.arrived[route as usize] += n;
                let threads = self.program.threads(pe as usize);
                self.work.extend(threads.map(|t| Work::Thread(narrow(t))));
            }
            return;
        }
        let next = fabric::neighbor(self.program, pe as usize, port);
        match next.and_then(|q| self.route(narrow(q), color)) {
            Some(there) => self.push(there, port.opposite(), item),
            None => self.lost.push((route, port)),
        }
    }

    fn color(&self, route: u32) -> (String, u8) {
        let pe = self.pe_of_route[route as usize];
        let local = route - self.first_route[pe as usize];
        let r = self.program.routes(pe as usize)[local as usize];
        (fabric::place(self.program, pe as usize), r.color)
    }

    fn report(&self, found: &mut Findings) {
        for &(route, port) in &self.lost {
            let (place, color) = self.color(route);
            found.add("lost", place, format!("wavelets of color {color} leave by {port:?} to where no route is"));
        }
        for (thread, &(op, left)) in self.at.iter().enumerate() {
            let ops = self.program.thread_ops(thread);
            if (op as usize) < ops.end {
                let place = fabric::place(self.program, self.pe_of_thread[thread] as usize);
                let n = op as usize - ops.start;
                found.add(
                    "deadlock",
                    place,
                    format!("operation {n} of {} still waits with {left} elements to go", ops.len()),
                );
            }
        }
        let mut stuck: Vec<_> = self.waiting.iter().collect();
        stuck.sort_unstable_by_key(|(at, _)| **at);
        for (&(route, port), items) in stuck {
            let (place, color) = self.color(route);
            let n: u64 = items.iter().map(|i| if let Item::Data(n) = i { *n } else { 1 }).sum();
            found.add(
                "left-over",
                place,
                format!("{n} wavelets of color {color} wait at {port:?} for a position that accepts them"),
            );
        }
        for (route, &n) in self.arrived.iter().enumerate().filter(|a| *a.1 > 0) {
            let (place, color) = self.color(narrow(route));
            found.add("left-over", place, format!("{n} wavelets of color {color} arrived and are not received"));
        }
    }
}
