//! The time of `two-way` on a line of n PEs with blocks of b wavelets. On a grid the phases of rows and columns add up,
//! because every PE ends the first phase before the second.
//!
//! A hop with an operation takes h = 2 T_R + 2 cycles, with the ramp latency T_R. A PE runs two lanes, for upward and
//! downward blocks, on one datapath. A queue holds q wavelets.
//!
//! **Allgather.** The time is the larger of the way and of the work plus the waits:
//!
//! * *Way*: the block of the first PE makes n-1 hops, after the block that each lane sends first: h (n-1) + 2b.
//! * *Work*: a PE in the middle handles n+1 blocks (its own up and down, and n-1 that arrive), half of them in each
//!   lane. Both lanes end together, and the last block then moves to the end of the line: (n+1) b + h floor((n-1)/2).
//! * *Wait*: a PE sends its own block into the queues up to the next PE: q at its own router, q at the next router, q +
//!   T_R at the ramp there, and one wavelet in the operation, r = 3q + T_R + 1 in all. The rest waits until the next PE
//!   has sent its own block, which waits likewise. So queues fill from both ends to the middle, and each PE on the path
//!   adds a wait of max(0, b - r). The last PE copies its own block before it receives, which adds one wait:
//!   floor((n-2)/2) waits in all, or floor((n-3)/2) if the blocks are already in place, as in the columns of a grid.
//! * *Two PEs with blocks in place* only exchange them: each PE sends one and stores one, without a copy or a relay,
//!   which takes the larger of 2b and of the way h + b. That is exact.
//!
//! **Reduce-scatter of short blocks** is an allgather reversed in time, with the same way and work. A PE adds its own
//! block from above after the sum from below; this wait counts as h/2, the mean of 0 and a hop. Sums wait when they
//! arrive and when they leave, except at one end: 2 floor(n/2) - 1 waits, as in simulations.
//!
//! **Reduce-scatter of long blocks.** The upward sum for PE i ends after h i + (n-i) b, because n-i blocks pass in
//! sequence. Downward, PE i+1 adds its own block first and then sends the sum for PE i, so PE i begins b + h after PE
//! i+1. From PE n-2, which begins at h (n-2) + 2b, that makes h (n-2) + 2b + (n-2)(b + h) at PE 0, and b more to its
//! end: (n+1) b + 2h (n-2), and no less than the way h (n-1) + b.
//!
//! The order with the shorter time is chosen. Simulated for n = 2..64 and b = 1..256, and on grids of 4 x 6, 5 x 7 and
//! 16 x 16, allgathers are within 2 cycles or 2.5 % (b = 16 and 17: their blocks just fill the queues), reduce-scatters
//! of long blocks within 6 cycles, and of short blocks within 9 cycles or 8 %, except b = 3 and odd n with b = 2 to 4:
//! there the lanes meet at the same PE in the same cycle, and the simulated time is up to 20 % longer.
//!
//! **Alltoall.** PE i sends n-1-i of its own blocks upward and relays as many from each PE below it; with both
//! directions and its copy of its own block it does W_i = 2 i (n-1-i) + 2 (n-1) + 1 operations on blocks. If blocks fit
//! into queues, that takes W b + h floor((n-1)/2) with the largest W. Otherwise PE i sends its own block only while PE
//! i+1 receives, and PE i+1 first sends its own. So the PEs of a lane send in sequence, from the far end, and PEs in
//! the middle wait for D more blocks. With m = floor(n/2), simulated times of long blocks grow by W + D blocks:
//!
//! * *On an even line* the lanes mirror each other, and both progress alike: D = (m-1)(m-2), to a tenth of a block
//!   for n = 2..40.
//! * *On an odd line* both lanes meet in the middle PE, and the turns there decide which one waits: D is about
//!   (m-1)(m-2/3).
//! * *On a grid* one lane gets ahead: in a row of pieces the lanes of a PE change operations in different cycles, and a
//!   column begins with the turns that the row left. The other lane then waits longer: 3/2 of D, exact for n = 2..23
//!   and odd n up to 33.
//!
//! Of each block that waits, the first w wavelets are sent before, into the queues on its way: D (b - w) in all. A
//! longer line has less room for a block; w = 8 r / (n+7) fits simulations with T_R = 1, 2 and 7, and on lines w is at
//! least q + 1. Short blocks wait too if the line is long, for half of D: no less than D/2 (b - 3.2 r / n). On 2 and 4
//! PEs, where D is 0, the last block waits for min(b, h/m).
//!
//! Compared with simulations (T_R = 2) of at least 16 wavelets in all: on grids of 2 x 2 to 16 x 16, 2 x 64 and 64 x 2
//! with blocks of 1 to 16 wavelets, 128 of 135 times are within 3 %, and all within 4.5 %; on even lines of 2 to 64 PEs
//! with b = 1 to 256, 156 of 160 within 3 %, all within 4.5 %; on odd lines 153 of 175 within 3 %, the others up to 9 %
//! too short. Times of fewer wavelets are up to 4 cycles too short.
//!
//! Limits: q is the queue depth of the preset machines, because a case does not have that of its machine.

