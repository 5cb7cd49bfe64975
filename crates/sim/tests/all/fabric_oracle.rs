//! A direct implementation of the fabric as the head of its module defines it. Every PE is visited in every cycle.
//! Optimized runs must give the same results.

use std::collections::{HashMap, VecDeque};

use unisono_lower::wafer::{End, Port, WaferProgram};
use unisono_sim::fabric::Options;

/// A wavelet: the cycle from which it may move, whether its sender's router advances after it, and whether it is a
/// control wavelet.
#[derive(Clone, Copy)]
struct Wavelet {
    ready: u32,
    advance: bool,
    control: bool,
}

#[derive(Clone, Default)]
struct Queue {
    wavelets: VecDeque<Wavelet>,
    capacity: usize,
    /// Number of wavelets when the cycle began.
    before: usize,
}

impl Queue {
    fn ready(&self, now: u32) -> bool {
        self.wavelets.front().is_some_and(|w| w.ready <= now)
    }
}

/// Key of a router's queue: PE, color and port; the ramp out of the router has port 5.
type Key = (usize, u8, usize);
const TO_PE: usize = 5;

#[derive(Clone, Copy, Default)]
struct Thread {
    op: usize,
    element: u32,
    chunk_start: u32,
    step: u32,
    earliest: u32,
}

/// The counts of a run.
#[derive(PartialEq, Debug)]
pub struct Counts {
    pub finish: Vec<u32>,
    pub events: u64,
    pub hops: u64,
    pub stalls: u64,
}

struct Oracle<'a> {
    program: &'a WaferProgram,
    ramp_latency: u32,
    queues: HashMap<Key, Queue>,
    positions: HashMap<(usize, u8), usize>,
    router_turn: Vec<usize>,
    thread_turn: Vec<usize>,
    threads: Vec<Thread>,
    ended: Vec<bool>,
    counts: Counts,
    moved: bool,
}

/// Runs a program; `None` if it stops before its end, or if two wavelets collide.
pub fn run(program: &WaferProgram, options: &Options) -> Option<Counts> {
    let pes = program.pe_count();
    let mut queues = HashMap::new();
    let down = (options.queue_depth + options.ramp_latency) as usize;
    for (pe, route) in (0..pes).flat_map(|pe| program.routes(pe).iter().map(move |r| (pe, r))) {
        for port in Port::ALL {
            let capacity = if port == Port::Ramp { down + 2 } else { options.queue_depth as usize };
            queues.insert((pe, route.color, port.index()), Queue { capacity, ..Queue::default() });
        }
        queues.insert((pe, route.color, TO_PE), Queue { capacity: down, ..Queue::default() });
    }
    let threads = (0..pes).flat_map(|pe| program.threads(pe));
    let mut oracle = Oracle {
        program,
        ramp_latency: options.ramp_latency,
        queues,
        positions: HashMap::new(),
        router_turn: vec![0; pes],
        thread_turn: vec![0; pes],
        threads: threads.map(|t| Thread { op: program.thread_ops(t).start, ..Thread::default() }).collect(),
        ended: vec![false; program.op_count()],
        counts: Counts { finish: vec![0; pes], events: 0, hops: 0, stalls: 0 },
        moved: false,
    };
    let patience = 200 + options.start.iter().max().copied().unwrap_or(0);
    let (mut now, mut last) = (0, 0);
    while now < last + patience {
        oracle.moved = false;
        oracle.queues.values_mut().for_each(|q| q.before = q.wavelets.len());
        for pe in 0..pes {
            oracle.router(pe, now)?;
            if now >= options.start.get(pe).copied().unwrap_or(0) {
                oracle.element(pe, now);
            }
        }
        last = if oracle.moved { now } else { last };
        now += 1;
    }
    let empty = oracle.queues.values().all(|q| q.wavelets.is_empty());
    (empty && oracle.ended.iter().all(|&e| e)).then_some(oracle.counts)
}

