//! One cycle of one router.

use super::{
    error::SimError,
    machine::{Machine, Wakes},
    tables::{NONE, RAMP, RAMP_BIT},
};
use unisono_lower::wafer::Port;

impl Machine<'_> {
    /// Moves at most one wavelet over each outgoing link; who comes first turns round.
    #[inline]
    pub(super) fn visit_router(&mut self, pe: u32, wakes: &mut Wakes) -> Result<(), SimError> {
        let (first, end) = (self.tables.pe_rows[pe as usize], self.tables.pe_rows[pe as usize + 1]);
        let count = end - first;
        if count == 0 {
            return Ok(());
        }
        let turn = u32::from(self.router_turn[pe as usize]);
        let mut busy = 0u8;
        for n in 0..count {
            let at = turn + n;
            let row = first + if at >= count { at - count } else { at };
            if self.visit_row(pe, row as usize, &mut busy, wakes)? && n == 0 {
                // The one that went first goes last next time.
                self.router_turn[pe as usize] = if turn + 1 == count { 0 } else { turn + 1 } as u8;
            }
        }
        Ok(())
    }

    /// Moves the accepted head of one color, if there is one; `busy` are links taken in this cycle.
    #[inline]
    fn visit_row(&mut self, pe: u32, row: usize, busy: &mut u8, wakes: &mut Wakes) -> Result<bool, SimError> {
        let cycle = self.cycle;
        let r = &self.tables.rows[row];
        let (accepted, tx) = (r.rx[usize::from(r.position)], r.tx[usize::from(r.position)]);
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
        let Some((port, queue, wavelet)) = head else { return Ok(false) };
        // A control wavelet is not handed to the PE.
        let tx = if wavelet.is_control() { tx & !RAMP_BIT } else { tx };
        if tx & *busy != 0 {
            // Another color has the link; it is free again in the next cycle.
            wakes.next();
            return Ok(false);
        }
        let mut ports = tx;
        while ports != 0 {
            let out = ports.trailing_zeros() as usize;
            ports &= ports - 1;
            if !self.tables.queues.has_room(r.outputs[out], cycle) {
                // Whoever takes from that queue wakes this router.
                return Ok(false);
            }
        }
        *busy |= tx;
        let outputs = r.outputs;
        self.tables.queues.pop(queue, cycle);
        self.stalls += u64::from(cycle - wavelet.ready());
        let mut ports = tx;
        while ports != 0 {
            let out = ports.trailing_zeros() as usize;
            ports &= ports - 1;
            self.events += 1;
            if out == RAMP {
                let ready = cycle + self.options.ramp_latency;
                self.tables.queues.push(outputs[out], wavelet.moved(ready));
                wakes.at(cycle, ready);
            } else {
                self.hops += 1;
                self.tables.queues.push(outputs[out], wavelet.moved(cycle + 1));
                self.wake_next(self.neighbor(pe, out));
            }
        }
        if wavelet.is_control() || (port == RAMP && wavelet.advances()) {
            let r = &mut self.tables.rows[row];
            r.position = (r.position + 1).min(r.positions - 1);
        }
        // The freed slot lets the one before send in the next cycle; this router has its next wavelet then.
        wakes.next();
        if port != RAMP {
            self.wake_next(self.neighbor(pe, port));
        }
        Ok(true)
    }

    fn neighbor(&self, pe: u32, port: usize) -> u32 {
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
