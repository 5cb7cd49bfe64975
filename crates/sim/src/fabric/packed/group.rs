//! The state of a group of PEs with their routers, one lane for each PE.

use super::super::tables::RAMP;

/// The number of PEs in a group. The PEs are adjacent in a row.
pub const LANES: usize = 16;

/// One word for each PE of a group. In most words, each bit stands for a color.
pub type Lanes = [u32; LANES];

/// Words of zeros.
pub const NO_BITS: Lanes = [0; LANES];

/// Greatest number of cycles that a wavelet spends on a ramp.
pub const AHEAD: u32 = 8;

/// Bit of a color that no router has.
pub const NO_COLOR: u32 = 1 << 31;

/// Value of [`Slot::takes`] for a thread that has ended.
pub const DONE: u32 = u32::MAX;

/// A cycle that never comes.
pub const NEVER: u32 = i32::MAX as u32;

/// Counters from 0 to 15 for all colors of all PEs of a group, as bit slices: bit `n` of slice `k` is bit `k` of
/// counter `n`.
pub type Counters = [Lanes; 4];

/// Highest count of a counter.
pub const MOST: u32 = 15;

/// Adds 1 to the counters of a lane whose bits are set in `which`. None of these counters may be at its highest count.
#[inline(always)]
pub fn add(counters: &mut Counters, lane: usize, which: u32) {
    let mut carry = which;
    for slice in counters {
        let old = slice[lane];
        slice[lane] = old ^ carry;
        carry &= old;
    }
}

/// Subtracts 1 from the counters of a lane whose bits are set in `which`. None of these counters may be 0.
#[inline(always)]
pub fn sub(counters: &mut Counters, lane: usize, which: u32) {
    let mut borrow = which;
    for slice in counters {
        let old = slice[lane];
        slice[lane] = old ^ borrow;
        borrow &= !old;
    }
}

/// Returns the bits of a lane's counters that are not 0.
#[inline(always)]
pub fn nonzero(counters: &Counters, lane: usize) -> u32 {
    counters[0][lane] | counters[1][lane] | counters[2][lane] | counters[3][lane]
}

/// Returns the bits of a lane's counters that equal `count`, a value of [`count_slices`].
#[inline(always)]
pub fn equal(counters: &Counters, lane: usize, count: [u32; 4]) -> u32 {
    let differ = |k: usize| counters[k][lane] ^ count[k];
    !(differ(0) | differ(1) | differ(2) | differ(3))
}

/// Returns a count for [`equal`]: each bit of the count as a word of zeros or a word of ones.
pub fn count_slices(count: u32) -> [u32; 4] {
    std::array::from_fn(|k| if count >> k & 1 == 1 { u32::MAX } else { 0 })
}

/// Sets a counter that is 0 to `count`.
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
    /// Number of wavelets of each color in the router's queues that may move.
    pub waiting: Counters,
    /// Number of wavelets that the PE may take; `inbox_room` is the room in the queues of the ramp to the PE.
    pub inbox: Counters,
    pub inbox_room: Counters,
    /// Room in the queues of the ramp from the PE to the router.
    pub ramp_room: Counters,
    /// The colors that go to each port. `several` has the colors that go to several ports, `from_ramp` the colors that
    /// come from the PE, and `present` all colors of a router.
    pub rows_to: [Lanes; RAMP + 1],
    pub several: Lanes,
    pub from_ramp: Lanes,
    pub present: Lanes,
    /// The bit of the color that is tried first in the next cycle. `thread_turn` is the bit of the thread that is tried
    /// first.
    pub router_turn: Lanes,
    pub thread_turn: Lanes,
    /// One bit for each thread of the PE.
    pub threads: Lanes,
    /// Wavelets on the ramps to the router and to the PE, by the cycle in which they arrive.
    pub to_router: [Lanes; AHEAD as usize],
    pub to_pe: [Lanes; AHEAD as usize],
    pub first_pe: u32,
    pub first_slot: u32,
    pub slots: u32,
    /// One bit for each slot. `live`: some thread is not done. `flips`: some thread has or had two kinds of steps.
    /// `paced`: some thread must wait, or had to wait, longer than one cycle between its steps.
    pub live: u32,
    pub flips: u32,
    pub paced: u32,
    /// The number of consecutive cycles up to the present in which nothing happened and no wavelet waited at a router.
    /// If this exceeds [`AHEAD`], no wavelet is on a ramp either, and nothing happens until a wavelet arrives from a
    /// neighbor.
    pub quiet: u32,
}

/// The next steps of one thread of each PE of a group.
///
/// A thread does `left` more steps before its state is looked up. Each step changes the masks by the flips, because two
/// kinds of steps may alternate.
#[derive(Clone, Default)]
#[repr(align(64))]
pub struct Slot {
    /// The colors that the next step takes; `sends` has the colors that it sends. A thread that must wait for another
    /// thread also takes [`NO_COLOR`]. A thread that has ended takes all colors ([`DONE`]).
    pub takes: Lanes,
    pub sends: Lanes,
    pub flip_takes: Lanes,
    pub flip_sends: Lanes,
    pub left: Lanes,
    /// The first cycle in which the next step may be done; `pace` is the number of cycles from this step to the next
    /// one. Both are read only in slots that are [`Group::paced`].
    pub earliest: Lanes,
    pub pace: Lanes,
    pub flip_pace: Lanes,
}
