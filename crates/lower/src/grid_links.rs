//! The load of each link of a grid, for pictures of a schedule.

use rustc_hash::FxHashMap;

use crate::{OnGrid, Segment};

/// A directed link between neighbouring PEs that carries elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkLoad {
    pub from: u32,
    pub to: u32,
    pub elements: u64,
}

/// Returns the links in use with their loads, in ascending order of (`from`, `to`). The placement must be one that
/// [`OnGrid::check`] accepts, so that no route leaves the grid.
pub fn link_loads(placed: OnGrid) -> Vec<LinkLoad> {
    let (schedule, grid) = (placed.schedule, placed.placement.grid);
    let mut found: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    let mut segments: Vec<Segment> = Vec::new();
    for stream in schedule.all_streams() {
        let elements = u64::from(schedule.stream(stream).len);
        placed.placement.segments(schedule, stream, &mut segments);
        for s in &segments {
            for hop in 0..s.hops {
                let (from, to) = (grid.step(s.from, s.direction, hop), grid.step(s.from, s.direction, hop + 1));
                *found.entry((from, to)).or_default() += elements;
            }
        }
    }
    let mut loads: Vec<_> = found.into_iter().map(|((from, to), elements)| LinkLoad { from, to, elements }).collect();
    loads.sort_unstable_by_key(|l| (l.from, l.to));
    loads
}
