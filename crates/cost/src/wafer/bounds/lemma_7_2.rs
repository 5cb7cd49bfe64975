//! Lemma 7.2 of "Near-Optimal Wafer-Scale Reduce", a bound on a grid, as printed and corrected.
//!
//! For B wavelets on P = M x N PEs, with the ramp latency T_R, the printed bound is T* >= max(B, B/8 + M+N-1) + 2 T_R +
//! 1, from 8P links. A grid has 4MN - 2M - 2N directed links, the farthest PE is M+N-2 hops away, and all PEs but the
//! root send, so the energy (the hops of all wavelets together) is (P-1)B.

use unisono_base::Cycles;

use super::BoundCase;
use crate::{Bound, Standing};

fn applies(case: &BoundCase) -> bool {
    case.reduces() && !case.part.grid.is_line() && case.wavelets > 0
}

pub const LEMMA_7_2_PRINTED: Bound = Bound {
    name: "lemma-7.2-printed",
    reference: "Near-Optimal Wafer-Scale Reduce, Lemma 7.2 as printed",
    assumes: "Eq. 1; root in the corner; its distance of M+N-1 is one more than a grid has",
    standing: Standing::OfModel,
    time: |problem| BoundCase::time(problem, printed),
    ..Bound::OF_MACHINE
};

fn printed(case: &BoundCase) -> Option<Cycles> {
    let b = case.wavelets as f64;
    let far = f64::from(case.part.grid.rows + case.part.grid.cols - 1);
    (applies(case) && case.root == 0).then(|| Cycles(b.max(b / 8.0 + far) + case.part.depth_cycles))
}

pub const LEMMA_7_2_CORRECTED: Bound = Bound {
    name: "lemma-7.2-corrected",
    reference: "Near-Optimal Wafer-Scale Reduce, Lemma 7.2 with the links, distance and energy of a grid",
    assumes: "Eq. 1",
    standing: Standing::OfModel,
    time: |problem| BoundCase::time(problem, corrected),
    ..Bound::OF_MACHINE
};

fn corrected(case: &BoundCase) -> Option<Cycles> {
    let (b, pes) = (case.wavelets as f64, case.part.grid.count() as f64);
    let (m, n) = (f64::from(case.part.grid.rows), f64::from(case.part.grid.cols));
    let links = 4.0 * m * n - 2.0 * m - 2.0 * n;
    let far = f64::from(case.part.grid.eccentricity(case.root));
    applies(case).then(|| Cycles(b.max(b * (pes - 1.0) / links + far) + case.part.depth_cycles))
}
