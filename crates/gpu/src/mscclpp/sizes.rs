//! The sizes of a chunk at which a plan is checked.
//!
//! Without groups of thread blocks and pipelines, all slices grow with the chunk, so one size represents all.
//!
//! With groups, a share begins at `i * (n / s) + min(i, n % s)` of `n` grains for the `i`-th of `s` thread blocks,
//! which is at most `s / 4` grains after `i * n / s`. Two such offsets at different fractions of a chunk differ by at
//! least `n / L` grains, if the sizes of all groups divide `L`. From `n = L * s / 2` on, their order is fixed; the
//! difference of two offsets at the same fraction depends only on `n % L`. So the sizes up to one `L` further represent
//! all.
//!
//! With pipelines, the number of iterations and the last iteration depend on the ratio of the chunk to the unit. Ratios
//! on both sides of small multiples and fractions of each unit are tried; this is not a proof for all sizes.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{
    layout::{Scale, group_size, unit_bytes},
    plan::Plan,
};

/// The maximum number of sizes that are tried for groups of thread blocks. With pipelines, half as many are tried, in
/// addition to the sizes at which pipelines begin an iteration.
const MOST: u32 = 160;
/// The number of grains of a unit, so that chunks of halves and quarters of a unit can be tried.
const UNIT: u32 = 4;
/// The maximum number of iterations of a pipeline, if units differ.
const TURNS: u64 = 256;
/// The maximum number of grains of a chunk, if units differ.
const GRAINS: u64 = 1 << 16;

/// The sizes for which the result of a check holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sizes {
    /// All sizes at which the runtime can address the buffers, which then have at most 4 GiB.
    All,
    /// Only the sizes that were tried.
    Tried,
    /// The requested size.
    One,
}

/// Returns the sizes to try besides the default of [`Layout::new`](super::layout::Layout::new), and the sizes that they
/// represent.
pub fn others(plan: &Plan) -> (Vec<Scale>, Sizes) {
    let (scales, sizes) = to_try(plan);
    // With `reuse_resources`, larger messages use the runtime's fixed scratch memory cyclically.
    (scales, if plan.reuse_resources { Sizes::Tried } else { sizes })
}

fn to_try(plan: &Plan) -> (Vec<Scale>, Sizes) {
    let group = group_size(plan);
    let units = plan.ops().filter_map(|op| op.iter_context).map(|i| i.unit_size).max();
    if units.is_none() {
        if group == 1 {
            return (Vec::new(), Sizes::All);
        }
        let widest = plan.ops().filter_map(|op| op.tbg_info).map(|g| g.tbg_size).max().unwrap_or(1);
        let most = u64::from(group) * (u64::from(widest).div_ceil(2) + 1);
        let sizes = if most <= u64::from(MOST) { Sizes::All } else { Sizes::Tried };
        let upto = u32::try_from(most.min(MOST.into())).unwrap_or(MOST);
        return ((1..=upto).map(|grains| Scale { grains, unit: 1 }).collect(), sizes);
    }
    let by_ratio = (1..=(2 * UNIT + 1).max(2 * group + 1).min(MOST / 2)).map(|grains| Scale { grains, unit: UNIT });
    let mut scales: Vec<Scale> = by_ratio.chain(turns(plan).map(|grains| Scale { grains, unit: 1 })).collect();
    scales.sort_unstable();
    scales.dedup();
    (scales, Sizes::Tried)
}

/// Returns numbers of grains of a chunk: 1 to 3, and the numbers around one and two iterations of each pipeline, up to
/// a limit of iterations. The smallest unit, which divides all other units, has one grain.
fn turns(plan: &Plan) -> impl Iterator<Item = u32> {
    let all: BTreeSet<(u64, u64)> = plan
        .ops()
        .filter_map(|op| op.iter_context)
        .filter(|i| i.num_chunks > 0 && i.unit_size > 0)
        .map(|i| (i.unit_size / unit_bytes(plan), i.num_chunks.into()))
        .collect();
    // The number of iterations is limited, because pipelines are unrolled.
    let shortest = all.iter().map(|&(unit, chunks)| unit / chunks).min().unwrap_or(1).max(1);
    let most = (shortest * TURNS).min(GRAINS);
    let edges = all.into_iter().flat_map(|(unit, chunks)| [unit / chunks, 2 * unit / chunks]);
    let sizes: BTreeSet<u64> =
        edges.flat_map(|edge| [edge.saturating_sub(1), edge, edge + 1]).chain([1, 2, 3]).collect();
    sizes.into_iter().filter(move |&n| n > 0 && n <= most).filter_map(|n| u32::try_from(n).ok())
}
