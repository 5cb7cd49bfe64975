//! Places a job on rows of boards that all have the same free columns.
//!
//! For a job of b rows and a columns: go through the rows in order and keep the columns that are free in all rows taken
//! so far. Take a row if that leaves at least a columns. Stop at b rows and take the first a columns. Rows and columns
//! need not be adjacent. Source: "HammingMesh", section 4.2; simulate_allocation.py of its artifact.
//!
//! For `locality` the scan starts from the rows of each leaf, for all shapes.

use unisono_base::interrupt::poll;

use super::{Free, Heuristic, Job, JobSpace, Placed, UpperShare, shapes::shapes};

/// Finds boards for a job on a space of two dimensions.
pub fn place(space: &JobSpace, free: &mut Free, job: &Job, heuristic: Heuristic) -> Option<Placed> {
    let shapes = shapes(job, &space.count, heuristic);
    let rows = space.count[0];
    if heuristic < Heuristic::Locality {
        return shapes.iter().find_map(|shape| scan(space, free, shape, 0));
    }
    let mut best: Option<(f64, Placed)> = None;
    for shape in &shapes {
        for start in (0..rows).step_by(space.leaf[0].max(1) as usize) {
            let Some(placed) = scan(space, free, shape, start) else { continue };
            let share = UpperShare::of(&placed, &space.leaf).alltoall;
            if best.as_ref().is_none_or(|(least, _)| share < *least) {
                best = Some((share, placed));
            }
        }
    }
    best.map(|(_, placed)| placed)
}

/// Runs the greedy scan for rows and columns, beginning at row `start`, with wraparound.
fn scan(space: &JobSpace, free: &mut Free, shape: &[u32], start: u32) -> Option<Placed> {
    let (&[all, width], &[rows, columns]) = (&space.count[..], shape) else { return None };
    free.meet_none();
    let mut taken = Vec::new();
    for row in (start..all).chain(0..start) {
        poll();
        if free.left_with(row) < columns {
            continue;
        }
        free.meet(row);
        taken.push(row);
        if taken.len() == rows as usize {
            taken.sort_unstable();
            let columns = (0..width).filter(|&column| free.is_met(column)).take(columns as usize).collect();
            return Some(Placed { positions: vec![taken, columns] });
        }
    }
    None
}
