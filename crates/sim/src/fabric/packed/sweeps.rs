//! Sweeps over the grid: each runs [`CYCLES`] cycles of all PEs, block by block, in the order of
//! [`super::super::blocks`].
//!
//! Each of n threads does every n-th sweep. A thread takes rows that the previous sweep has finished from a channel,
//! and passes the rows that it has finished to the next sweep. So the sweeps follow each other over the grid, and a row
//! belongs to one thread at a time. The results are the same as with one thread, which passes the rows to itself. A
//! sweep begins before the previous sweep ends. If the previous sweep proves to be the last one, nothing happens in the
//! further sweep. If a thread unwinds, its channels close, and the other threads end.

use std::{
    ops::Range,
    panic::resume_unwind,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use unisono_base::{interrupt::poll, narrow, parallel};

use super::{
    super::{Options, clock::Clock, queue::LAST_CYCLE},
    Packed, Row,
    visit::{Cycle, Moves},
};

/// Number of rows and of groups in a block, and number of cycles that the block runs.
const ROWS: usize = 8;
const GROUPS: usize = 8;
const CYCLES: usize = 16;

/// State that the threads of a run share.
pub struct Shared<'a, 'm> {
    pub options: &'m Options,
    pub noisy: bool,
    rows: usize,
    groups_in_row: usize,
    /// Bit of the color of each queue of a ramp.
    pub bit_of: &'a [u8],
    /// The machine, whose state is looked up rarely.
    pub machine: Mutex<&'a mut Clock<'m>>,
    begin: u32,
    /// The cycle after the last sweep, as far as known.
    end: AtomicU32,
}

/// The rows that a thread takes, the rows that it has, and the rows that it passes on.
struct Rows {
    from: Receiver<Row>,
    to: Sender<Row>,
    held: Vec<Row>,
}

/// A call of [`Rows::sweep`], compiled for the vector instructions of this processor.
struct Sweep<'s, 'a, 'm> {
    rows: &'s mut Rows,
    shared: &'s Shared<'a, 'm>,
    now: u32,
}

impl pulp::WithSimd for Sweep<'_, '_, '_> {
    type Output = Option<(bool, u64)>;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> Self::Output {
        self.rows.sweep(self.shared, self.now)
    }
}

impl Packed {
    /// Runs all cycles from `begin`, and returns the cycle after the last sweep.
    pub fn sweep(&mut self, machine: &mut Clock<'_>, begin: u32) -> u32 {
        let (options, noisy, rows) = (machine.options, machine.noisy, machine.program.grid.rows as usize);
        let longest = (LAST_CYCLE - begin).next_multiple_of(narrow(CYCLES));
        let end = AtomicU32::new(begin + longest);
        let (groups_in_row, bit_of) = (self.groups_in_row, &self.bit_of[..]);
        let shared = Shared { options, noisy, rows, groups_in_row, bit_of, machine: Mutex::new(machine), begin, end };
        // A sweep begins when the previous sweep has finished all cycles of a block's rows and of the rows next to
        // them.
        let most = rows / (CYCLES + 2 * ROWS);
        let shared = &shared;
        parallel::with_idle(most.min(options.jobs as usize), |count| {
            let (mut to, from): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
            for row in self.rows.drain(..) {
                to[0].send(row).expect("its receiver exists");
            }
            to.rotate_left(1);
            let mut rows = to.into_iter().zip(from).map(|(to, from)| Rows { from, to, held: Vec::new() });
            thread::scope(|scope| {
                let first = rows.next();
                let spawn = |(n, rows): (usize, Rows)| scope.spawn(move || rows.run(shared, n, count));
                let others: Vec<_> = (1..).zip(rows).map(spawn).collect();
                // An interruption unwinds from this call.
                let first = first.map(|rows| rows.run(shared, 0, count));
                let others = others.into_iter().map(|thread| thread.join().unwrap_or_else(|e| resume_unwind(e)));
                for (stalls, rows) in others.chain(first) {
                    self.stalls = self.stalls.wrapping_add(stalls);
                    self.rows.extend(rows);
                }
            });
        });
        shared.end.load(Relaxed)
    }
}

/// Returns the rows or groups of a block in its cycle `t`, of `count` in all. In cycle 0 they begin with `first`.
fn range(first: usize, side: usize, t: usize, count: usize) -> Range<usize> {
    first.saturating_sub(t)..(first + side).saturating_sub(t).min(count)
}

impl Rows {
    /// Does every `count`-th sweep, starting with number `first`. Returns the contribution to the stalls, and the
    /// channel with the rows that this thread has not taken.
    fn run(mut self, shared: &Shared<'_, '_>, first: usize, count: usize) -> (u64, Receiver<Row>) {
        // These are the widest vectors of this processor, not only those that every processor has.
        let vectors = pulp::Arch::new();
        let mut all = 0_u64;
        for now in (shared.begin + narrow::<u32>(first * CYCLES)..).step_by(count * CYCLES) {
            if now >= shared.end.load(Relaxed) {
                break;
            }
            let Some((active, stalls)) = vectors.dispatch(Sweep { rows: &mut self, shared, now }) else { break };
            all = all.wrapping_add(stalls);
            if !active {
                shared.end.fetch_min(now + narrow::<u32>(CYCLES), Relaxed);
            }
        }
        (all, self.from)
    }

    /// Runs [`CYCLES`] cycles of all PEs. Returns true if anything happened or will happen, and the contribution to the
    /// stalls. Returns `None` if the previous thread has ended. The functions that run in most cycles are inlined, so
    /// that they are compiled for the vectors of the processor.
    #[inline(always)]
    fn sweep(&mut self, shared: &Shared<'_, '_>, now: u32) -> Option<(bool, u64)> {
        let (rows, groups) = (shared.rows, shared.groups_in_row);
        let (mut active, mut stalls, mut passed) = (false, 0_u64, 0);
        for row in (0..rows + CYCLES).step_by(ROWS) {
            while passed + self.held.len() < (row + ROWS).min(rows) + 2 {
                self.held.push(self.from.recv().ok()?);
            }
            for group in (0..groups + CYCLES).step_by(GROUPS) {
                for (t, at) in (now..).take(CYCLES).enumerate() {
                    let cycle = Cycle::new(at, shared.options.ramp_latency, shared.options.queue_depth);
                    let mut moves = Moves::default();
                    for row in range(row, ROWS, t, rows) {
                        poll();
                        // The first row of the channel is beyond the edge of the grid.
                        let [above, own, below] = &mut self.held[row - passed..][..3] else { unreachable!() };
                        for at in range(group, GROUPS, t, groups) {
                            active |= own.visit((above, below), at, shared, &cycle, &mut moves);
                        }
                    }
                    stalls = stalls.wrapping_add(moves.stalls(&cycle, shared.options.ramp_latency));
                }
            }
            let done = if row < rows + CYCLES - ROWS { (row + ROWS + 1).saturating_sub(CYCLES) } else { rows + 2 };
            for row in self.held.drain(..done - passed) {
                active = active || row.will_wake(shared.options, now + narrow::<u32>(CYCLES));
                self.to.send(row).ok()?;
            }
            passed = done;
        }
        Some((active, stalls))
    }
}
