//! A run in blocks whose state is packed into bit masks, one bit for each color of a router, with the masks of some PEs
//! beside each other, so that the processor's vector instructions run a cycle of all of them at once.
//!
//! Where every color of a router has one position and one input, no wavelet is stored. A queue is the number of
//! wavelets in it. It changes by at most 1 up and down in a cycle, so the counts of all colors of a router are counted
//! together ([`group::Counters`]), and the colors that can move in a cycle are those that wait and whose next queue is
//! not full. A bit stands for the same color at all routers. What a PE reads of its neighbors is what they showed in
//! the cycle before ([`faces`]): which colors left over which link, which of their queues were full, and which were
//! nearly full, for the PE itself has sent what may have filled those since. What it did itself is a word that it
//! reads in a later cycle: a wavelet arrives at the router `1 + T_R` cycles after the PE sent it, and at the PE `T_R`
//! cycles after it left the router.
//!
//! Operations run for many steps by the same masks ([`group::Slot`]). The state of a thread is looked up when its
//! operation begins, ends, or comes to the end of a chunk. A group of PEs in which nothing happens is left out until a
//! wavelet comes from a neighbor ([`group::Group::quiet`]).
//!
//! The order of the wavelets needs no record either. A router's color has one input, so the number of its moves is its
//! whole log, and that is the elements of the operations that sent on it ([`unpack`]). If all operations on a queue of
//! the ramp belong to one thread, their lengths are the log of that queue. Stalls are the sum over all wavelets of the
//! cycle in which one moved less the cycle from which it could; in each cycle only the numbers of both are counted.

mod build;
mod faces;
pub(crate) mod group;
mod unpack;
mod visit;

use unisono_base::interrupt::poll;

use super::{error::SimError, machine::Machine, queue::LAST_CYCLE};
use faces::Faces;
use group::{Group, Slot};
use visit::{Cycle, Moves};

/// Rows and groups of a block, and the cycles that it runs ([`super::blocks`]).
const ROWS: usize = 8;
const GROUPS: usize = 8;
const CYCLES: u32 = 16;

struct Packed {
    /// Row by row.
    groups: Vec<Group>,
    groups_in_row: usize,
    /// Of each group some, one for each thread of its PEs.
    slots: Vec<Slot>,
    /// Of even cycles and of odd ones.
    faces: [Faces; 2],
    /// The bit of each queue of a ramp.
    bit_of: Vec<u8>,
    /// The cycles in which wavelets moved less those from which they could, modulo 2^64; a wavelet that moves over a
    /// link counts as if it waited from the same cycle on.
    stalls: u64,
}

impl Machine<'_> {
    /// Whether the program can be packed.
    pub fn can_be_packed(&self) -> bool {
        build::is_plain(self)
    }

    /// Runs all cycles from `now` on, if the program can be packed, and returns the cycle after the last one.
    pub(super) fn run_packed(&mut self, now: u32) -> Result<Option<u32>, SimError> {
        let Some(mut packed) = Packed::new(self, now) else { return Ok(None) };
        // Only an unpacked run needs them.
        self.tables.queues.empty();
        (self.arriving, self.pending) = (Vec::new(), Vec::new());
        // The widest vectors of this processor, not only those that every processor has.
        let vectors = pulp::Arch::new();
        let mut at = now;
        let mut active = true;
        while active && at < LAST_CYCLE {
            active = vectors.dispatch(Sweep { packed: &mut packed, machine: self, now: at });
            at += CYCLES;
            active = active || packed.will_wake(self, at);
        }
        packed.unpack(self)?;
        Ok(Some(at))
    }
}

/// [`Packed::sweep`], compiled for the vectors of a processor.
struct Sweep<'a, 'm> {
    packed: &'a mut Packed,
    machine: &'a mut Machine<'m>,
    now: u32,
}

impl pulp::WithSimd for Sweep<'_, '_> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> bool {
        self.packed.sweep(self.machine, self.now)
    }
}

impl Packed {
    /// Runs [`CYCLES`] cycles of all PEs, block by block, in the order of [`super::blocks`]. Returns whether anything
    /// happened. What it calls in most cycles is inlined, and is so compiled for the vectors of the processor.
    #[inline(always)]
    fn sweep(&mut self, m: &mut Machine<'_>, now: u32) -> bool {
        let (rows, groups, cycles) = (m.program.grid.rows as usize, self.groups_in_row, CYCLES as usize);
        let range = |first: usize, side: usize, t: usize, count: usize| {
            first.saturating_sub(t)..(first + side).saturating_sub(t).min(count)
        };
        let mut active = false;
        for row in (0..rows + cycles).step_by(ROWS) {
            for group in (0..groups + cycles).step_by(GROUPS) {
                for (t, at) in (now..now + CYCLES).enumerate() {
                    let cycle = Cycle::new(at, m.options.ramp_latency, m.options.queue_depth);
                    let mut moves = Moves::default();
                    for row in range(row, ROWS, t, rows) {
                        poll();
                        for at in range(group, GROUPS, t, groups) {
                            active |= self.visit(m, row, at, &cycle, &mut moves);
                        }
                    }
                    self.stalls = self.stalls.wrapping_add(moves.stalls(&cycle, m.options.ramp_latency));
                }
            }
        }
        active
    }
}
