//! Executes one cycle of one PE: at most one element operation.

use std::ops::Range;

use unisono_base::narrow;
use unisono_lower::wafer::{End, WaferProgram};

use super::{
    clock::{Clock, Wakes},
    error::{SimError, Stuck},
    noop,
    queue::Wavelet,
    tables::{NONE, Place, RAMP, UNDONE},
    trace::TraceEvent,
};

/// State of a thread, with a copy of the data of its current operation for the hot loop.
#[derive(Clone, Default)]
pub struct Thread {
    op: u32,
    end: u32,
    /// The number of elements of the operation. `element` is the index of the next element.
    len: u32,
    element: u32,
    /// The number of elements for which each step is done before the next step begins. `chunk_start` is the first of
    /// these elements.
    chunk: u32,
    chunk_start: u32,
    /// The number of completed steps of the chunk. `work` is the number of all its steps. Each step takes one more
    /// source.
    step: u8,
    work: u8,
    sources: u8,
    /// True if the first step takes two sources. Each later step takes one source. In an operation with chunks from two
    /// fabric sources, the first step also takes one source.
    pairs: bool,
    /// 2 if the operation ends with a control wavelet that switches its color at all routers on the path; 1 if the
    /// wavelet switches the color only at its own router; 0 without a control wavelet.
    switches: u8,
    pace: u16,
    started: bool,
    /// True if other operations must complete before this one starts.
    waits: bool,
    /// Range of the operation's operands in `Tables::places`.
    places: u32,
    places_end: u32,
    /// The first cycle of the operation. `earliest` is the earliest cycle of the next element.
    start: u32,
    earliest: u32,
}

/// The work that a step has completed.
pub struct Done {
    /// True if the step was the last one of an element.
    pub last_step: bool,
    /// True if the step was the last one of the operation.
    pub last: bool,
}

/// Reason why a step is not possible.
enum Blocked {
    Input(u32),
    Room(u32),
    Turn(usize),
    Pace,
}

impl Thread {
    pub fn new(program: &WaferProgram, op_places: &[u32], thread: usize) -> Self {
        let ops = program.thread_ops(thread);
        let mut t = Self {
            op: narrow::<u32>(ops.start),
            end: narrow::<u32>(ops.end),
            chunk: 1,
            work: 1,
            pairs: true,
            pace: 1,
            ..Self::default()
        };
        t.load(program, op_places);
        t
    }

