//! Collectives of blocks of B wavelets on P = M x N PEs: the wavelets that enter or leave each ramp, and those that
//! cross the middle of the grid. T_R is the ramp latency.
//!
//! * In an allgather or alltoall each PE receives P-1 blocks, and in an alltoall or reduce-scatter it sends as many:
//!   (P-1) B wavelets, or fewer if blocks with odd numbers of 16-bit elements share wavelets. One wavelet per cycle
//!   passes a ramp: (P-1) B + 1 + 2 T_R + 1 cycles with a path of one hop.
//! * The blocks of an alltoall from one half of the columns to the other cross as many links as there are rows: M
//!   floor(N/2) ceil(N/2) B cycles, and the same for rows.
//! * The last PE of a scan needs the vector of the first PE, of B wavelets: B + M+N-2 + 2 T_R + 1 cycles.

use unisono_base::Cycles;
use unisono_collective::Kind;

use super::BoundCase;
use crate::Bound;

pub const BLOCKS: Bound = Bound {
    name: "blocks",
    reference: "one wavelet a cycle at each ramp and each link, one hop a cycle; Near-Optimal Wafer-Scale \
                Reduce, section 2.2",
    assumes: "elements not compressed: a wavelet carries 32 bits of them, or of their sums over several PEs",
    time: |problem| BoundCase::time(problem, cycles),
    ..Bound::OF_MACHINE
};

fn cycles(case: &BoundCase) -> Option<Cycles> {
    let grid = case.part.grid;
    let [rows, cols] = [grid.rows, grid.cols].map(u64::from);
    let across = |links: u64, n: u64| case.wavelets_of(links * (n / 2) * n.div_ceil(2));
    let ramp = case.wavelets_of(rows * cols - 1) + 1.0;
    let cycles = match case.kind {
        Kind::Allgather | Kind::ReduceScatter => ramp,
        Kind::Alltoall => ramp.max(across(rows, cols) + 1.0).max(across(cols, rows) + 1.0),
        Kind::Scan => case.wavelets as f64 + f64::from(grid.rows + grid.cols - 2),
        _ => return None,
    };
    Some(Cycles(if case.is_local() { 0.0 } else { cycles + case.part.depth_cycles }))
}
