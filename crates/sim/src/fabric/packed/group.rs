//! The state of a group of PEs with their routers, a lane for each.

use super::super::tables::RAMP;

/// PEs of a group, which are adjacent in a row.
pub const LANES: usize = 16;

/// A word for each PE of a group. In most words a bit is a color.
pub type Lanes = [u32; LANES];

/// A word without bits for all PEs.
pub const NO_BITS: Lanes = [0; LANES];

/// The most cycles for which wavelets are under way on a ramp.
pub const AHEAD: u32 = 8;

/// The bit of a color that no router has.
pub const NO_COLOR: u32 = 1 << 31;

/// The colors from which a thread takes after its end.
pub const DONE: u32 = u32::MAX;

/// The value in place of a cycle that never comes.
pub const NEVER: u32 = i32::MAX as u32;

/// Counters from 0 to 15 for all colors of all PEs of a group, in bit slices: bit `n` of slice `k` is bit `k` of
/// counter `n`.
pub type Counters = [Lanes; 4];

/// The highest count.
pub const MOST: u32 = 15;

/// Adds 1 to the counters of a lane whose bit is set; none of them may be at its highest count.
#[inline(always)]
pub fn add(counters: &mut Counters, lane: usize, which: u32) {
    let mut carry = which;
    for slice in counters {
        let old = slice[lane];
        slice[lane] = old ^ carry;
        carry &= old;
    }
}

/// Subtracts 1 from the counters of a lane whose bit is set; none of them may be 0.
#[inline(always)]
pub fn sub(counters: &mut Counters, lane: usize, which: u32) {
    let mut borrow = which;
    for slice in counters {
        let old = slice[lane];
        slice[lane] = old ^ borrow;
        borrow &= !old;
    }
}

/// Returns the bits of the counters of a lane that are not 0.
#[inline(always)]
pub fn nonzero(counters: &Counters, lane: usize) -> u32 {
    counters[0][lane] | counters[1][lane] | counters[2][lane] | counters[3][lane]
}

/// Returns the bits of the counters of a lane that equal a count, given as a word of 0 or 1 bits a slice.
#[inline(always)]
pub fn equal(counters: &Counters, lane: usize, count: [u32; 4]) -> u32 {
    let differ = |k: usize| counters[k][lane] ^ count[k];
    !(differ(0) | differ(1) | differ(2) | differ(3))
}

/// Returns a count in the form of [`equal`].
pub fn count_slices(count: u32) -> [u32; 4] {
    std::array::from_fn(|k| if count >> k & 1 == 1 { u32::MAX } else { 0 })
}

/// Sets a counter that is 0.
pub fn set(counters: &mut Counters, lane: usize, bit: u32, count: u32) {
    debug_assert!(count <= MOST, "beyond the highest count");
    for (k, slice) in counters.iter_mut().enumerate() {
        slice[lane] |= (count >> k & 1) << bit;
    }
}

/// Some adjacent PEs of a row with their routers. Lanes beyond the last column have no colors and no threads.
#[derive(Clone, Default)]
#[repr(align(64))]
pub struct Group {
    /// Wavelets in the queues of the router that may move.
    pub waiting: Counters,
    /// Wavelets that the PE may take, and room in the queues of the ramp to it.
    pub inbox: Counters,
    pub inbox_room: Counters,
    /// Room in the queues of the ramp to the router.
    pub ramp_room: Counters,
    /// The colors that go to each port, those that go to several, those that come from the PE, and all of a router.
    pub rows_to: [Lanes; RAMP + 1],
    pub several: Lanes,
    pub from_ramp: Lanes,
    pub present: Lanes,
    /// The bit of the color that comes first in the next turn, and the bit of the thread likewise.
    pub router_turn: Lanes,
    pub thread_turn: Lanes,
    /// A bit for each thread.
    pub threads: Lanes,
    /// Wavelets under way on the ramps to the router and to the PE, by the cycle in which they arrive.
    pub to_router: [Lanes; AHEAD as usize],
    pub to_pe: [Lanes; AHEAD as usize],
    pub first_pe: u32,
    pub first_slot: u32,
    pub slots: u32,
    /// A bit for each slot: some thread is not done; some thread has or had two kinds of steps; and some thread must or
    /// had to wait longer than a cycle between its steps.
    pub live: u32,
    pub flips: u32,
    pub paced: u32,
    /// Consecutive cycles up to now in which nothing happened and no wavelet waited at a router. After more than
    /// [`AHEAD`] of them none is under way on a ramp either, and nothing happens before one arrives from a neighbor.
    pub quiet: u32,
}

/// The next steps of one thread of each PE of a group.
///
/// A thread does `left` steps before its state is looked up. Each step changes the masks by the flips, because two
/// kinds of steps may alternate.
#[derive(Clone, Default)]
#[repr(align(64))]
pub struct Slot {
    /// The colors from which the next step takes and to which it sends. A thread that must wait for another one takes
    /// from [`NO_COLOR`] too, and one that has ended from all ([`DONE`]).
    pub takes: Lanes,
    pub sends: Lanes,
    pub flip_takes: Lanes,
    pub flip_sends: Lanes,
    pub left: Lanes,
    /// The first cycle in which the next step may be done, and the cycles from it to the one after; read only in slots
    /// that are [`Group::paced`].
    pub earliest: Lanes,
    pub pace: Lanes,
    pub flip_pace: Lanes,
}
