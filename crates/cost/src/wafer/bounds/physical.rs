//! The bound for any algorithm: B wavelets with the farthest PE's contribution travel to the root and enter its ramp
//! one per cycle; a ramp down, a ramp up and one operation cost 2 T_R + 1 cycles, with the ramp latency T_R.
//!
//! The improved form for star on P PEs in "Near-Optimal Wafer-Scale Reduce", section 5.1, B(P-1) + 2 T_R + 1, omits the
//! first hop: if B = 1 or P = 2, it is one cycle below this bound.
//!
//! With the root at the end of a line the bound is B + P + 2 T_R, the time of a message; with the root in the corner of
//! a grid of M x N PEs it is B + M+N-2 + 2 T_R + 1. In both, the last wavelet enters B - 1 cycles after the first, and
//! its operation takes one more.

use unisono_base::Cycles;

use super::BoundCase;
use crate::Bound;

pub const PHYSICAL_1D: Bound =
    Bound { name: "physical-1d", time: |problem| BoundCase::time(problem, |case| physical(case, true)), ..PHYSICAL };

pub const PHYSICAL_2D: Bound =
    Bound { name: "physical-2d", time: |problem| BoundCase::time(problem, |case| physical(case, false)), ..PHYSICAL };

const PHYSICAL: Bound = Bound {
    reference: "one wavelet a cycle at the root's ramp, one hop a cycle; Near-Optimal Wafer-Scale Reduce, section 2.2",
    assumes: "nothing beyond the machine: it holds for everything that runs; the paper's improved form for star leaves \
              out the first hop and may lie one cycle under it",
    ..Bound::OF_MACHINE
};

/// Returns the bound for lines, or for grids with several rows and columns.
fn physical(case: &BoundCase, of_lines: bool) -> Option<Cycles> {
    if !case.reduces() || case.part.grid.is_line() != of_lines {
        return None;
    }
    if case.is_local() {
        return Some(Cycles(0.0));
    }
    let far = f64::from(case.part.grid.eccentricity(case.root));
    Some(Cycles(case.wavelets as f64 + far + case.part.depth_cycles))
}
