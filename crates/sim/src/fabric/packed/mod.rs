//! Runs in blocks with the state packed into bit masks, one bit for each color of a router. The masks of a group of PEs
//! are adjacent, so that the processor's vector instructions run a cycle of all of them at once.
//!
//! If every color of a router has one position and one input, no wavelet is stored: a queue is the number of its
//! wavelets. This number changes by at most 1 up and down in a cycle, so the queues of all colors of a router are
//! counted together ([`group::Counters`]). The colors that can move in a cycle are those that wait and whose next queue
//! is not full. A bit is the same color at all routers. A PE reads the state that its neighbors published in the
//! previous cycle ([`faces`]): the colors that left over each link, the queues that were full, and the queues that had
//! one free slot. The PE itself may have filled such a slot since. The PE's own moves are words that it reads in a
//! later cycle: with the ramp latency `T_R`, a wavelet arrives at the router `1 + T_R` cycles after the PE sent it, and
//! at the PE `T_R` cycles after it left the router.
//!
//! Operations do many steps with the same masks ([`group::Slot`]). The state of a thread is looked up when its
//! operation begins, ends, or reaches the end of a chunk. A group of PEs in which nothing happens is skipped until a
//! wavelet arrives from a neighbor ([`group::Group::quiet`]).
//!
//! The order of the wavelets is not recorded either. A router's color has one input, so its log is its number of moves,
//! which equals the number of elements of the operations that sent on this color ([`unpack`]). If all operations on a
//! queue of the ramp belong to one thread, their lengths are the log of that queue. The stalls are the sum, over all
//! wavelets, of the cycle of a move minus the cycle from which the move was possible. So each cycle only counts its
//! moves, and the wavelets that it makes movable.

mod build;
mod faces;
pub(crate) mod group;
mod sweeps;
mod unpack;
mod visit;

use super::{clock::Clock, error::SimError};
use faces::Faces;
use group::{Group, Slot};

/// A row of PEs. One row without groups precedes the first row of the grid, and another one follows the last row.
struct Row {
    groups: Vec<Group>,
    /// The slots of all groups. A group has as many slots as its PE with the most threads has threads.
    slots: Vec<Slot>,
    /// Published states of even and of odd cycles.
    faces: [Faces; 2],
}

struct Packed {
    rows: Vec<Row>,
    groups_in_row: usize,
    /// Bit of the color of each queue of a ramp.
    bit_of: Vec<u8>,
    /// The sum over moves of the cycle of the move minus the cycle from which the move was possible, modulo 2^64. After
    /// a move over a link, the next move of the wavelet counts as possible from the cycle of the former move.
    stalls: u64,
}

impl Clock<'_> {
    /// Returns whether the program can be packed.
    pub fn can_be_packed(&self) -> bool {
        build::is_plain(self)
    }

    /// Runs all cycles from `now` on, and returns the cycle after the last sweep. `None` if the program cannot be
    /// packed.
    pub(super) fn run_packed(&mut self, now: u32) -> Result<Option<u32>, SimError> {
        let Some(mut packed) = Packed::new(self, now) else { return Ok(None) };
        // These tables are used only by unpacked runs.
        self.tables.queues.empty();
        (self.arriving, self.pending) = (Vec::new(), Vec::new());
        let at = packed.sweep(self, now);
        packed.unpack(self)?;
        Ok(Some(at))
    }
}
