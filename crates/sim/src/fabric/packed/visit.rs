//! One cycle of one PE and its router, in bit masks.

use super::{
    super::{
        machine::{Machine, UNDONE},
        noop,
        tables::RAMP,
    },
    AHEAD, Need, Packed, RAMP_ROOM, ROOM, Step, TO_PE, TO_ROUTER,
};

/// What is the same for all PEs in a cycle: the words of mail to write to, and what a move adds to the stalls.
pub struct Cycle {
    at: u32,
    came: usize,
    handed: usize,
    room: usize,
    /// By port of the output, for the wavelet; by port of the input, for the room that it leaves.
    arrives: [usize; RAMP + 1],
    frees: [usize; RAMP + 1],
    /// By port of the output: a wavelet that moves to a link waits from the next cycle on.
    stalls: [u64; RAMP + 1],
    /// For what a PE sends, and from which cycle on it waits.
    sends: usize,
    sent: u64,
}

impl Cycle {
    pub fn new(at: u32, ramp_latency: u32) -> Self {
        let slot = |ahead: u32| ((at + ahead) % AHEAD) as usize;
        let mut arrives = [TO_ROUTER + slot(1); RAMP + 1];
        arrives[RAMP] = TO_PE + slot(ramp_latency);
        let mut frees = [ROOM + ((at + 1) % 2) as usize; RAMP + 1];
        frees[RAMP] = RAMP_ROOM;
        let mut stalls = [u64::MAX; RAMP + 1];
        stalls[RAMP] = u64::from(at);
        Self {
            at,
            came: TO_ROUTER + slot(0),
            handed: TO_PE + slot(0),
            room: ROOM + (at % 2) as usize,
            arrives,
            frees,
            stalls,
            sends: TO_ROUTER + slot(1 + ramp_latency),
            sent: u64::from(at + 1 + ramp_latency),
        }
    }
}

impl Packed {
    /// Runs one cycle of a PE and its router. Returns whether anything happened.
    #[inline]
    pub fn visit(&mut self, m: &mut Machine<'_>, pe: u32, cycle: &Cycle) -> bool {
        let cell = &mut self.cells[pe as usize];
        let came = std::mem::take(&mut cell.mail[cycle.came]);
        cell.waiting.add(came);
        cell.room.add(std::mem::take(&mut cell.mail[cycle.room]));
        let moved = self.move_wavelets(pe, cycle);
        let cell = &mut self.cells[pe as usize];
        let handed = std::mem::take(&mut cell.mail[cycle.handed]);
        cell.inbox.add(handed);
        let stepped = self.visit_pe(m, pe, cycle);
        let cell = &mut self.cells[pe as usize];
        cell.ramp_room.add(std::mem::take(&mut cell.mail[RAMP_ROOM]));
        came | handed != 0 || moved || stepped
    }

    /// Moves at most one wavelet over each outgoing link. Returns whether one moved.
    #[inline]
    fn move_wavelets(&mut self, pe: u32, cycle: &Cycle) -> bool {
        let cell = &mut self.cells[pe as usize];
        let open = cell.room.nonzero();
        let mut movable = cell.waiting.nonzero() & open;
        if movable == 0 {
            return false;
        }
        let rows = &mut self.rows[cell.first_row as usize..];
        let mut several = movable & cell.several;
        while several != 0 {
            let row = several.trailing_zeros();
            several &= several - 1;
            let mut next = rows[row as usize].next;
            while next != 0 {
                if open >> next & 1 == 0 {
                    movable &= !(1 << row);
                }
                next = rows[usize::from(next)].next;
            }
        }
        let turn = u32::from(cell.router_turn);
        let rows_to = cell.rows_to;
        let (mut moved, mut more, mut stalls) = (0u32, 0u32, 0u64);
        while movable != 0 {
            let n = (movable.rotate_right(turn).trailing_zeros() + turn) % u32::BITS;
            let row = &mut rows[n as usize];
            row.moves += 1;
            moved |= 1 << n;
            let (from, to) = (usize::from(row.from), usize::from(row.to));
            let before = pe.wrapping_add(self.toward[from]) as usize;
            self.cells[before].mail[cycle.frees[from]] |= 1 << row.from_bit;
            let after = pe.wrapping_add(self.toward[to]) as usize;
            self.cells[after].mail[cycle.arrives[to]] |= 1 << row.to_bit;
            stalls = stalls.wrapping_add(cycle.stalls[to]);
            // The link is taken; a color that waits for it waits on.
            movable &= !(rows_to[to] | 1 << n);
            let mut next = row.next;
            while next != 0 {
                let output = &rows[usize::from(next)];
                let to = usize::from(output.to);
                let after = pe.wrapping_add(self.toward[to]) as usize;
                self.cells[after].mail[cycle.arrives[to]] |= 1 << output.to_bit;
                // The wavelet has left its queue once, but waits at each neighbor.
                stalls = stalls.wrapping_add(cycle.stalls[to]).wrapping_sub(u64::from(cycle.at));
                more |= 1 << next;
                movable &= !rows_to[to];
                next = output.next;
            }
        }
        let cell = &mut self.cells[pe as usize];
        cell.waiting.sub(moved);
        cell.room.sub(moved | more);
        cell.stalls = cell.stalls.wrapping_add(stalls);
        if moved != 0 {
            cell.last = cycle.at;
        }
        if moved >> turn & 1 == 1 {
            // The one that went first goes last next time.
            cell.router_turn = if turn + 1 == u32::from(cell.rows) { 0 } else { cell.router_turn + 1 };
        }
        moved != 0
    }