    /// Copies the data of the current operation that the hot loop uses.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the hot loop; lanes and sources of a PE are few, as `Tables::new` checks"
    )]
    fn load(&mut self, program: &WaferProgram, op_places: &[u32]) {
        if self.is_done() {
            return;
        }
        let op = self.op as usize;
        let o = program.op(op);
        (self.len, self.chunk) = (o.len, o.chunk.max(1));
        (self.element, self.chunk_start, self.step, self.started, self.earliest) = (0, 0, 0, false, 0);
        let sources = program.sources(op);
        self.sources = sources.len() as u8;
        self.pairs = takes_pairs(program, op);
        self.work = steps_of(program, op) as u8;
        self.switches = if o.control.is_some() { 2 } else { u8::from(o.advance.is_some()) };
        self.pace = o.pace;
        self.waits = program.waits(op).next().is_some();
        (self.places, self.places_end) = (op_places[op], op_places[op + 1]);
    }

    /// Returns this state for a thread whose operations come `shift` later and end at `end`. An operation that has not
    /// begun may differ in that thread.
    pub fn shifted(&self, (program, op_places): (&WaferProgram, &[u32]), shift: u32, end: u32) -> Self {
        let mut t = Self { op: self.op + shift, end, ..self.clone() };
        if t.started && !t.is_done() {
            (t.places, t.places_end) = (op_places[t.op as usize], op_places[t.op as usize + 1]);
        } else {
            t.load(program, op_places);
        }
        t
    }

    /// Returns the range of sources that the next step takes.
    #[inline]
    fn takes(&self) -> Range<usize> {
        self.takes_in(self.step)
    }

    /// Returns the range of sources that a step of the current operation takes.
    #[inline]
    pub fn takes_in(&self, step: u8) -> Range<usize> {
        let (step, sources) = (usize::from(step), usize::from(self.sources));
        // After the last source, one more step sends the chunk in the memory sink.
        match (self.pairs, step) {
            (false, _) => step.min(sources)..sources.min(step + 1),
            (true, 0) => 0..sources.min(2),
            (true, _) => sources.min(step + 1)..sources.min(step + 2),
        }
    }

    /// Does one step in the given cycle.
    #[inline]
    pub fn advance(&mut self, cycle: u32) -> Done {
        if !self.started {
            (self.started, self.start) = (true, cycle);
        }
        let last_step = self.step + 1 == self.work;
        let last = last_step && self.element + 1 == self.len;
        self.element += 1;
        if last_step {
            self.earliest = cycle + u32::from(self.pace);
        }
        if self.element == self.len.min(self.chunk_start + self.chunk) {
            (self.step, self.chunk_start) =
                if last_step { (0, self.element) } else { (self.step + 1, self.chunk_start) };
            self.element = self.chunk_start;
        }
        Done { last_step, last }
    }

    pub fn is_done(&self) -> bool {
        self.op == self.end
    }

    /// Returns the number of elements that remain before operation `op` of this thread can start. A thread does at most
    /// one element in a cycle.
    pub fn elements_before(&self, program: &WaferProgram, op: usize) -> u64 {
        if op <= self.op as usize {
            return 0;
        }
        let later = (self.op as usize + 1..op).map(|o| u64::from(program.op(o).len)).sum::<u64>();
        u64::from(self.len - self.element) + later
    }

    pub fn op(&self) -> usize {
        self.op as usize
    }

    /// Returns the number of times that the thread can repeat its last period, which began at `cycle` in the state
    /// `before`. `None` if the thread is not at the same point of its operation as at that time. A thread that did
    /// nothing can repeat without limit.
    pub fn periods(&self, before: &Self, cycle: u32, period: u32) -> Option<u32> {
        let place = |t: &Self| (t.op, t.step, t.started, t.element - t.chunk_start);
        let pause = |t: &Self, now: u32| t.earliest.saturating_sub(now);
        if place(self) != place(before) || pause(self, cycle + period) != pause(before, cycle) {
            return None;
        }
        match self.done_since(before) {
            0 => Some(u32::MAX),
            // The last chunk is excluded: it may be shorter, and ends the operation.
            done => Some(self.len.saturating_sub(self.chunk_start + self.chunk) / done),
        }
    }

    /// Repeats the last period `periods` times.
    pub fn skip(&mut self, before: &Self, periods: u32, period: u32) {
        let done = periods * self.done_since(before);
        self.chunk_start += done;
        self.element += done;
        self.earliest += periods * period;
    }

    /// Returns the number of elements done since `before`, within one operation.
    pub fn done_since(&self, before: &Self) -> u32 {
        self.chunk_start - before.chunk_start
    }

    pub fn earliest(&self) -> u32 {
        self.earliest
    }

    /// Returns the first cycle in which the pace allows the next step; `u32::MAX` if the thread has ended.
    #[inline]
    pub fn may_step_from(&self) -> u32 {
        if self.is_done() {
            u32::MAX
        } else if self.step == 0 {
            self.earliest
        } else {
            0
        }
    }

    /// Returns the number of steps before the thread's state must be looked up, without the last step of the operation.
    /// Until then, all steps are like the current step, or alternate between it and [`Self::other_step`].
    pub fn regular_steps(&self) -> u32 {
        if self.is_done() || !self.started {
            return 0;
        }
        let elements = u64::from(self.len - self.element);
        let steps = match (self.work, self.chunk) {
            (1, _) => elements,
            (2, 1) => 2 * elements - u64::from(self.step),
            _ => u64::from(self.len.min(self.chunk_start + self.chunk) - self.element),
        };
        narrow::<u32>((steps - 1).min(u64::from(u32::MAX - 1)))
    }

    /// Does the steps counted by [`Self::regular_steps`].
    pub fn do_regular_steps(&mut self) {
        let steps = self.regular_steps();
        match (self.work, self.chunk) {
            (1, _) => {
                self.element += steps;
                self.chunk_start = self.element - self.element % self.chunk;
            }
            (2, 1) => {
                let done = steps + u32::from(self.step);
                self.element += done / 2;
                self.step = u8::from(!done.is_multiple_of(2));
                self.chunk_start = self.element;
            }
            _ => self.element += steps,
        }
    }

    /// Returns the step that alternates with the current one.
    pub fn other_step(&self) -> u8 {
        if (self.work, self.chunk) == (2, 1) { 1 - self.step } else { self.step }
    }

    /// Returns the least number of cycles from a regular step to the next one.
    pub fn pace_after(&self, step: u8) -> u32 {
        // Only the first step of an element waits for the pace. In a chunk of several steps, no regular step comes
        // before a first step.
        let is_followed_by_first = step + 1 == self.work && (self.work == 1 || self.chunk == 1);
        if is_followed_by_first { u32::from(self.pace) } else { 1 }
    }

    /// Returns true if the operation has not started and must wait for other operations, which may be complete already.
    #[inline]
    pub fn has_to_wait(&self) -> bool {
        self.waits && !self.started
    }

    /// Returns the number of steps for each element of the current operation.
    pub fn steps(&self) -> u8 {
        self.work
    }

    #[inline]
    pub fn at_step(&self) -> u8 {
        self.step
    }

    /// Returns the sources and sinks of the current operation.
    pub fn places<'a>(&self, all: &'a [Place]) -> (&'a [Place], &'a [Place]) {
        all[self.places as usize..self.places_end as usize].split_at(usize::from(self.sources))
    }
}

