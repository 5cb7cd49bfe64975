//! One cycle of one PE: at most one element operation.

use unisono_lower::wafer::WaferProgram;

use super::{
    error::{SimError, Stuck},
    machine::Machine,
    queue::Wavelet,
    tables::{NONE, Place},
    trace::TraceEvent,
};

/// The state of a thread.
pub struct Thread {
    op: u32,
    end: u32,
    /// Elements of the operation that are done, and steps of the next one.
    element: u32,
    step: u32,
    /// The reduction of the next element so far.
    held: u32,
    /// First cycle of the operation; the earliest cycle of the next element.
    started: u32,
    earliest: u32,
}

/// What a step found missing.
enum Blocked {
    Input(u32),
    Room(u32),
    Turn(usize),
    Pace,
}

impl Thread {
    pub fn new(program: &WaferProgram, thread: usize) -> Self {
        let ops = program.thread_ops(thread);
        Self { op: ops.start as u32, end: ops.end as u32, element: 0, step: 0, held: 0, started: NONE, earliest: 0 }
    }

    pub fn is_done(&self) -> bool {
        self.op == self.end
    }
}

impl Machine<'_> {
    #[inline]
    pub(super) fn visit_pe(&mut self, pe: u32) {
        let threads = self.program.threads(pe as usize);
        let count = threads.len();
        if count == 0 || self.cycle < self.start(pe as usize) {
            if count > 0 {
                self.wake(pe, self.start(pe as usize));
            }
            return;
        }
        if self.options.noop_probability > 0.0 && self.is_noop(pe) {
            self.wake(pe, self.cycle + 1);
            return;
        }
        let turn = usize::from(self.thread_turn[pe as usize]) % count;
        for n in 0..count {
            let at = turn + n;
            let local = if at >= count { at - count } else { at };
            let thread = threads.start + local;
            if self.threads[thread].is_done() {
                continue;
            }
            match self.can_step(thread) {
                Ok(()) => {
                    self.step(pe, thread, local as u32);
                    self.thread_turn[pe as usize] = ((local + 1) % count) as u8;
                    self.wake(pe, self.cycle + 1);
                    return;
                }
                Err(Blocked::Pace) => self.wake(pe, self.threads[thread].earliest),
                Err(_) => {}
            }
        }
    }

    /// Whether the next step of the thread's operation has all it needs.
    #[inline]
    fn can_step(&self, thread: usize) -> Result<(), Blocked> {
        let t = &self.threads[thread];
        let op = t.op as usize;
        let o = self.program.op(op);
        if t.started == NONE
            && let Some(wait) = self.program.waits(op).find(|&w| !self.op_done[w])
        {
            return Err(Blocked::Turn(wait));
        }
        if t.step == 0 && self.cycle < t.earliest {
            return Err(Blocked::Pace);
        }
        let (sources, sinks) = self.places(op);
        let needed = if t.step == 0 { &sources[..sources.len().min(2)] } else { &sources[t.step as usize + 1..][..1] };
        for place in needed {
            if let Place::Queue(q) = *place
                && self.tables.queues.front(q, self.cycle).is_none()
            {
                return Err(Blocked::Input(q));
            }
        }
        if t.step + 1 == o.work() {
            for place in sinks {
                if let Place::Queue(q) = *place
                    && !self.tables.queues.has_room(q, self.cycle)
                {
                    return Err(Blocked::Room(q));
                }
            }
        }
        Ok(())
    }

    fn places(&self, op: usize) -> (&[Place], &[Place]) {
        let places = &self.tables.places[self.tables.op_places[op] as usize..self.tables.op_places[op + 1] as usize];
        places.split_at(self.program.sources(op).len())
    }

    #[inline]
    fn step(&mut self, pe: u32, thread: usize, local: u32) {
        let cycle = self.cycle;
        let (op, element, step) = {
            let t = &mut self.threads[thread];
            if t.started == NONE {
                t.started = cycle;
            }
            (t.op as usize, t.element, t.step)
        };
        let o = *self.program.op(op);
        let first = self.tables.op_places[op] as usize;
        let sources = self.program.sources(op).len();
        self.events += 1;
        let mut value =
            if step == 0 { self.take(pe, self.tables.places[first], element) } else { self.threads[thread].held };
        if sources > 1 {
            let next = self.take(pe, self.tables.places[first + step as usize + 1], element);
            value = self.data.combine(value, next);
        }
        if step + 1 < o.work() {
            let t = &mut self.threads[thread];
            (t.held, t.step) = (value, step + 1);
            return;
        }
        let last = element + 1 == o.len;
        for n in first + sources..self.tables.op_places[op + 1] as usize {
            match self.tables.places[n] {
                Place::In(_) => {}
                Place::Out(at) => self.memory[self.out_start[pe as usize] + (at + element) as usize] = value,
                Place::Tmp(at) => self.memory[self.tmp_start[pe as usize] + (at + element) as usize] = value,
                Place::Queue(q) => {
                    let ready = cycle + 1 + self.options.ramp_latency;
                    self.tables.queues.push(q, Wavelet::data(value, ready, last && o.advance.is_some()));
                    if last && o.control.is_some() {
                        self.tables.queues.push(q, Wavelet::control(ready + 1));
                        self.wake(pe, ready + 1);
                    }
                    self.wake(pe, ready);
                }
            }
        }
        let t = &mut self.threads[thread];
        t.step = 0;
        t.earliest = cycle + u32::from(o.pace);
        t.element += 1;
        if last {
            self.finish_op(pe, thread, local);
        }
    }

    fn take(&mut self, pe: u32, place: Place, element: u32) -> u32 {
        match place {
            Place::In(at) => self.data.input(pe, at + element),
            Place::Out(at) => self.memory[self.out_start[pe as usize] + (at + element) as usize],
            Place::Tmp(at) => self.memory[self.tmp_start[pe as usize] + (at + element) as usize],
            Place::Queue(q) => {
                let value = self.tables.queues.front(q, self.cycle).map_or(0, |w| w.value);
                self.tables.queues.pop(q, self.cycle);
                value
            }
        }
    }

    fn finish_op(&mut self, pe: u32, thread: usize, local: u32) {
        let t = &mut self.threads[thread];
        let (op, start) = (t.op as usize, t.started);
        (t.op, t.element, t.started, t.earliest) = (t.op + 1, 0, NONE, 0);
        self.op_done[op] = true;
        self.finish[pe as usize] = self.cycle + 1;
        if t.is_done() {
            self.unfinished -= 1;
        }
        if self.traced.get(pe as usize).copied().unwrap_or(false) {
            let o = self.program.op(op);
            self.trace.push(TraceEvent {
                pe,
                thread: local,
                instr: o.instr.0,
                phase: o.phase,
                elements: o.len,
                start,
                end: self.cycle + 1,
            });
        }
    }

    /// Whether the PE inserts a no-op in this cycle.
    fn is_noop(&self, pe: u32) -> bool {
        let x = (u64::from(pe) << 32 | u64::from(self.cycle)) ^ self.options.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64 <= self.options.noop_probability
    }

    /// Names what every unfinished PE waits for.
    pub(super) fn deadlock(&self) -> SimError {
        let mut stuck = Vec::new();
        let mut count = 0;
        for pe in 0..self.program.pe_count() {
            let waiting = self.program.threads(pe).find(|&t| !self.threads[t].is_done());
            let Some(thread) = waiting else { continue };
            count += 1;
            if stuck.len() == 16 {
                continue;
            }
            let op = self.threads[thread].op as usize;
            let color = |queue: u32| {
                let rows = self.tables.pe_rows[pe] as usize..self.tables.pe_rows[pe + 1] as usize;
                let row = self.tables.rows[rows].iter().find(|r| r.inputs.contains(&queue) || r.outputs[4] == queue);
                row.map_or_else(String::new, |r| format!(" {}", r.color))
            };
            let why = match self.can_step(thread) {
                Err(Blocked::Input(q)) => format!("waits for a wavelet of color{}", color(q)),
                Err(Blocked::Room(q)) => format!("cannot send on color{}", color(q)),
                Err(Blocked::Turn(w)) => format!("waits for i{}", self.program.op(w).instr.0),
                Err(Blocked::Pace) | Ok(()) => "was not visited".to_owned(),
            };
            let (row, col) = self.program.grid.row_col(pe as u32);
            stuck.push(Stuck { pe: pe as u32, row, col, instr: self.program.op(op).instr.0, why });
        }
        SimError::Deadlock { cycle: u64::from(self.cycle), count, stuck }
    }
}