use unisono_base::Wavelets;
use unisono_collective::Kind;
use unisono_lower::{Estimate, Phase, Sharper, Terms};

use crate::Case;

/// q, the wavelets that a router queues for each color and input: `queue_depth` of the presets.
const QUEUE: f64 = 4.0;

const WHY: &str =
    "the way of the last block, the work in the middle of the line, and its wait for the blocks before it";

/// A line of PEs with blocks of equal size.
#[derive(Clone, Copy)]
struct Line {
    pes: u32,
    /// The number of wavelets of a block.
    block: f64,
    /// 2 T_R + 1.
    depth_cycles: f64,
}

impl Line {
    fn hop(&self) -> f64 {
        self.depth_cycles + 1.0
    }

    /// Returns r, the number of wavelets between the operations of two neighbors.
    fn room(&self) -> f64 {
        3.0 * QUEUE + (self.depth_cycles - 1.0) / 2.0 + 1.0
    }

    /// Returns the time in cycles: the larger of *way* and *work*, plus `waits` waits for full queues, plus `more`
    /// cycles.
    fn filled(&self, waits: u32, more: f64) -> f64 {
        let (n, b, h) = (f64::from(self.pes), self.block, self.hop());
        let wait = f64::from(waits) * (b - self.room()).max(0.0);
        let work = (n + 1.0) * b + h * f64::from((self.pes - 1) / 2) + wait + more;
        work.max(h * (n - 1.0) + 2.0 * b)
    }

    fn gathered(&self, is_placed: bool) -> f64 {
        if is_placed && self.pes == 2 {
            return (2.0 * self.block).max(self.hop() + self.block);
        }
        self.filled(self.pes.saturating_sub(2 + u32::from(is_placed)) / 2, 0.0)
    }

    fn scattered_short(&self) -> f64 {
        self.filled((2 * (self.pes / 2)).saturating_sub(1), self.hop() / 2.0)
    }

    fn scattered_long(&self) -> f64 {
        let (n, b, h) = (f64::from(self.pes), self.block, self.hop());
        ((n + 1.0) * b + 2.0 * h * (n - 2.0)).max(h * (n - 1.0) + b)
    }

    /// Returns the block operations of the busiest PE in an alltoall.
    fn exchanged(&self) -> f64 {
        let n = f64::from(self.pes);
        let middle = f64::from((self.pes - 1) / 2);
        2.0 * middle * (n - 1.0 - middle) + 2.0 * (n - 1.0) + 1.0
    }

    /// Returns the cycles of an alltoall, on a line of a grid if `is_in_grid`.
    fn exchange(&self, is_in_grid: bool) -> f64 {
        let (n, b, h, room) = (f64::from(self.pes), self.block, self.hop(), self.room());
        let half = f64::from(self.pes / 2);
        let unequal = if is_in_grid { 1.5 } else { 1.0 };
        let waiting = unequal * (half - 1.0) * (half - if self.pes.is_multiple_of(2) { 2.0 } else { 2.0 / 3.0 });
        let begun = (8.0 * room / (n + 7.0)).max(if is_in_grid { 0.0 } else { QUEUE + 1.0 });
        let last = if [2, 4].contains(&self.pes) { b.min(h / half) } else { 0.0 };
        let more = waiting * (b - begun).max((b - 3.2 * room / n) / 2.0).max(0.0) + last;
        let work = self.exchanged() * b + h * f64::from((self.pes - 1) / 2) + more;
        work.max(h * (n - 1.0) + 2.0 * b)
    }