/// Returns true if the first step of an operation takes two sources.
pub fn takes_pairs(program: &WaferProgram, op: usize) -> bool {
    program.op(op).chunk == 1 || !matches!(program.sources(op), [End::Fabric(_), End::Fabric(_), ..])
}

/// Returns the number of steps for each element of an operation.
pub fn steps_of(program: &WaferProgram, op: usize) -> u32 {
    let o = program.op(op);
    let chunks = || narrow::<u32>(program.sources(op).len()) + u32::from(o.sinks_in_turn);
    if takes_pairs(program, op) { o.work() } else { chunks() }
}

impl Clock<'_> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the hot loop; lanes and sources of a PE are few, as `Tables::new` checks"
    )]
    #[inline]
    pub(super) fn visit_pe(&mut self, pe: u32, wakes: &mut Wakes) {
        let first = self.pe_threads[pe as usize] as usize;
        let count = self.pe_threads[pe as usize + 1] as usize - first;
        if count == 0 {
            return;
        }
        if self.noisy && (self.cycle < self.start(pe as usize) || noop(self.options, pe, self.cycle)) {
            let next = self.start(pe as usize).max(self.cycle + 1);
            wakes.at(self.cycle, next);
            return;
        }
        let turn = usize::from(self.thread_turn[pe as usize]);
        for n in 0..count {
            let at = turn + n;
            let local = if at >= count { at - count } else { at };
            let thread = first + local;
            if self.threads[thread].is_done() {
                continue;
            }
            match self.can_step(thread) {
                Ok(()) => {
                    self.step(pe, thread, local as u32, wakes);
                    if count > 1 {
                        self.thread_turn[pe as usize] = if local + 1 == count { 0 } else { local + 1 } as u8;
                    }
                    wakes.next();
                    return;
                }
                Err(Blocked::Pace) => wakes.at(self.cycle, self.threads[thread].earliest),
                Err(_) => {}
            }
        }
    }

    /// Checks that the next step of the thread is possible in this cycle.
    #[inline]
    fn can_step(&self, thread: usize) -> Result<(), Blocked> {
        let t = &self.threads[thread];
        if t.waits
            && !t.started
            && let Some(wait) = self.program.waits(t.op as usize).find(|&w| self.op_span[w] == UNDONE)
        {
            return Err(Blocked::Turn(wait));
        }
        if t.step == 0 && self.cycle < t.earliest {
            return Err(Blocked::Pace);
        }
        let places = &self.tables.places[t.places as usize..t.places_end as usize];
        let (sources, sinks) = places.split_at(usize::from(t.sources));
        for place in &sources[t.takes()] {
            if let Place::Queue(q) = *place
                && self.tables.queues.front(q, self.cycle).is_none()
            {
                return Err(Blocked::Input(q));
            }
        }
        if t.step + 1 == t.work {
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

    #[inline]
    fn step(&mut self, pe: u32, thread: usize, local: u32, wakes: &mut Wakes) {
        let cycle = self.cycle;
        let t = &mut self.threads[thread];
        let (op, sources, takes) = (t.op, usize::from(t.sources), t.takes());
        let (first, end, switches) = (t.places as usize, t.places_end as usize, t.switches);
        let Done { last_step, last } = t.advance(cycle);
        let tally = &mut self.tallies[pe as usize];
        tally.events += 1;
        tally.last = cycle;
        for n in first + takes.start..first + takes.end {
            if let Place::Queue(q) = self.tables.places[n] {
                // Only a full queue prevents the router from sending, so the router needs a visit only in this case.
                if self.tables.queues.pop(q, cycle) {
                    self.pending[pe as usize] |= 1 << self.tables.queues.row(q);
                }
                self.ramp_log.add(q, op, cycle);
            }
        }
        if !last_step {
            return;
        }
        for n in first + sources..end {
            if let Place::Queue(q) = self.tables.places[n] {
                let ready = cycle + 1 + self.options.ramp_latency;
                self.push_link(q, Wavelet::data(ready, last && switches == 1), pe);
                self.ramp_log.add(q, op, cycle);
                if last && switches == 2 {
                    self.push_link(q, Wavelet::control(ready + 1), pe);
                    wakes.at(cycle, ready + 1);
                }
                wakes.at(cycle, ready);
            }
        }
        if last {
            self.finish_op(pe, thread, local);
        }
    }

    pub(super) fn finish_op(&mut self, pe: u32, thread: usize, local: u32) {
        let t = &mut self.threads[thread];
        let (op, start) = (t.op as usize, t.start);
        t.op += 1;
        t.load(self.program, &self.tables.op_places);
        self.op_span[op] = (start, self.cycle + 1);
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

    /// Returns an error with the number of unfinished PEs, which describes why each of the first 16 waits.
    pub(super) fn deadlock(&self) -> SimError {
        let cycle = self.tallies.iter().map(|t| u64::from(t.last) + 1).max().unwrap_or(0);
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
                let row = self.tables.rows[rows].iter().find(|r| r.inputs.contains(&queue) || r.outputs[RAMP] == queue);
                row.map_or(NONE, |r| u32::from(r.color))
            };
            let why = match self.can_step(thread) {
                Err(Blocked::Input(q)) => format!("waits for a wavelet of color {}", color(q)),
                Err(Blocked::Room(q)) => format!("cannot send on color {}", color(q)),
                Err(Blocked::Turn(w)) => format!("waits for i{}", self.program.op(w).instr.0),
                Err(Blocked::Pace) | Ok(()) => "was not visited".to_owned(),
            };
            let (row, col) = self.program.grid.row_col(narrow::<u32>(pe));
            stuck.push(Stuck { pe: narrow::<u32>(pe), row, col, instr: self.program.op(op).instr.0, why });
        }
        SimError::Deadlock { cycle, count, stuck }
    }
}