    /// Does at most one step of an operation. Returns whether one was possible.
    #[inline]
    fn visit_pe(&mut self, m: &mut Machine<'_>, pe: u32, cycle: &Cycle) -> bool {
        let cell = &self.cells[pe as usize];
        let (inbox, room) = (cell.inbox.nonzero(), cell.ramp_room.nonzero());
        let threads = cell.first_thread as usize..cell.first_thread as usize + usize::from(cell.threads);
        let mut able = 0u32;
        for (n, need) in self.needs[threads].iter().enumerate() {
            let has_all = need.takes & !inbox | need.sends & !room == 0;
            able |= u32::from(has_all & (need.earliest <= cycle.at)) << n;
        }
        let turn = u32::from(cell.thread_turn);
        while able != 0 {
            let local = (able.rotate_right(turn).trailing_zeros() + turn) % u32::BITS;
            let thread = (cell.first_thread + local) as usize;
            let need = self.needs[thread];
            if need.waits && must_wait(m, thread) {
                able &= !(1 << local);
                continue;
            }
            if m.noisy && (cycle.at < m.start(pe as usize) || noop(m.options, pe, cycle.at)) {
                return true;
            }
            self.step(m, pe, thread, local, need, cycle);
            return true;
        }
        false
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "threads of a PE are few, as `is_plain` checks")]
    fn step(&mut self, m: &mut Machine<'_>, pe: u32, thread: usize, local: u32, need: Need, cycle: &Cycle) {
        let cell = &mut self.cells[pe as usize];
        cell.inbox.sub(need.takes);
        // The router was visited before: it sees the room in the next cycle.
        cell.room.add(need.takes);
        cell.ramp_room.sub(need.sends);
        cell.mail[cycle.sends] |= need.sends;
        cell.stalls = cell.stalls.wrapping_sub(cycle.sent * u64::from(need.sends_count));
        cell.steps += 1;
        cell.last = cycle.at;
        cell.thread_turn = if local + 1 == u32::from(cell.threads) { 0 } else { local + 1 } as u8;
        if m.threads[thread].advance(cycle.at).last {
            m.cycle = cycle.at;
            m.finish_op(pe, thread, local);
            self.load(m, thread);
        }
        self.refresh(m, thread);
    }

    /// Notes what the next step of a thread needs.
    #[inline]
    pub fn refresh(&mut self, m: &Machine<'_>, thread: usize) {
        let t = &m.threads[thread];
        let Step { takes, sends, sends_count } = self.steps[(self.first_step[thread] + t.at_step()) as usize];
        self.needs[thread] = Need { takes, sends, earliest: t.may_step_from(), sends_count, waits: t.has_to_wait() };
    }

    /// Whether a PE can go on by time alone from a cycle on, in which nothing happened for a while.
    pub fn will_wake(&self, m: &Machine<'_>, at: u32) -> bool {
        let paused = |need: &Need| need.earliest != u32::MAX && need.earliest > at;
        self.needs.iter().any(paused) || (m.noisy && (0..self.cells.len()).any(|pe| m.start(pe) > at))
    }
}

#[cold]
fn must_wait(m: &Machine<'_>, thread: usize) -> bool {
    m.program.waits(m.threads[thread].op()).any(|w| m.op_span[w] == UNDONE)
}
