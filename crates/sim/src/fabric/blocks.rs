//! Runs programs that rarely repeat, block by block, so that a block's PEs stay in a core's own cache for several
//! cycles.
//!
//! In cycle t a PE reads and changes its own state and the queues that it shares with its neighbors. All orders of the
//! PEs within a cycle give the same result ([`super::queue`] stamps wavelets and free slots with their cycle). So a PE
//! may run cycle t when all of its neighbors have run cycle t - 1 and none has run cycle t + 1. A block is the set of
//! all `(row, column, t)` with `row + t` and `column + t` in ranges of length [`SIDE`]. In each cycle, the block moves
//! by one row and one column against the order of the blocks. A neighbor's cycle t - 1 is then in the same block or an
//! earlier block, and its cycle t + 1 is later in the same block, or in a later block ("time skewing": Wolfe, "More
//! iteration space tiling", 1989).
//!
//! If the program allows it, the state is packed into bit masks first ([`super::packed`]).
//!
//! In blocks, no PE sleeps ([`super::steady`]): a PE falls asleep by a comparison of states of the same cycle, which
//! PEs of a block do not have.

use std::ops::Range;

use unisono_base::interrupt::poll;
use unisono_machine::Grid;

use super::{
    clock::{Clock, Wakes, slot_of},
    error::SimError,
    queue::LAST_CYCLE,
};

/// Rows and columns of a block.
const SIDE: u32 = 12;
/// Cycles that a block runs. Its PEs, on `SIDE + CYCLES` rows and columns, fit in a core's own cache.
pub(super) const CYCLES: u32 = 12;

/// The cycles of a trial. After a trial, the machine decides if the run continues in blocks.
const TRIAL: u32 = 24;
/// The number of consecutive restless trials after which a run continues in blocks: for a run that can be packed, and
/// for any other run.
const PACKED_TRIALS: u32 = 2;
const PLAIN_TRIALS: u32 = 20;
/// The number of consecutive busy trials after which a run that can be packed continues in blocks. Many PEs may sleep
/// in it, but all PEs packed cost less than the awake PEs unpacked.
const BUSY_TRIALS: u32 = 20;
/// The fewest PEs for which a run that can be packed continues in blocks.
const PACKED_FROM: u32 = 64;

/// Counts of PE visits in a run whose repeating PEs are skipped; `since` is the cycle after the last trial.
#[derive(Default)]
pub(super) struct Trial {
    pub visits: u64,
    since: u32,
    /// The number of consecutive trials so far in which many PEs were visited. `restless` counts the trials in which
    /// also few PEs slept.
    busy: u32,
    restless: u32,
    /// True if the run can be packed; `None` before the check.
    packs: Option<bool>,
}

/// A program that can be packed starts in blocks if twice the mean number of colors of a router is at least this, and
/// if most PEs have several threads. Such programs hardly repeat: on 48 x 40 and 64 x 64 PEs the programs of all
/// algorithms either have a value of 7 or more and continue in blocks sooner or later, or of 6 or less and never do.
const MANY_COLORS: usize = 7;

impl Clock<'_> {
    /// Returns true if a run can be packed and is expected to end up in blocks. Such a run starts in blocks.
    pub(super) fn will_be_restless(&self) -> bool {
        let pes = self.noted.len();
        let least = self.options.blocks_from;
        let threads = |pe: &usize| self.pe_threads[pe + 1] - self.pe_threads[*pe];
        least != u32::MAX
            && pes >= least.min(PACKED_FROM) as usize
            && 2 * self.tables.rows.len() >= MANY_COLORS * pes
            && (0..pes).filter(|pe| threads(pe) > 1).count() * 2 > pes
            && self.can_be_packed()
    }

    /// Returns true if so few visits were skipped in the last trials that the run should continue in blocks. A trial
    /// ends at `now` if it has lasted [`TRIAL`] cycles; otherwise the result is false.
    pub(super) fn is_restless(&mut self, now: u32) -> bool {
        let pes = self.noted.len() as u64;
        let least = self.options.blocks_from;
        if pes < u64::from(least.min(PACKED_FROM)) || least == u32::MAX || now - self.trial.since < TRIAL {
            return false;
        }
        let cycles = u64::from(now - self.trial.since);
        // A trial is busy if, on average, more than a quarter of all PEs were visited in a cycle.
        let busy = self.trial.visits * 4 > pes * cycles;
        let restless = busy && self.steady.sleepers() * 16 < pes;
        let packs = self.trial.packs.take().unwrap_or_else(|| self.can_be_packed());
        let count = |before: u32, goes_on: bool| if goes_on { before + 1 } else { 0 };
        self.trial = Trial {
            visits: 0,
            since: now,
            busy: count(self.trial.busy, busy),
            restless: count(self.trial.restless, restless),
            packs: Some(packs),
        };
        if packs {
            self.trial.restless >= PACKED_TRIALS || self.trial.busy >= BUSY_TRIALS
        } else {
            pes >= u64::from(least) && self.trial.restless >= PLAIN_TRIALS
        }
    }

    /// Runs all cycles from `now` in blocks, and returns the cycle after the last sweep.
    pub(super) fn run_blocks(&mut self, now: u32) -> Result<u32, SimError> {
        self.cycle = now;
        self.end_sleep()?;
        self.leave_tiles();
        if let Some(end) = self.run_packed(now)? {
            return Ok(end);
        }
        let mut at = now;
        while self.noted.iter().any(|&noted| noted != 0) && at < LAST_CYCLE {
            sweep(self.program.grid, at, |cycle, pes| pes.into_iter().try_for_each(|pe| self.run_noted(pe, cycle)))?;
            at += CYCLES;
        }
        Ok(at)
    }

    /// Runs a cycle of a PE if the bit of the cycle is set in the PE's `noted` mask.
    fn run_noted(&mut self, pe: u32, cycle: u32) -> Result<(), SimError> {
        let slot = slot_of(cycle);
        if self.noted[pe as usize] >> slot & 1 == 0 {
            return Ok(());
        }
        self.cycle = cycle;
        self.noted[pe as usize] &= !(1 << slot);
        let mut wakes = Wakes::default();
        self.visit_router(pe, 0, &mut wakes)?;
        self.visit_pe(pe, &mut wakes);
        self.noted[pe as usize] |= wakes.slots(slot);
        Ok(())
    }
}

/// Visits all PEs in each of [`CYCLES`] cycles from `now` on, by blocks. `visit` gets a cycle and a range of PEs of a
/// row.
pub(super) fn sweep<E>(grid: Grid, now: u32, mut visit: impl FnMut(u32, Range<u32>) -> Result<(), E>) -> Result<(), E> {
    let (rows, cols) = (grid.rows, grid.cols);
    for row in (0..rows + CYCLES).step_by(SIDE as usize) {
        for col in (0..cols + CYCLES).step_by(SIDE as usize) {
            for t in 0..CYCLES {
                let range =
                    |first: u32, count: u32| first.saturating_sub(t)..(first + SIDE).saturating_sub(t).min(count);
                for row in range(row, rows) {
                    poll();
                    let pes = range(col, cols);
                    if pes.start < pes.end {
                        visit(now + t, row * cols + pes.start..row * cols + pes.end)?;
                    }
                }
            }
        }
    }
    Ok(())
}
