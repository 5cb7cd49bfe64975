//! k-d trees: two or four balanced binary trees over all PEs of a grid, each for an equal part of the vector.
//!
//! The root of a tree over a rectangle is the PE in its middle, and its children are the roots of trees over the two
//! halves: the layout of an H-tree, whose edges hardly share links. The farthest PE has a path no longer than its
//! distance to the root, because the middle is on that path. PEs that receive have an even sum of row and column in one
//! tree, an odd sum in the next, so that every PE receives at most the whole vector once. For B wavelets on P = M x N
//! PEs the contention is B, the depth D is ceil(log2 P) + 1, and the datapath does 1.5 B operations. The third and
//! fourth tree cut squares in the other direction. T is about 1.5 B + M + N + 5 D with the largest link load near B.
//!
//! Source: this project; "Near-Optimal Wafer-Scale Reduce", section 7.5, leaves "room for improvement" in 2D.

use unisono_base::{interrupt::poll, narrow};
use unisono_collective::Kind;
use unisono_machine::Grid;

use crate::{
    AlgorithmError, Case, Info, Param, Params,
    forest::{CHUNK, GridTrees, Tree},
};

pub struct KdTree;

/// A rectangle of PEs: first row and column, rows, columns.
#[derive(Clone, Copy)]
struct Rect {
    row: u32,
    col: u32,
    rows: u32,
    cols: u32,
}

impl Rect {
    fn pes(self, grid: Grid) -> impl Iterator<Item = u32> {
        (self.row..self.row + self.rows).flat_map(move |r| (self.col..self.col + self.cols).map(move |c| grid.pe(r, c)))
    }

    /// Returns the halves of a cut across the longer side; a square is cut between rows if `rows_first`, otherwise
    /// between columns.
    fn halves(self, rows_first: bool) -> [Rect; 2] {
        if self.rows > self.cols || (self.rows == self.cols && rows_first) {
            let upper = self.rows / 2;
            [Rect { rows: upper, ..self }, Rect { row: self.row + upper, rows: self.rows - upper, ..self }]
        } else {
            let left = self.cols / 2;
            [Rect { cols: left, ..self }, Rect { col: self.col + left, cols: self.cols - left, ..self }]
        }
    }
}

/// Returns the tree whose receiving PEs have `(row + column) % 2 == parity`, as long as such PEs are free. The PE
/// nearest to the middle is the child of `root`. `rows_first` decides how squares are cut ([`Rect::halves`]).
fn tree(grid: Grid, root: u32, parity: u32, rows_first: bool) -> Tree {
    let mut parents: Vec<u32> = vec![u32::MAX; narrow(grid.count())];
    parents[root as usize] = root;
    let mut todo = vec![(Rect { row: 0, col: 0, rows: grid.rows, cols: grid.cols }, root)];
    while let Some((rect, parent)) = todo.pop() {
        poll();
        let free: Vec<u32> = rect.pes(grid).filter(|&pe| parents[pe as usize] == u32::MAX).take(2).collect();
        let top = match free[..] {
            [] => continue,
            [only] => only,
            _ => nearest(grid, rect, parity, &parents),
        };
        parents[top as usize] = parent;
        if free.len() > 1 {
            todo.extend(rect.halves(rows_first).map(|half| (half, top)));
        }
    }
    Tree(parents)
}

/// Returns the free PE nearest to the middle of a rectangle, of parity `parity` if such a PE is free. Of equally near
/// PEs it is the first.
fn nearest(grid: Grid, rect: Rect, parity: u32, parents: &[u32]) -> u32 {
    let wrong = |pe: u32| {
        let (r, c) = grid.row_col(pe);
        (r + c) % 2 != parity
    };
    // The search goes outward, diagonal by diagonal, because few PEs in the middle are in the tree already.
    let (nr, nc) = (rect.row + rect.rows / 2, rect.col + rect.cols / 2);
    let mut fallback = None;
    for distance in 0..rect.rows + rect.cols {
        poll();
        let rows = nr.saturating_sub(distance).max(rect.row)..=(nr + distance).min(rect.row + rect.rows - 1);
        for row in rows {
            let across = distance - row.abs_diff(nr);
            let sides = [nc.checked_sub(across), (across > 0).then_some(nc + across)];
            for col in sides.into_iter().flatten().filter(|c| (rect.col..rect.col + rect.cols).contains(c)) {
                let pe = grid.pe(row, col);
                if parents[pe as usize] != u32::MAX {
                    continue;
                }
                if !wrong(pe) {
                    return pe;
                }
                fallback.get_or_insert(pe);
            }
        }
    }
    fallback.expect("the caller saw a free PE")
}

impl GridTrees for KdTree {
    const INFO: Info = Info {
        name: "kd-tree",
        summary: "two or four balanced trees over a grid, each with a share of the vector; best for middle lengths",
        reference: "this project; goes beyond Near-Optimal Wafer-Scale Reduce, section 7",
        collectives: &[Kind::Reduce],
        params: &[Param { name: "trees", values: "4, 2 (default: 4)" }, CHUNK],
        ..Info::ON_GRID
    };

    fn needs_corner(&self) -> bool {
        false
    }

    fn count(&self, _: &Case, params: &Params) -> Result<u32, AlgorithmError> {
        Ok(if params.choice(Self::INFO.name, "trees", &["4", "2"])? == "2" { 2 } else { 4 })
    }

    fn trees(&self, case: &Case, params: &Params) -> Result<Vec<Tree>, AlgorithmError> {
        let all = [(0, false), (1, false), (0, true), (1, true)];
        let some = all.into_iter().take(self.count(case, params)? as usize);
        Ok(some.map(|(parity, rows_first)| tree(case.grid(), case.collective.root, parity, rows_first)).collect())
    }

    fn candidates(&self, _: &Case) -> Vec<Params> {
        ["2", "4"].map(|t| Params::new().with("trees", t)).to_vec()
    }
}
