//! The bounds [`CUT`] and [`PARTITION`] for several groups that run a collective concurrently, and for messages between
//! pairs.
//!
//! The bound of one group alone is weak if all groups need the same links. For example, each of eight groups with a GPU
//! in every box could use all eight interfaces of a box, but not all groups at once. The bytes that all groups together
//! must move across the border of a part take at least these bytes divided by the rate of the links at the border.
//! Parts are boxes, or single ranks ([`unisono_synthesis::partition`]).

use rustc_hash::FxHashMap;
use unisono_base::interrupt::poll;
use unisono_collective::{Collective, Kind};
use unisono_synthesis::partition::Parts;

use super::{
    NetworkPart,
    bounds::{CUT, PARTITION},
};
use crate::{Found, Time};

/// Returns the larger of the bounds [`CUT`] and, for an allreduce, [`PARTITION`] for groups of ranks that run a
/// collective concurrently; `None` for a scan, a message and a barrier.
pub fn groups_together<'a>(
    part: &NetworkPart,
    collective: &Collective,
    groups: impl Iterator<Item = &'a [u32]> + Clone,
) -> Option<Found> {
    let (part, block) = (part.of_data_sheet(), collective.bytes() as f64);
    let ns = |units: f64| Time::from_ns(units * block / part.fabric.graph().bytes_per_ns());
    let (mut cut, mut partition) = (0.0_f64, 0.0_f64);
    for parts in part.fabric.parts() {
        let mut borders = Borders::new(parts);
        // The number of vectors of all groups that must cross borders of parts.
        let mut between = 0_u64;
        for group in groups.clone() {
            poll();
            let mut inside = FxHashMap::<u32, u64>::default();
            group.iter().for_each(|&rank| *inside.entry(parts.of(rank)).or_default() += 1);
            let root = group.get(collective.root as usize).map(|&rank| parts.of(rank));
            between += 2 * (inside.len() as u64).saturating_sub(1);
            for (part, inside) in inside {
                let outside = group.len() as u64 - inside;
                let [out, back] = crossing(collective.kind, inside, outside, root == Some(part))?;
                borders.add(part, out, back);
            }
        }
        cut = cut.max(borders.time());
        if collective.kind == Kind::Allreduce && !parts.computes_between && between > 0 {
            let rate: f64 = parts.leaving.iter().map(|&rate| rate as f64).sum();
            partition = partition.max(between as f64 / rate);
        }
    }
    let (bound, units) = if cut < partition { (&PARTITION, partition) } else { (&CUT, cut) };
    Some(Found { bound, of: None, time: ns(units) })
}

/// Returns the bound [`CUT`] for concurrent messages of `bytes` bytes between pairs `(sender, receiver)` of ranks.
pub fn messages_together(part: &NetworkPart, bytes: u64, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Found {
    let part = part.of_data_sheet();
    let time = |parts: &Parts| {
        let mut borders = Borders::new(parts);
        for (from, to) in pairs.clone() {
            let [from, to] = [from, to].map(|rank| parts.of(rank));
            if from != to {
                borders.add(from, 1, 0);
                borders.add(to, 0, 1);
            }
        }
        borders.time()
    };
    let units = part.fabric.parts().iter().map(time).fold(0.0, f64::max);
    let time = Time::from_ns(units * bytes as f64 / part.fabric.graph().bytes_per_ns());
    Found { bound: &CUT, of: None, time }
}

/// Returns the numbers of blocks that leave and that enter a part of the network for a group with `inside` ranks in it
/// and `outside` ranks elsewhere; `None` for a kind without such a bound. `has_root` is true if the group's root is
/// inside. Every block from outside must enter at least once. For sums, a partial sum of each block must enter.
fn crossing(kind: Kind, inside: u64, outside: u64, has_root: bool) -> Option<[u64; 2]> {
    let turned = |[out, back]: [u64; 2]| if has_root { [out, back] } else { [back, out] };
    let blocks = match kind {
        Kind::Allgather => [inside, outside],
        Kind::ReduceScatter => [outside, inside],
        Kind::Allreduce => [1, 1],
        Kind::Alltoall => [inside * outside; 2],
        Kind::Broadcast => turned([1, 0]),
        Kind::Reduce => turned([0, 1]),
        Kind::Scatter if has_root => [outside, 0],
        Kind::Scatter => [0, inside],
        Kind::Gather if has_root => [0, outside],
        Kind::Gather => [inside, 0],
        Kind::Scan | Kind::Message | Kind::Barrier => return None,
    };
    Some(if outside == 0 { [0, 0] } else { blocks })
}

/// The numbers of blocks that leave and enter each part.
struct Borders<'a> {
    parts: &'a Parts,
    leaving: Vec<u64>,
    entering: Vec<u64>,
}

impl<'a> Borders<'a> {
    fn new(parts: &'a Parts) -> Self {
        Self { parts, leaving: vec![0; parts.len()], entering: vec![0; parts.len()] }
    }

    fn add(&mut self, part: u32, out: u64, back: u64) {
        self.leaving[part as usize] += out;
        self.entering[part as usize] += back;
    }

    fn time(&self) -> f64 {
        let out = self.leaving.iter().zip(&self.parts.leaving);
        let crossing = out.chain(self.entering.iter().zip(&self.parts.entering)).filter(|(blocks, _)| **blocks > 0);
        crossing.map(|(&blocks, &rate)| blocks as f64 / rate as f64).fold(0.0, f64::max)
    }
}
