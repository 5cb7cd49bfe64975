//! Places a job on rows of boards that all have the same free columns.
//!
//! For a job of b rows and a columns, the scan visits the rows in order, and keeps the set of columns that are free in
//! all selected rows. It selects a row if at least a columns then remain. It stops at b rows and returns the first a
//! columns. Rows and columns need not be adjacent. Source: "HammingMesh", section 4.2; simulate_allocation.py of its
//! artifact.
//!
//! With `locality`, scans start at each leaf for all shapes, and the result with the smallest fraction of alltoall
//! traffic on the upper level of switches is chosen.

use unisono_base::interrupt::poll;

use super::{Free, Heuristic, Job, JobSpace, Placed, UpperShare, shapes::shapes};

/// Finds boards for a job on a network with rows and columns of boards; `None` if the scans of all shapes fail.
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
            // A share of 0 cannot be improved.
            if share == 0.0 {
                return Some(placed);
            }
            if best.as_ref().is_none_or(|(least, _)| share < *least) {
                best = Some((share, placed));
            }
        }
    }
    best.map(|(_, placed)| placed)
}

/// Scans rows from row `start` on, with wraparound, for a shape of rows and columns. Returns `None` if too few rows are
/// selected.
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