impl Oracle<'_> {
    fn has_room(&self, key: Key) -> bool {
        self.queues[&key].before < self.queues[&key].capacity
    }

    fn router(&mut self, pe: usize, now: u32) -> Option<()> {
        let program = self.program;
        let routes = program.routes(pe);
        let turn = self.router_turn[pe];
        let mut busy = 0u8;
        for n in (turn..routes.len()).chain(0..turn) {
            let color = routes[n].color;
            let position = *self.positions.entry((pe, color)).or_default();
            let at = routes[n].positions()[position];
            let ready: Vec<usize> =
                at.rx.iter().map(Port::index).filter(|&p| self.queues[&(pe, color, p)].ready(now)).collect();
            let [from] = ready[..] else {
                if ready.len() > 1 {
                    return None;
                }
                continue;
            };
            let wavelet = self.queues[&(pe, color, from)].wavelets[0];
            let outs: Vec<Port> = at.tx.iter().filter(|&p| !(wavelet.control && p == Port::Ramp)).collect();
            let bits = outs.iter().fold(0, |b, p| b | 1 << p.index());
            let key = |out: Port| match out.direction() {
                Some(d) => (program.grid.step(pe as u32, d, 1) as usize, color, out.opposite().index()),
                None => (pe, color, TO_PE),
            };
            if bits & busy != 0 || !outs.iter().all(|&o| self.has_room(key(o))) {
                continue;
            }
            busy |= bits;
            self.queues.get_mut(&(pe, color, from))?.wavelets.pop_front();
            for &out in &outs {
                let ready = if out == Port::Ramp { now + self.ramp_latency } else { now + 1 };
                self.queues.get_mut(&key(out))?.wavelets.push_back(Wavelet { ready, advance: false, ..wavelet });
                self.counts.hops += u64::from(out != Port::Ramp);
            }
            if wavelet.control || (from == Port::Ramp.index() && wavelet.advance) {
                self.positions.insert((pe, color), (position + 1).min(routes[n].positions().len() - 1));
            }
            if n == turn {
                self.router_turn[pe] = (turn + 1) % routes.len();
            }
            self.counts.events += outs.len() as u64;
            self.counts.stalls += u64::from(now - wavelet.ready);
            self.moved = true;
        }
        Some(())
    }

    /// Does at most one element operation, of the first thread in turn that can do a step.
    fn element(&mut self, pe: usize, now: u32) {
        let threads = self.program.threads(pe);
        for n in 0..threads.len() {
            let local = (self.thread_turn[pe] + n) % threads.len();
            if self.step(pe, threads.start + local, now) {
                self.thread_turn[pe] = (local + 1) % threads.len();
                self.moved = true;
                self.counts.events += 1;
                return;
            }
        }
    }

    fn step(&mut self, pe: usize, thread: usize, now: u32) -> bool {
        let (program, t) = (self.program, self.threads[thread]);
        if t.op == program.thread_ops(thread).end {
            return false;
        }
        let (op, sources) = (program.op(t.op), program.sources(t.op));
        let begins = (t.element, t.step) == (0, 0);
        if (begins && program.waits(t.op).any(|w| !self.ended[w])) || (t.step == 0 && now < t.earliest) {
            return false;
        }
        let one_by_one = op.chunk > 1 && matches!(sources, [End::Fabric(_), End::Fabric(_), ..]);
        // A result that is also stored in memory may be sent in a separate step.
        let steps = if one_by_one { sources.len() } else { (sources.len().max(2)) - 1 } as u32;
        let steps = steps + u32::from(op.sinks_in_turn);
        let step = t.step as usize;
        let takes = match (one_by_one, step) {
            (true, _) => step..step + 1,
            (false, 0) => 0..2,
            (false, _) => step + 1..step + 2,
        };
        let takes = takes.start.min(sources.len())..takes.end.min(sources.len());
        let fabric = |ends: &[End]| {
            ends.iter().filter_map(|e| if let End::Fabric(c) = e { Some(*c) } else { None }).collect::<Vec<_>>()
        };
        let (inputs, outputs) = (fabric(&sources[takes]), fabric(program.sinks(t.op)));
        let sends = t.step + 1 == steps;
        if !inputs.iter().all(|&c| self.queues[&(pe, c, TO_PE)].ready(now))
            || (sends && !outputs.iter().all(|&c| self.has_room((pe, c, Port::Ramp.index()))))
        {
            return false;
        }
        for c in inputs {
            self.queues.get_mut(&(pe, c, TO_PE)).unwrap().wavelets.pop_front();
        }
        let last = sends && t.element + 1 == op.len;
        for &c in outputs.iter().filter(|_| sends) {
            let queue = &mut self.queues.get_mut(&(pe, c, Port::Ramp.index())).unwrap().wavelets;
            let ready = now + 1 + self.ramp_latency;
            let advance = last && op.control.is_none() && op.advance.is_some();
            queue.push_back(Wavelet { ready, advance, control: false });
            if last && op.control.is_some() {
                queue.push_back(Wavelet { ready: ready + 1, advance: false, control: true });
            }
        }
        let t = &mut self.threads[thread];
        t.element += 1;
        if sends {
            t.earliest = now + u32::from(op.pace);
        }
        if t.element == op.len.min(t.chunk_start + op.chunk.max(1)) {
            (t.step, t.chunk_start) = if sends { (0, t.element) } else { (t.step + 1, t.chunk_start) };
            t.element = t.chunk_start;
        }
        if last {
            self.ended[t.op] = true;
            *t = Thread { op: t.op + 1, ..Thread::default() };
            self.counts.finish[pe] = now + 1;
        }
        true
    }
}
