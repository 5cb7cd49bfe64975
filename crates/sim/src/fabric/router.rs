//! Executes one cycle of one router. A *row* is one color at a router ([`super::tables::Row`]).

use std::hint::black_box;

use unisono_lower::wafer::Port;

use super::{
    clock::{Clock, SOON, Wakes},
    error::SimError,
    moves::router_key,
    tables::{NONE, RAMP, RAMP_BIT},
};

impl Clock<'_> {
    /// Moves at most one wavelet over each outgoing link. Rows take turns in being first. `still` are the ports whose
    /// neighbors sleep ([`super::steady`]).
    #[inline]
    pub(super) fn visit_router(&mut self, pe: u32, still: u8, wakes: &mut Wakes) -> Result<(), SimError> {
        let arrived = std::mem::take(&mut self.arriving[pe as usize][(self.cycle % SOON) as usize]);
        let pending = self.pending[pe as usize] | arrived;
        self.pending[pe as usize] = pending;
        if pending == 0 {
            return Ok(());
        }
        let (first, end) = (self.tables.pe_rows[pe as usize], self.tables.pe_rows[pe as usize + 1]);
        self.read_ahead(first, pending);
        let turn = self.router_turn[pe as usize];
        let before = (1u64 << turn) - 1;
        let mut busy = 0u8;
        for mut rows in [pending & !before, pending & before] {
            while rows != 0 {
                let n = rows.trailing_zeros();
                rows &= rows - 1;
                if self.visit_row(pe, first + n, still, &mut busy, wakes)? && n == u32::from(turn) {
                    // The row that went first is tried last in the next turn.
                    self.router_turn[pe as usize] = if n + 1 == end - first { 0 } else { turn + 1 };
                }
            }
        }
        Ok(())
    }

    /// Reads the pending rows, then the queues that they accept from, so that cache misses overlap.
    #[inline]
    fn read_ahead(&self, first: u32, pending: u64) {
        let rows = || {
            let mut left = pending;
            std::iter::from_fn(move || {
                let n = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                (n < u64::BITS).then_some((first + n) as usize)
            })
        };
        if pending & pending.wrapping_sub(1) == 0 {
            return;
        }
        let read = rows().fold(0, |sum, row| sum ^ self.tables.rows[row].position);
        let accepted = |row: usize| {
            let r = &self.tables.rows[row];
            r.inputs[(r.rx[usize::from(r.position)].trailing_zeros() as usize).min(RAMP)]
        };
        black_box(rows().fold(u32::from(read), |sum, row| sum ^ self.tables.queues.read_ahead(accepted(row))));
    }

    /// Moves the accepted head of one color, if there is one. Returns true if a wavelet moved. `busy` are the links
    /// that are already used in this cycle.
    #[inline]
    fn visit_row(&mut self, pe: u32, row: u32, still: u8, busy: &mut u8, wakes: &mut Wakes) -> Result<bool, SimError> {
        let cycle = self.cycle;
        let r = &self.tables.rows[row as usize];
        let position = r.position;
        let (accepted, tx) = (r.rx[usize::from(position)], r.tx[usize::from(position)]);
        let mut head = None;
        let mut ports = accepted;
        while ports != 0 {
            let port = ports.trailing_zeros() as usize;
            ports &= ports - 1;
            if r.inputs[port] == NONE {
                continue;
            }
            if let Some(wavelet) = self.tables.queues.front(r.inputs[port], cycle) {
                if head.is_some() {
                    let (row, col) = self.program.grid.row_col(pe);
                    return Err(SimError::Collision { cycle: u64::from(cycle), row, col, color: r.color });
                }
                head = Some((port, r.inputs[port], wavelet));
            }
        }
        let Some((port, queue, wavelet)) = head else {
            let empty = |p: usize| r.inputs[p] == NONE || self.tables.queues.len(r.inputs[p]) == 0;
            // If a wavelet is not ready, its push has noted the cycle in which it becomes ready.
            if !self.arrive_late || (0..5).all(|p| accepted >> p & 1 == 0 || empty(p)) {
                self.pending[pe as usize] &= !(1 << (row - self.tables.pe_rows[pe as usize]));
            }
            return Ok(false);
        };
        // A control wavelet does not go to the PE.
        let tx = if wavelet.is_control() { tx & !RAMP_BIT } else { tx };
        if tx & *busy != 0 {
            // Another color has used the link. The link is free again in the next cycle.
            wakes.next();
            return Ok(false);
        }
        let outputs = r.outputs;
        let mut ports = tx;
        while ports != 0 {
            let out = ports.trailing_zeros() as usize;
            ports &= ports - 1;
            let room = if still >> out & 1 == 1 {
                self.has_room_still(pe, out, outputs[out])
            } else {
                self.tables.queues.has_room(outputs[out], cycle)
            };
            if !room {
                // The PE or router that pops from the next queue marks this row as pending again. It does not do so if
                // it has already popped in this cycle, or if it is a sleeping neighbor.
                if still == 0 && !self.tables.queues.popped_in(outputs[out], cycle) {
                    self.pending[pe as usize] &= !(1 << (row - self.tables.pe_rows[pe as usize]));
                }
                return Ok(false);
            }
        }
        *busy |= tx;
        if port != RAMP && still >> port & 1 == 0 {
            self.steady.pops(&mut self.tables.queues, queue, cycle);
        }
        let full = self.tables.queues.pop(queue, cycle);
        let tally = &mut self.tallies[pe as usize];
        tally.stalls += u64::from(cycle - wavelet.ready());
        tally.last = cycle;
        tally.controls += u32::from(wavelet.is_control());
        let mut ports = tx;
        while ports != 0 {
            let out = ports.trailing_zeros() as usize;
            ports &= ports - 1;
            self.tallies[pe as usize].events += 1;
            if out == RAMP {
                let ready = cycle + self.options.ramp_latency;
                self.tables.queues.push(outputs[out], wavelet.moved(ready));
                wakes.at(cycle, ready);
                continue;
            }
            self.tallies[pe as usize].hops += 1;
            if still >> out & 1 == 1 {
                self.push_still(pe, out, outputs[out], wavelet);
            } else {
                let neighbor = self.neighbor(pe, out);
                self.push_link(outputs[out], wavelet.moved(cycle + 1), neighbor);
                self.steady.pushed(self.tables.queues.ring(outputs[out]), cycle);
                self.wake_next(neighbor);
            }
        }
        if wavelet.is_control() || (port == RAMP && wavelet.advances()) {
            let r = &mut self.tables.rows[row as usize];
            r.position = (r.position + 1).min(r.positions - 1);
        } else if accepted.is_power_of_two() && self.tables.queues.len(queue) == 0 {
            // The next push to the row's only input marks the row as pending again.
            self.pending[pe as usize] &= !(1 << (row - self.tables.pe_rows[pe as usize]));
        }
        if !wavelet.is_control() {
            self.router_log.add(row, router_key(port, position), cycle);
        }
        // In the next cycle, the upstream neighbor can use the freed slot, and this router can move its next wavelet.
        wakes.next();
        // If the queue was not full, the neighbor did not wait for this slot.
        if port != RAMP && still >> port & 1 == 0 && full {
            let neighbor = self.neighbor(pe, port);
            self.pending[neighbor as usize] |= 1 << self.tables.queues.feeder(queue);
            self.wake_next(neighbor);
        }
        Ok(true)
    }

    /// Pushes a wavelet into a queue of the router of PE `owner`.
    #[inline]
    pub(super) fn push_link(&mut self, queue: u32, wavelet: super::queue::Wavelet, owner: u32) {
        self.tables.queues.push(queue, wavelet);
        self.arrive(queue, wavelet, owner);
    }

    /// Marks the row of a queue, at the router of PE `owner`, as pending from the cycle from which a wavelet may move.
    #[inline]
    pub(super) fn arrive(&mut self, queue: u32, wavelet: super::queue::Wavelet, owner: u32) {
        let (ready, row) = (wavelet.ready(), 1 << self.tables.queues.row(queue));
        if ready > self.cycle && ready - self.cycle < SOON {
            self.arriving[owner as usize][(ready % SOON) as usize] |= row;
        } else {
            self.pending[owner as usize] |= row;
        }
    }

    pub(super) fn neighbor(&self, pe: u32, port: usize) -> u32 {
        let cols = self.program.grid.cols;
        match Port::ALL[port] {
            Port::North => pe - cols,
            Port::South => pe + cols,
            Port::West => pe - 1,
            Port::East => pe + 1,
            Port::Ramp => pe,
        }
    }
}
