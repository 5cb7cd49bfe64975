//! Two-phase reduce: a chain in each group of S consecutive PEs, then a chain over the groups' first PEs. Groups are
//! counted from the far end, so a shorter group contains the root.
//!
//! For B wavelets on P PEs, with G = ceil(P/S) > 1, the terms of Eq. 1 are the energy E = B(2P - G - S), the distance
//! L = P-1, the depth D = S + G - 2 and the contention C = 2B (B if S = 1, G = 1 or S = P-1).
//! Source: "Near-Optimal Wafer-Scale Reduce", section 5.4.

use unisono_collective::Kind;

use crate::{
    AlgorithmError, Formula, Info, Param, Params,
    line::{LineTree, Side, Sides},
};

pub struct TwoPhase;

pub const INFO: Info = Info {
    name: "two-phase",
    summary: "chains in groups, then a chain over the groups' first PEs; good for all middle lengths",
    reference: "Near-Optimal Wafer-Scale Reduce, section 5.4",
    params: &[Param { name: "group", values: "PEs in a group, 1 to P (default: floor(sqrt(P)))" }],
    formulas: &[Formula::new(
        "paper",
        &[Kind::Reduce],
        "max(2 B, 2 B (P - sqrt(P))/(P-1) + P-1) + (2 T_R + 1) (2 sqrt(P) - 2)",
    )
    .when("P is a square above 1, in groups of sqrt(P)")],
    ..Info::ON_LINE
};

/// Returns the tree on `pes` PEs with groups of `group` PEs; the group of the root may be shorter.
pub fn grouped(pes: u32, group: u32) -> Side {
    let short = pes - (pes - 1) / group * group;
    let parent = |i: u32| match i {
        0 => 0,
        // The first PE of a group sends to the first PE of the group before it, or to the root.
        i if i >= short && (i - short).is_multiple_of(group) => {
            if i == short {
                0
            } else {
                i - group
            }
        }
        i => i - 1,
    };
    Side::new((0..pes).map(parent).collect())
}

impl LineTree for TwoPhase {
    fn side(&self, pes: u32, wavelets: u64, depth_cycles: f64, params: &Params) -> Result<Side, AlgorithmError> {
        Ok(self.sides(0, pes - 1, wavelets, depth_cycles, params)?.right)
    }

    /// Returns the sides with groups of the parameter `group`, at most the whole line; a side with fewer PEs is one
    /// group. By default each side has groups of the square root of its PEs.
    fn sides(&self, left: u32, right: u32, _: u64, _: f64, params: &Params) -> Result<Sides, AlgorithmError> {
        let group = params.number("two-phase", "group", 1..=left + right + 1)?;
        let side = |pes: u32| grouped(pes, group.map_or(pes.isqrt(), |g| g.min(pes)));
        Ok(Sides { left: side(left + 1), right: side(right + 1) })
    }
}
