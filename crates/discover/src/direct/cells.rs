//! The division of a reduction into cells. A cell is a set of points with the same givers and the same takers: the
//! ranks that contribute to the points, and the ranks that receive their sums.
//!
//! One map stores the regions that contain each point, as a chain of numbers. Ranks with equal regions are handled
//! together. A reduction in which every rank contributes to every point therefore takes one step, and a reduction among
//! neighbors takes a few steps for each rank.

use rustc_hash::FxHashMap;
use unisono_base::narrow;

use super::{Cell, Direct, DirectExchange};
use crate::{
    exchange::Operation,
    region_map::RegionMap,
    side::{Ranks, Sides},
    space::{Box3, Region},
};

/// A region with the ranks that give it, or with the ranks that take it.
struct Mark {
    gives: bool,
    region: Region,
    ranks: Vec<u32>,
}

/// Returns all cells. With `only`, returns the cells to which rank `only` contributes or which it receives; other ranks
/// are included only if they exchange data with `only`.
pub fn of_reduction(operation: &Operation, sides: &Sides, only: Option<u32>) -> DirectExchange {
    let scope = only.map(|rank| operation.given(sides, rank).union(&operation.received(sides, rank)));
    let mut cells: Vec<(Region, Cell)> = Vec::new();
    for (region, givers, takers) in classes(&marks(operation, sides, scope.as_ref())) {
        let elements = region.volume();
        let mut add = |givers: &Ranks, takers: Ranks| {
            if !takers.is_empty() {
                cells.push((region.clone(), Cell { elements, givers: givers.clone(), takers }));
            }
        };
        match only {
            None => add(&givers, takers),
            Some(rank) => {
                if takers.has(rank) {
                    add(&givers, Ranks::one(rank));
                }
                if givers.has(rank) {
                    add(&Ranks::one(rank), listed(takers.iter().filter(|&k| k != rank)));
                }
            }
        }
    }
    let (regions, cells) = cells.into_iter().unzip();
    DirectExchange { lengths: Direct::Cells(cells), regions, complete: only.is_none() }
}

/// Returns the regions that each rank gives and takes within `scope`. Ranks with equal regions share one mark.
fn marks(operation: &Operation, sides: &Sides, scope: Option<&Region>) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    let mut known: FxHashMap<(bool, Region), usize> = FxHashMap::default();
    for rank in operation.participants.iter() {
        for gives in [true, false] {
            let region = if gives { operation.given(sides, rank) } else { operation.received(sides, rank) };
            let region = scope.map_or_else(|| region.clone(), |scope| region.intersect(scope));
            if region.is_empty() {
                continue;
            }
            let at = *known.entry((gives, region.clone())).or_insert_with(|| {
                marks.push(Mark { gives, region, ranks: Vec::new() });
                marks.len() - 1
            });
            marks[at].ranks.push(rank);
        }
    }
    marks
}

/// Returns the points that at least one rank takes, grouped by the marks that cover them. Each group is a region with
/// its givers and takers; groups are sorted by region.
fn classes(marks: &[Mark]) -> Vec<(Region, Ranks, Ranks)> {
    let corners = marks.iter().flat_map(|mark| mark.region.boxes());
    let all = Region::of(corners.copied()).bounds();
    // Chain k extends an earlier chain by one mark; chain 0 is empty.
    let mut chains: Vec<(u32, u32)> = vec![(0, 0)];
    let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut map = RegionMap::new(all, 0_u32);
    let mut met: Vec<(Box3, u32)> = Vec::new();
    for (mark, row) in marks.iter().enumerate() {
        for window in row.region.boxes() {
            met.clear();
            map.query(window, |b, chain| met.push((b, chain)));
            for &(b, before) in &met {
                let key = (before, narrow(mark));
                let chain = *known.entry(key).or_insert_with(|| {
                    chains.push(key);
                    narrow(chains.len() - 1)
                });
                map.set(&b, chain);
            }
        }
    }
    let mut boxes: FxHashMap<u32, Vec<Box3>> = FxHashMap::default();
    map.query(&all, |b, chain| boxes.entry(chain).or_default().push(b));
    boxes.remove(&0);
    let mut found: Vec<(Region, Ranks, Ranks)> = Vec::new();
    for (mut chain, boxes) in boxes {
        let (mut givers, mut takers) = (Vec::new(), Vec::new());
        while chain > 0 {
            let (before, mark) = chains[chain as usize];
            let mark = &marks[mark as usize];
            if mark.gives { &mut givers } else { &mut takers }.extend(&mark.ranks);
            chain = before;
        }
        if !takers.is_empty() {
            found.push((Region::of(boxes), listed(givers), listed(takers)));
        }
    }
    // No two regions are equal, so the order does not depend on the order of the hash map.
    found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    found
}

fn listed(ranks: impl IntoIterator<Item = u32>) -> Ranks {
    Ranks::of(ranks.into_iter().map(|k| (k, k + 1)).collect())
}
