//! One cycle of one PE and its router, in bit masks.

use super::{
    super::{
        machine::{Machine, UNDONE},
        noop,
        tables::RAMP,
    },
    AHEAD, Need, Packed, RAMP_ROOM, ROOM, TO_PE, TO_ROUTER,
};

const SLOTS: u32 = AHEAD - 1;

impl Packed {
    /// Runs one cycle of a PE and its router. Returns whether anything happened or will by itself.
    #[inline]
    pub fn visit(&mut self, m: &mut Machine<'_>, pe: u32, cycle: u32) -> bool {
        let cell = &mut self.cells[pe as usize];
        let came = std::mem::take(&mut cell.mail[TO_ROUTER + (cycle & SLOTS) as usize]);
        let room = std::mem::take(&mut cell.mail[ROOM + (cycle & 1) as usize]);
        cell.waiting.add(came);
        cell.room.add(room);
        cell.stalls = cell.stalls.wrapping_sub(u64::from(cycle) * u64::from(came.count_ones()));
        let moved = self.move_wavelets(pe, cycle);
        let cell = &mut self.cells[pe as usize];
        let handed = std::mem::take(&mut cell.mail[TO_PE + (cycle & SLOTS) as usize]);
        cell.inbox.add(handed);
        let stepped = self.visit_pe(m, pe, cycle);
        let cell = &mut self.cells[pe as usize];
        let freed = std::mem::take(&mut cell.mail[RAMP_ROOM]);
        cell.ramp_room.add(freed);
        came | handed != 0 || moved || stepped
    }

    /// Moves at most one wavelet over each outgoing link. Returns whether one moved.
    #[inline]
    fn move_wavelets(&mut self, pe: u32, cycle: u32) -> bool {
        let cell = &mut self.cells[pe as usize];
        let open = cell.room.nonzero();
        let mut movable = cell.waiting.nonzero() & open;
        let mut several = movable & cell.several;
        if movable == 0 {
            return false;
        }
        let rows = &mut self.rows[cell.first_row as usize..];
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
        let (mut moved, mut sent) = (0u32, 0u32);
        // Mail of each port: for links at the neighbor in the next cycle, for the ramp at the PE itself.
        let mut arrives = [TO_ROUTER + ((cycle + 1) & SLOTS) as usize; RAMP + 1];
        arrives[RAMP] = TO_PE + ((cycle + self.ramp_latency) & SLOTS) as usize;
        let mut frees = [ROOM + ((cycle + 1) & 1) as usize; RAMP + 1];
        frees[RAMP] = RAMP_ROOM;
        while movable != 0 {
            let n = (movable.rotate_right(turn).trailing_zeros() + turn) & 31;
            let row = &mut rows[n as usize];
            row.moves += 1;
            moved |= 1 << n;
            let (from, to) = (usize::from(row.from), usize::from(row.to));
            let before = pe.wrapping_add(self.toward[from]) as usize;
            self.cells[before].mail[frees[from]] |= 1 << row.from_bit;
            let after = pe.wrapping_add(self.toward[to]) as usize;
            self.cells[after].mail[arrives[to]] |= 1 << row.to_bit;
            // The link is taken; a color that waits for it waits on.
            movable &= !(rows_to[to] | 1 << n);
            let mut next = row.next;
            while next != 0 {
                let output = &rows[usize::from(next)];
                let to = usize::from(output.to);
                let after = pe.wrapping_add(self.toward[to]) as usize;
                self.cells[after].mail[arrives[to]] |= 1 << output.to_bit;
                sent |= 1 << next;
                movable &= !rows_to[to];
                next = output.next;
            }
        }
        let cell = &mut self.cells[pe as usize];
        cell.waiting.sub(moved);
        cell.room.sub(moved | sent);
        cell.stalls = cell.stalls.wrapping_add(u64::from(cycle) * u64::from(moved.count_ones()));
        cell.last = if moved == 0 { cell.last } else { cycle };
        if moved >> turn & 1 == 1 {
            // The one that went first goes last next time.
            cell.router_turn = if turn + 1 == u32::from(cell.rows) { 0 } else { cell.router_turn + 1 };
        }
        moved != 0
    }

    /// Does at most one step of an operation. Returns whether one was done or one will be possible by time alone.
    #[inline]
    fn visit_pe(&mut self, m: &mut Machine<'_>, pe: u32, cycle: u32) -> bool {
        let cell = &self.cells[pe as usize];
        let (inbox, room) = (cell.inbox.nonzero(), cell.ramp_room.nonzero());
        let (count, turn) = (u32::from(cell.threads), u32::from(cell.thread_turn));
        let mut later = false;
        for n in 0..count {
            let local = if turn + n >= count { turn + n - count } else { turn + n };
            let thread = (cell.first_thread + local) as usize;
            let need = self.needs[thread];
            if need.takes & !inbox | need.sends & !room != 0 || (need.waits && must_wait(m, thread)) {
                continue;
            }
            if cycle < need.earliest {
                later |= need.earliest != u32::MAX;
                continue;
            }
            if m.noisy && (cycle < m.start(pe as usize) || noop(m.options, pe, cycle)) {
                return true;
            }
            self.step(m, pe, thread, local, need, cycle);
            return true;
        }
        later
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "threads of a PE are few, as `Packed::new` checks")]
    fn step(&mut self, m: &mut Machine<'_>, pe: u32, thread: usize, local: u32, need: Need, cycle: u32) {
        let cell = &mut self.cells[pe as usize];
        cell.inbox.sub(need.takes);
        // The router was visited before: it sees the room in the next cycle.
        cell.room.add(need.takes);
        cell.ramp_room.sub(need.sends);
        cell.mail[TO_ROUTER + ((cycle + 1 + self.ramp_latency) & SLOTS) as usize] |= need.sends;
        cell.steps += 1;
        cell.last = cycle;
        cell.thread_turn = if local + 1 == u32::from(cell.threads) { 0 } else { local + 1 } as u8;
        if m.threads[thread].advance(cycle).last {
            m.cycle = cycle;
            m.finish_op(pe, thread, local);
            self.load(m, thread);
        }
        self.refresh(m, thread);
    }

    /// Notes what the next step of a thread needs.
    #[inline]
    pub fn refresh(&mut self, m: &Machine<'_>, thread: usize) {
        let t = &m.threads[thread];
        let (takes, sends) = self.steps[(self.first_step[thread] + t.at_step()) as usize];
        self.needs[thread] = Need { takes, sends, earliest: t.may_step_from(), waits: t.has_to_wait() };
    }
}

#[cold]
fn must_wait(m: &Machine<'_>, thread: usize) -> bool {
    m.program.waits(m.threads[thread].op()).any(|w| m.op_span[w] == UNDONE)
}
