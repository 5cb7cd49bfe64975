//! Chooses for every edge whether it goes along its row or its column first: a local search that lowers the sum of the
//! eighth powers of all link loads, which is nearly the largest load and still tells every change.

use unisono_machine::{Direction, Grid};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    pub from: u32,
    pub to: u32,
}

/// Loads change little after a few passes over all edges.
const PASSES: u32 = 6;

/// For each edge whether it goes along the column first.
pub fn along_columns_first(grid: Grid, edges: &[Edge]) -> Vec<bool> {
    let mut loads = vec![0u16; grid.count() as usize * 4];
    let mut columns = vec![false; edges.len()];
    for &edge in edges {
        links(grid, edge, false, |l| loads[l] = loads[l].saturating_add(1));
    }
    // What one more stream on a link of this load costs.
    let costs: Vec<f64> =
        (0..=u16::MAX).map(|l| f64::from(l + u16::from(l < u16::MAX)).powi(8) - f64::from(l).powi(8)).collect();
    for _ in 0..PASSES {
        let mut changed = false;
        for (edge, columns) in edges.iter().zip(&mut columns) {
            let ((r0, c0), (r1, c1)) = (grid.row_col(edge.from), grid.row_col(edge.to));
            if r0 == r1 || c0 == c1 {
                continue;
            }
            links(grid, *edge, *columns, |l| loads[l] -= 1);
            let cost = |first: bool| {
                let mut sum = 0.0;
                links(grid, *edge, first, |l| sum += costs[usize::from(loads[l])]);
                sum
            };
            let better = cost(!*columns) < cost(*columns);
            changed |= better;
            *columns ^= better;
            links(grid, *edge, *columns, |l| loads[l] += 1);
        }
        if !changed {
            break;
        }
    }
    columns
}

/// Calls `visit` with every directed link of an edge's path: PE times four plus direction.
fn links(grid: Grid, edge: Edge, columns_first: bool, mut visit: impl FnMut(usize)) {
    let ((r0, c0), (r1, c1)) = (grid.row_col(edge.from), grid.row_col(edge.to));
    let mut leg = |row: u32, col: u32, direction: Direction, hops: u32| {
        let mut pe = grid.pe(row, col);
        for hop in 0..hops {
            visit(pe as usize * 4 + direction.index());
            if hop + 1 < hops {
                pe = grid.step(pe, direction, 1);
            }
        }
    };
    let across = if c1 < c0 { Direction::West } else { Direction::East };
    let along = if r1 < r0 { Direction::North } else { Direction::South };
    if columns_first {
        leg(r0, c0, along, r0.abs_diff(r1));
        leg(r1, c0, across, c0.abs_diff(c1));
    } else {
        leg(r0, c0, across, c0.abs_diff(c1));
        leg(r0, c1, along, r0.abs_diff(r1));
    }
}