    fn exchange_terms(&self) -> Terms {
        let (n, b) = (f64::from(self.pes), self.block);
        let middle = f64::from((self.pes - 1) / 2);
        Terms {
            energy: n * (n * n - 1.0) / 3.0 * b,
            distance: n - 1.0,
            depth: n - 1.0,
            contention: (middle * (n - middle) + (n - 1.0 - middle) * (middle + 1.0)) * b,
            links: 2.0 * (n - 1.0),
            max_link_load: (n * n / 4.0).floor() * b,
            datapath: self.exchanged() * b,
        }
    }

    fn terms(&self, is_long: bool) -> Terms {
        let (n, b) = (f64::from(self.pes), self.block);
        // PEs between the ends handle each block once, and their own block twice.
        let most = if self.pes > 2 { n + 1.0 } else { 1.0 };
        let way = if is_long { (n - 1.0).max(2.0 * (n - 2.0)) } else { n - 1.0 };
        Terms {
            energy: n * (n - 1.0) * b,
            distance: way,
            depth: way,
            contention: most * b,
            links: 2.0 * (n - 1.0),
            max_link_load: (n - 1.0) * b,
            datapath: (n + 1.0) * b,
        }
    }
}

/// Returns true if the downward sums of a reduce-scatter start with the nearest PE.
pub fn is_long(case: &Case, pes: u32, elements: u32) -> bool {
    let line = line(case, pes, elements);
    line.scattered_long() < line.scattered_short()
}

fn line(case: &Case, pes: u32, elements: u32) -> Line {
    let block = Wavelets::of(u64::from(elements), case.collective.element_bytes()).0;
    Line { pes, block: block as f64, depth_cycles: case.depth_cycles() }
}

/// Returns the phases with their times; `None` for collectives that `two-way` does not support, and if the elements of
/// a line exceed 32 bits.
pub fn estimate(case: &Case) -> Option<Estimate> {
    let (kind, grid, len) = (case.collective.kind, case.grid(), case.collective.elements);
    let rows = (grid.cols, len, "row", false);
    // In an allgather, columns run after rows. Their blocks are the blocks of a whole row, and are already in the
    // output.
    let columns = (grid.rows, grid.cols.checked_mul(len)?, "column", grid.cols > 1);
    let order = match kind {
        Kind::Allgather => [rows, columns],
        Kind::ReduceScatter => [columns, rows],
        Kind::Alltoall => [(grid.cols, grid.rows.checked_mul(len)?, "row", false), columns],
        _ => return None,
    };
    let mut phases = Vec::new();
    for (pes, elements, name, is_placed) in order {
        if pes < 2 || elements == 0 {
            continue;
        }
        let line = line(case, pes, elements);
        let is_long = kind == Kind::ReduceScatter && is_long(case, pes, elements);
        let mut terms = if kind == Kind::Alltoall { line.exchange_terms() } else { line.terms(is_long) };
        if kind == Kind::Allgather && pes == 2 && is_placed {
            terms.datapath = 2.0 * line.block;
        }
        let cycles = match (kind, is_long) {
            (Kind::Allgather, _) => line.gathered(is_placed),
            (Kind::Alltoall, _) => line.exchange(!grid.is_line()),
            (_, false) => line.scattered_short(),
            (_, true) => line.scattered_long(),
        };
        let sharper = Some(Sharper { cycles_beside_depth: cycles - line.depth_cycles * terms.depth, why: WHY });
        phases.push(Phase { sharper, ..Phase::new(&format!("{name}-{kind}"), terms) });
    }
    Some(Estimate { phases })
}
