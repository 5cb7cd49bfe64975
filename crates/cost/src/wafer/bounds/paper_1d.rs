//! Lemma 5.5 of "Near-Optimal Wafer-Scale Reduce", a bound on a line: T* >= min over D of B E*(P, D) / (P-1) + P-1 + (2
//! T_R + 1) D with `E*(P, D) >= min over 0 < i < P of E*(i, D) + E*(P-i, D-1) + min(i, P-i+1)`, for B wavelets and the
//! ramp latency T_R. E*(P, D) is the least energy, in hops of one wavelet, of a tree of depth D over P PEs.
//!
//! E*(1, D) = 0, and E*(P >= 2, 0) is infinite (section 5.6).

use unisono_base::{Cycles, narrow};

use super::BoundCase;
use crate::{Bound, Standing};

/// The most PEs of a line for which the bound is computed: the table of E* takes O(P^2) operations per depth.
const MOST_PES: u32 = 1024;

/// E*(p, d), in hops, for all p up to a number of PEs and all depths d, one row for each depth.
pub struct PaperTable {
    pes: usize,
    energy: Vec<u32>,
}

const INFINITE: u32 = u32::MAX / 4;

impl PaperTable {
    pub fn new(pes: u32) -> Self {
        let depth = pes.saturating_sub(1).max(1);
        Self::to_depth(pes, depth)
    }

    fn to_depth(pes: u32, depth: u32) -> Self {
        let n = pes as usize + 1;
        let mut energy = vec![INFINITE; n * (depth as usize + 1)];
        energy[1] = 0;
        // The minimum over i adds the hops of a last part of i of p PEs: min(i, p - i + 1).
        for d in 1..=depth as usize {
            let (above, row) = energy.split_at_mut(d * n);
            let above = &above[(d - 1) * n..];
            row[1] = 0;
            for p in 2..n {
                let mut least = INFINITE;
                for i in 1..p {
                    least = least.min(row[i] + above[p - i] + narrow::<u32>(i.min(p - i + 1)));
                }
                row[p] = least;
            }
        }
        Self { pes: n, energy }
    }

    /// Returns the cycles of the bound for vectors of `wavelets` wavelets on a line of `pes` PEs with the root at its
    /// end.
    pub fn cycles(&self, pes: u32, wavelets: u64, depth_cycles: f64) -> f64 {
        if pes <= 1 || wavelets == 0 {
            return 0.0;
        }
        let (b, links) = (wavelets as f64, f64::from(pes - 1));
        let at = |d: u32| self.energy[d as usize * self.pes + pes as usize];
        let time = |d: u32| b * f64::from(at(d)) / links + links + depth_cycles * f64::from(d);
        (1..pes).filter(|&d| at(d) < INFINITE).map(time).fold(f64::INFINITY, f64::min)
    }
}

pub const PAPER_1D: Bound = Bound {
    name: "paper-1d",
    reference: "Near-Optimal Wafer-Scale Reduce, section 5.6, Lemma 5.5",
    assumes: "Eq. 1; messages go toward a root at the end of the line; up to 1024 PEs, as it is computed in O(P^3)",
    standing: Standing::OfModel,
    time: |problem| BoundCase::time(problem, cycles),
    ..Bound::OF_MACHINE
};

fn cycles(case: &BoundCase) -> Option<Cycles> {
    let (left, right) = case.sides();
    let pes = left + right + 1;
    if !case.reduces() || !case.part.grid.is_line() || left.min(right) > 0 || pes > MOST_PES {
        return None;
    }
    Some(Cycles(PaperTable::new(pes).cycles(pes, case.wavelets, case.part.depth_cycles)))
}
