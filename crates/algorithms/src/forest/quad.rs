//! Four trees over a grid that merge in four different lines, seen from the root's corner.
//!
//! With the root at (0, 0): tree 0 goes along the rows to the last column, up that column, and along row 0 to the root;
//! tree 1 along the columns to the last row, along that row to column 0, and up; tree 2 along the rows to column 0, and
//! up; tree 3 along the columns to row 0, and along it. The root is not part of a line: a line that would end in the
//! root (row 0 of tree 2, column 0 of tree 3) sends its sum to the far end of the next line.

use unisono_base::{interrupt::poll, narrow};
use unisono_machine::Grid;

use super::Tree;

/// A grid with coordinates that count from one of its corners, optionally with rows and columns exchanged.
#[derive(Clone, Copy)]
pub struct View {
    pub grid: Grid,
    flip_rows: bool,
    flip_cols: bool,
    transposed: bool,
}

impl View {
    /// Returns the view from the corner with `root`; `None` if `root` is not in a corner.
    pub fn from(grid: Grid, root: u32) -> Option<Self> {
        let (row, col) = grid.row_col(root);
        let corner = (row == 0 || row == grid.rows - 1) && (col == 0 || col == grid.cols - 1);
        corner.then_some(Self { grid, flip_rows: row != 0, flip_cols: col != 0, transposed: false })
    }

    #[must_use]
    pub fn turned(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }

    pub fn rows(self) -> u32 {
        if self.transposed { self.grid.cols } else { self.grid.rows }
    }

    pub fn cols(self) -> u32 {
        if self.transposed { self.grid.rows } else { self.grid.cols }
    }

    pub fn pe(self, row: u32, col: u32) -> u32 {
        let (r, c) = if self.transposed { (col, row) } else { (row, col) };
        let r = if self.flip_rows { self.grid.rows - 1 - r } else { r };
        let c = if self.flip_cols { self.grid.cols - 1 - c } else { c };
        self.grid.pe(r, c)
    }
}

/// The shape of lines: the parent of each position, which is nearer to position 0, the end of the line. The shape may
/// depend on the index of the line; [`MERGE`] is the line that receives the sums of all others.
pub trait Lines {
    fn parent(&self, tree: u32, line: u32, place: u32, places: u32) -> u32;
}

pub const MERGE: u32 = u32::MAX;

/// Returns the four trees with the given shape of their lines.
pub fn quad(view: View, lines: &impl Lines) -> Vec<Tree> {
    let turned = view.turned();
    vec![
        tree(view, true, 0, lines),
        tree(turned, true, 1, lines),
        tree(view, false, 2, lines),
        tree(turned, false, 3, lines),
    ]
}

/// Returns the tree whose rows end in the last column (`far`) or in column 0.
fn tree(v: View, far: bool, number: u32, lines: &impl Lines) -> Tree {
    let (rows, cols) = (v.rows(), v.cols());
    let root = v.pe(0, 0);
    let mut parents = vec![root; narrow(v.grid.count())];
    for r in 0..rows {
        // Row 0 omits column 0, which is the root.
        let first = u32::from(r == 0);
        let places = cols - first;
        let col = |place: u32| if far { cols - 1 - place } else { first + place };
        for place in 1..places {
            poll();
            let parent = lines.parent(number, r, place, places);
            parents[v.pe(r, col(place)) as usize] = v.pe(r, col(parent));
        }
        if !far && r == 0 {
            parents[v.pe(0, 1) as usize] = v.pe(1, cols - 1);
        }
    }
    // The line that merges the others; in a near tree it ends at the root's neighbor.
    let first = u32::from(!far);
    let col = if far { cols - 1 } else { 0 };
    for place in 1..rows - first {
        let parent = lines.parent(number, MERGE, place, rows - first);
        parents[v.pe(first + place, col) as usize] = v.pe(first + parent, col);
    }
    parents[root as usize] = root;
    Tree(parents)
}
