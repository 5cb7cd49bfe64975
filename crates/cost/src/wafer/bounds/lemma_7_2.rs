//! Lemma 7.2 of "Near-Optimal Wafer-Scale Reduce", a bound on a grid, as printed and corrected.
//!
//! For B wavelets on P = M x N PEs, with the ramp latency T_R, the printed bound is T* >= max(B, B/8 + M+N-1) + 2 T_R +
//! 1, from 8P links. A grid has 4MN - 2M - 2N directed links, the farthest PE is M+N-2 hops away, and all PEs but the
//! root send, so the energy (the hops of all wavelets together) is (P-1)B.

use unisono_base::Cycles;

use super::BoundCase;
use crate::{Bound, CostProblem, Standing, Time};

pub struct Printed;
pub struct Corrected;

fn applies(case: &BoundCase) -> bool {
    case.reduces() && !case.part.grid.is_line() && case.wavelets > 0
}

impl Bound for Printed {
    fn name(&self) -> &'static str {
        "lemma-7.2-printed"
    }

    fn reference(&self) -> &'static str {
        "Near-Optimal Wafer-Scale Reduce, Lemma 7.2 as printed"
    }

    fn assumes(&self) -> &'static str {
        "Eq. 1; root in the corner; its distance of M+N-1 is one more than a grid has"
    }

    fn standing(&self) -> Standing {
        Standing::OfModel
    }

    fn time(&self, problem: &CostProblem) -> Option<Time> {
        BoundCase::time(problem, Self::cycles)
    }
}

impl Printed {
    fn cycles(case: &BoundCase) -> Option<Cycles> {
        let b = case.wavelets as f64;
        let far = f64::from(case.part.grid.rows + case.part.grid.cols - 1);
        (applies(case) && case.root == 0).then(|| Cycles(b.max(b / 8.0 + far) + case.part.depth_cycles))
    }
}

impl Bound for Corrected {
    fn name(&self) -> &'static str {
        "lemma-7.2-corrected"
    }

    fn reference(&self) -> &'static str {
        "Near-Optimal Wafer-Scale Reduce, Lemma 7.2 with the links, distance and energy of a grid"
    }

    fn assumes(&self) -> &'static str {
        "Eq. 1"
    }

    fn standing(&self) -> Standing {
        Standing::OfModel
    }

    fn time(&self, problem: &CostProblem) -> Option<Time> {
        BoundCase::time(problem, Self::cycles)
    }
}

impl Corrected {
    fn cycles(case: &BoundCase) -> Option<Cycles> {
        let (b, pes) = (case.wavelets as f64, case.part.grid.count() as f64);
        let (m, n) = (f64::from(case.part.grid.rows), f64::from(case.part.grid.cols));
        let links = 4.0 * m * n - 2.0 * m - 2.0 * n;
        let far = f64::from(case.part.grid.eccentricity(case.root));
        applies(case).then(|| Cycles(b.max(b * (pes - 1.0) / links + far) + case.part.depth_cycles))
    }
}
