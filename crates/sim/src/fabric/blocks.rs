//! A run that rarely repeats itself, block by block, so that the state of PEs is in a core's own cache while they run
//! some cycles.
//!
//! In cycle t a PE reads and changes its own state and the common queues with its neighbors. Any order of the PEs in a
//! cycle gives the same ([`super::queue`]: wavelets and free slots have their cycle), so a PE may run cycle t when each
//! of its neighbors has run cycle t - 1, and none of them has run cycle t + 1. A block is all `(row, column, t)` with
//! `row + t` and `column + t` in ranges of [`SIDE`]: it moves by one row and one column each cycle against the order of
//! the blocks. A neighbor's cycle t - 1 is then in the same block or an earlier one, and its cycle t + 1 in the same
//! one, later, or in a later one ("time skewing": Wolfe, "More iteration space tiling", 1989).
//!
//! Nobody sleeps meanwhile ([`super::steady`]), because to fall asleep a PE compares states of the same cycle.

use unisono_base::interrupt::poll;

use super::{
    error::SimError,
    machine::{Machine, Wakes, slot_of},
    queue::LAST_CYCLE,
};

/// Rows and columns of a block.
const SIDE: u32 = 12;
/// Cycles that a block runs. The PEs that it visits, of `SIDE + CYCLES` rows and columns, fit a core's own cache.
const CYCLES: u32 = 12;

/// Cycles after which it is decided whether a run goes on in blocks.
const TRIAL: u32 = 256;

/// Notes of how often PEs are visited while cycles can be skipped.
#[derive(Default)]
pub(super) struct Trial {
    pub visits: u64,
    since: u32,
    /// Whether the last stretch was restless too.
    restless: bool,
}

impl Machine<'_> {
    /// Whether the cycles before `now` were hardly skipped at all, in two trials one after the other.
    pub(super) fn is_restless(&mut self, now: u32) -> bool {
        let pes = self.noted.len() as u64;
        if pes < u64::from(self.options.blocks_from) || now - self.trial.since < TRIAL {
            return false;
        }
        let cycles = u64::from(now - self.trial.since);
        // A quarter of all PEs in each cycle, of which hardly any sleeps.
        let restless = self.trial.visits * 4 > pes * cycles && self.steady.sleepers() * 16 < pes;
        let before = std::mem::replace(&mut self.trial, Trial { visits: 0, since: now, restless });
        before.restless && restless
    }

    /// Runs all cycles from `now` on in blocks, and returns the cycle after the last sweep.
    pub(super) fn run_blocks(&mut self, mut now: u32) -> Result<u32, SimError> {
        self.cycle = now;
        self.end_sleep()?;
        self.leave_tiles();
        while self.noted.iter().any(|&noted| noted != 0) && now < LAST_CYCLE {
            let (rows, cols) = (self.program.grid.rows, self.program.grid.cols);
            for row in (0..rows + CYCLES).step_by(SIDE as usize) {
                for col in (0..cols + CYCLES).step_by(SIDE as usize) {
                    self.run_block(now, row, col)?;
                }
            }
            now += CYCLES;
        }
        Ok(now)
    }

    /// Runs one block from cycle `now` on, in which its first row and column are these.
    fn run_block(&mut self, now: u32, row: u32, col: u32) -> Result<(), SimError> {
        let (rows, cols) = (self.program.grid.rows, self.program.grid.cols);
        for t in 0..CYCLES {
            self.cycle = now + t;
            let slot = slot_of(self.cycle);
            let range = |first: u32, count: u32| first.saturating_sub(t)..(first + SIDE).saturating_sub(t).min(count);
            for row in range(row, rows) {
                poll();
                for pe in range(col, cols).map(|col| row * cols + col) {
                    if self.noted[pe as usize] >> slot & 1 == 0 {
                        continue;
                    }
                    self.noted[pe as usize] &= !(1 << slot);
                    let mut wakes = Wakes::default();
                    self.visit_router(pe, 0, &mut wakes)?;
                    self.visit_pe(pe, &mut wakes);
                    self.noted[pe as usize] |= wakes.slots(slot);
                }
            }
        }
        Ok(())
    }
}
