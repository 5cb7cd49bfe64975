//! The least time of Eq. 1 on a line without its contention. The fabric may be faster, because it overlaps work whose
//! times Eq. 1 adds.
//!
//! If the contention of a tree takes no longer, the tree attains this time and is optimal by Eq. 1. Some lines with the
//! root at an end have no such tree (7 wavelets on 4 PEs), an inner root receives the wavelets of both sides, and an
//! allreduce continues after its reduce. The improved form for star in "Near-Optimal Wafer-Scale Reduce", section 5.1,
//! is not Eq. 1 and may be lower.
//!
//! For B wavelets on P PEs, with the ramp latency T_R, T* >= min over D of B e(P, D) / (P-1) + P-1 + (2 T_R + 1) D. The
//! energy e(P, D), in hops of one wavelet, is the least of any tree of depth D whose messages go toward the root.
//!
//! As a function of P, e has the slope k for `binom(D+k-1, k)` PEs, so e is the sum of the P-1 smallest slopes. This is
//! the energy of Auto-Gen without its contention, because trees in pre-order attain it. If the root has PEs on both
//! sides, both sides have the depth D.

use unisono_base::Cycles;

use super::BoundCase;
use crate::{Bound, Standing};

/// Returns e(pes, depth), in hops, for a root at the end of the line; `None` if no tree has so small a depth.
pub fn tree_energy(pes: u32, depth: u32) -> Option<u64> {
    let (mut left, mut energy) = (u64::from(pes.saturating_sub(1)), 0u64);
    if left > 0 && depth == 0 {
        return None;
    }
    let (mut slope, mut count) = (0u64, 1u64);
    while left > 0 {
        slope += 1;
        // A count that exceeds any number of PEs is not computed exactly.
        if count < 1 << 40 {
            count = count * (u64::from(depth) + slope - 1) / slope;
        }
        let take = count.min(left);
        energy += take * slope;
        left -= take;
    }
    Some(energy)
}

pub const TIGHT_1D: Bound = Bound {
    name: "tight-1d",
    reference: "Near-Optimal Wafer-Scale Reduce, section 5.6, with the least energy of any tree in place of Lemma 5.5",
    assumes: "Eq. 1, not its improved form for star; messages go toward the root, each PE sends its whole \
              partial sum to one PE",
    standing: Standing::OfModel,
    model: Some("paper"),
    time: |problem| BoundCase::time(problem, cycles),
    ..Bound::OF_MACHINE
};

fn cycles(case: &BoundCase) -> Option<Cycles> {
    if !case.reduces() || !case.part.grid.is_line() {
        return None;
    }
    if case.is_local() {
        return Some(Cycles(0.0));
    }
    let (left, right) = case.sides();
    let far = left.max(right);
    let (b, links) = (case.wavelets as f64, f64::from(left + right));
    let mut best = f64::INFINITY;
    for depth in 1..=far {
        let rest = f64::from(far) + case.part.depth_cycles * f64::from(depth);
        // The energy is at least one hop per PE, so no greater depth gives a smaller time.
        if b + rest >= best {
            break;
        }
        let energy = tree_energy(left + 1, depth)? + tree_energy(right + 1, depth)?;
        best = best.min(b * energy as f64 / links + rest);
    }
    Some(Cycles(best))
}
