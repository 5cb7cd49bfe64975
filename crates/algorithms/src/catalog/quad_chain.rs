//! Quad chain: four chains over a grid, each with a quarter of the vector, that meet in four different lines.
//!
//! With the root in the corner (0, 0): quarter 0 goes along the rows to the last column, up that column, and along
//! row 0 to the root; quarter 1 along the columns to the last row, along it to column 0, and up; quarter 2 along the rows
//! to column 0 and up; quarter 3 along the columns to row 0 and along it. The root is in no line: where a chain would
//! end in it, that line (row 0 of quarter 2, column 0 of quarter 3) hands its sum to the far end of the next line, which
//! has nothing else to receive. Every PE then adds at most 1.25 B elements: T is about 1.25 B + 13 n on n x n.
//!
//! Source: this project; the paper leaves 2D open (section 7.5).

use unisono_collective::Kind;
use unisono_lower::Placed;
use unisono_machine::Grid;
use unisono_schedule::Builder;

use crate::{
    Algorithm, AlgorithmError, Case, Params,
    forest::{Tree, emit, placement},
};

pub struct QuadChain;

/// A grid seen from one of its corners, with rows and columns exchanged if asked.
#[derive(Clone, Copy)]
struct View {
    grid: Grid,
    flip_rows: bool,
    flip_cols: bool,
    transposed: bool,
}

impl View {
    fn rows(self) -> u32 {
        if self.transposed { self.grid.cols } else { self.grid.rows }
    }

    fn cols(self) -> u32 {
        if self.transposed { self.grid.rows } else { self.grid.cols }
    }

    fn pe(self, row: u32, col: u32) -> u32 {
        let (r, c) = if self.transposed { (col, row) } else { (row, col) };
        let r = if self.flip_rows { self.grid.rows - 1 - r } else { r };
        let c = if self.flip_cols { self.grid.cols - 1 - c } else { c };
        self.grid.pe(r, c)
    }
}

/// Rows away from the root's column, the last column toward row 0, row 0 back to the root.
fn far(v: View) -> Tree {
    let (rows, cols) = (v.rows(), v.cols());
    let mut parents = vec![v.pe(0, 0); v.grid.count() as usize];
    for r in 0..rows {
        for c in 0..cols {
            let parent = match (r, c) {
                (0, 0) => continue,
                (_, c) if c + 1 < cols => v.pe(r, c + 1),
                (0, _) => v.pe(0, 0),
                _ => v.pe(r - 1, c),
            };
            parents[v.pe(r, c) as usize] = parent;
        }
    }
    Tree(parents)
}

/// Rows toward column 0 and column 0 toward the root; row 0, without the root, hands its sum to the far end of row 1.
fn near(v: View) -> Tree {
    let (rows, cols) = (v.rows(), v.cols());
    let mut parents = vec![v.pe(0, 0); v.grid.count() as usize];
    for r in 0..rows {
        for c in 0..cols {
            let parent = match (r, c) {
                (0, 0) => continue,
                (0, 1) => v.pe(1, cols - 1),
                (1, 0) => v.pe(0, 0),
                (_, 0) => v.pe(r - 1, 0),
                _ => v.pe(r, c - 1),
            };
            parents[v.pe(r, c) as usize] = parent;
        }
    }
    Tree(parents)
}

impl Algorithm for QuadChain {
    fn name(&self) -> &'static str {
        "quad-chain"
    }

    fn summary(&self) -> &'static str {
        "four chains over a grid, each with a quarter of the vector; best for long vectors"
    }

    fn reference(&self) -> &'static str {
        "this project; goes beyond Near-Optimal Wafer-Scale Reduce, section 7"
    }

    fn collectives(&self) -> &'static [Kind] {
        &[Kind::Reduce]
    }

    fn supports(&self, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        let no = |reason: String| Err(AlgorithmError::Unsupported { algorithm: self.name(), reason });
        let (c, grid) = (case.collective, case.grid);
        if c.kind != Kind::Reduce || grid.is_line() {
            return no(format!("it reduces over a grid, not {} on {grid}", c.kind));
        }
        let (row, col) = grid.row_col(c.root);
        if (row != 0 && row != grid.rows - 1) || (col != 0 && col != grid.cols - 1) {
            return no(format!("its root lies in a corner of {grid}, not at {row},{col}"));
        }
        if !c.operator.commutative() {
            return no(format!("its chains meet in no order, and operator {} does not commute", c.operator));
        }
        Ok(())
    }

    fn build(&self, case: &Case, _: &Params) -> Result<Placed, AlgorithmError> {
        let (row, col) = case.grid.row_col(case.collective.root);
        let view = View { grid: case.grid, flip_rows: row != 0, flip_cols: col != 0, transposed: false };
        let turned = View { transposed: true, ..view };
        let mut b = Builder::new(case.collective);
        b.phase("reduce");
        let edges = emit(&mut b, &[far(view), far(turned), near(view), near(turned)]);
        let schedule = b.finish()?;
        Ok(Placed { placement: placement(case.grid, &schedule, &edges), schedule })
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        if case.grid.is_line() { Vec::new() } else { vec![Params::new()] }
    }
}
