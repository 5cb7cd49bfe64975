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
use crate::{Bound, CostProblem, Time};

/// The bound for lines, or for grids with several rows and columns.
pub struct Physical {
    name: &'static str,
    of_lines: bool,
}

pub const PHYSICAL_1D: Physical = Physical { name: "physical-1d", of_lines: true };
pub const PHYSICAL_2D: Physical = Physical { name: "physical-2d", of_lines: false };

impl Bound for Physical {
    fn name(&self) -> &'static str {
        self.name
    }

    fn reference(&self) -> &'static str {
        "one wavelet a cycle at the root's ramp, one hop a cycle; Near-Optimal Wafer-Scale Reduce, section 2.2"
    }

    fn assumes(&self) -> &'static str {
        "nothing beyond the machine: it holds for everything that runs; the paper's improved form for star leaves out \
         the first hop and may lie one cycle under it"
    }

    fn time(&self, problem: &CostProblem) -> Option<Time> {
        let applies = |case: &BoundCase| case.reduces() && case.part.grid.is_line() == self.of_lines;
        BoundCase::time(problem, |case| applies(case).then(|| physical(case)))
    }
}

fn physical(case: &BoundCase) -> Cycles {
    if case.is_local() {
        return Cycles(0.0);
    }
    Cycles(case.wavelets as f64 + f64::from(case.part.grid.eccentricity(case.root)) + case.part.depth_cycles)
}
