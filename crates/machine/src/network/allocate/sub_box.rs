//! Places a job on a box of adjacent boards, as links between neighbors require: the first free box in row-major order
//! of its corner. In a torus, a box may continue from the last board of a dimension to the first.
//!
//! Source: contiguous partitions of BlueGene/L (Aridor and others, "Resource allocation and utilization in the Blue
//! Gene/L supercomputer", 2005). A shape is refused only if no free box has it.

use unisono_base::interrupt::poll;

use super::{Free, Heuristic, Job, JobSpace, Placed, shapes::shapes};

/// The largest number of dimensions of a network with boxes for jobs, because each order of sides is tried.
pub const MOST_DIMENSIONS: usize = 6;

pub fn place(space: &JobSpace, free: &mut Free, job: &Job, heuristic: Heuristic, wraps: bool) -> Option<Placed> {
    shapes(job, &space.count, heuristic).iter().find_map(|shape| first(&space.count, free, shape, wraps))
}

/// Returns the first free box with these sides; `None` if there is none.
fn first(count: &[u32], free: &mut Free, shape: &[u32], wraps: bool) -> Option<Placed> {
    let ((&width, before), (&columns, sides)) = (count.split_last()?, shape.split_last()?);
    // If a side spans the whole dimension, only corner 0 is tried, because other corners give the same boards.
    let corners = |side: u32, all: u32| if wraps && side < all { all } else { all - side + 1 };
    let mut corner = vec![0; before.len()];
    loop {
        poll();
        let positions = |at: usize| -> Vec<u32> { (0..sides[at]).map(|k| (corner[at] + k) % before[at]).collect() };
        let lines = Placed { positions: (0..before.len()).map(positions).collect() };
        free.meet_none();
        lines.boards(before).into_iter().for_each(|row| free.meet(row));
        let mut run = 0;
        for column in 0..corners(columns, width) + columns - 1 {
            run = if free.is_met(column % width) { run + 1 } else { 0 };
            if run == columns {
                let start = column + 1 - columns;
                let mut positions = lines.positions;
                positions.push((start..=column).map(|column| column % width).collect());
                return Some(Placed { positions });
            }
        }
        let next = (0..before.len()).rev().find(|&at| corner[at] + 1 < corners(sides[at], before[at]))?;
        corner[next] += 1;
        corner[next + 1..].fill(0);
    }
}
