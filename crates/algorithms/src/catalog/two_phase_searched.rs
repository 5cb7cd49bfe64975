//! Two-phase reduce with the best group size 1 < S < P by Eq. 1. Source: "Near-Optimal Wafer-Scale Reduce", section
//! 5.4, which always takes S = sqrt(P), and Eq. 1.

use super::two_phase::grouped;
use crate::{
    AlgorithmError, Info, Params,
    line::{LineTree, Side, Sides},
};

pub struct TwoPhaseSearched;

pub const INFO: Info = Info {
    name: "two-phase-searched",
    summary: "two-phase with the group size that the model likes best",
    reference: "Near-Optimal Wafer-Scale Reduce, section 5.4 and Eq. 1",
    ..Info::ON_LINE
};

/// Returns the group size of least time by Eq. 1, the smallest if several are equal; 1 if P is at most 2.
pub fn best_group(pes: u32, wavelets: u64, depth_cycles: f64) -> u32 {
    let (p, b) = (f64::from(pes), wavelets as f64);
    let time = |s: u32| {
        let (size, groups) = (f64::from(s), f64::from(pes.div_ceil(s)));
        let contention = if s == pes - 1 { b } else { 2.0 * b };
        contention.max(b * (2.0 * p - groups - size) / (p - 1.0) + p - 1.0) + depth_cycles * (size + groups - 2.0)
    };
    (2..pes).min_by(|&a, &b| time(a).total_cmp(&time(b))).unwrap_or(1)
}

impl LineTree for TwoPhaseSearched {
    fn side(&self, pes: u32, wavelets: u64, depth_cycles: f64, _: &Params) -> Result<Side, AlgorithmError> {
        Ok(grouped(pes, best_group(pes, wavelets, depth_cycles)))
    }

    fn note(&self, sides: &Sides) -> Option<String> {
        let mut sizes: Vec<String> = [&sides.left, &sides.right].into_iter().filter_map(group).collect();
        sizes.dedup();
        (!sizes.is_empty()).then(|| format!("groups of {}", sizes.join(" and ")))
    }
}

/// Returns the size of a side's groups as text; `None` if the side has at most two PEs.
fn group(side: &Side) -> Option<String> {
    let pes = side.len();
    // The last group is full. It starts at the last PE whose parent is not the PE before. A line without such a PE
    // consists of the root and one group.
    let start = (1..pes).rev().find(|&i| side.parent(i) != i - 1).unwrap_or(1);
    (pes > 2).then(|| (pes - start).to_string())
}
