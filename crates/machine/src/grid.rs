//! A rectangle of PEs with links to the four neighbors. Links are computed from coordinates, and are not stored.

use std::{fmt, str::FromStr};

use crate::MachineError;

/// `rows x cols` PEs, numbered row-major.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Grid {
    pub rows: u32,
    pub cols: u32,
}

/// A grid as a user wrote it. A single number (`dims` 1) is a row, and is printed as one number; `MxN` has `dims` 2.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    pub grid: Grid,
    pub dims: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    North,
    South,
    West,
    East,
}

impl Direction {
    pub const ALL: [Direction; 4] = [Direction::North, Direction::South, Direction::West, Direction::East];

    pub fn index(self) -> usize {
        self as usize
    }

    pub fn letter(self) -> char {
        ['N', 'S', 'W', 'E'][self.index()]
    }
}

impl Grid {
    pub fn new(rows: u32, cols: u32) -> Self {
        Self { rows, cols }
    }

    pub fn count(self) -> u64 {
        u64::from(self.rows) * u64::from(self.cols)
    }

    /// Returns whether the grid is one row or one column. Then 1D algorithms apply, and PE `k` is the `k`-th of the
    /// line.
    pub fn is_line(self) -> bool {
        self.rows == 1 || self.cols == 1
    }

    pub fn pe(self, row: u32, col: u32) -> u32 {
        row * self.cols + col
    }

    pub fn row_col(self, pe: u32) -> (u32, u32) {
        (pe / self.cols, pe % self.cols)
    }

    /// Returns the number of hops of a shortest path between two PEs.
    pub fn distance(self, a: u32, b: u32) -> u32 {
        let ((ra, ca), (rb, cb)) = (self.row_col(a), self.row_col(b));
        ra.abs_diff(rb) + ca.abs_diff(cb)
    }

    /// Returns the number of hops from `pe` to the farthest corner.
    pub fn eccentricity(self, pe: u32) -> u32 {
        let (r, c) = self.row_col(pe);
        r.max(self.rows - 1 - r) + c.max(self.cols - 1 - c)
    }

    /// Returns the number of PEs beyond `pe` in one direction.
    pub fn room(self, pe: u32, direction: Direction) -> u32 {
        let (r, c) = self.row_col(pe);
        match direction {
            Direction::North => r,
            Direction::South => self.rows - 1 - r,
            Direction::West => c,
            Direction::East => self.cols - 1 - c,
        }
    }

    /// Returns the PE `hops` away. The caller must ensure that `hops` is at most [`Grid::room`].
    pub fn step(self, pe: u32, direction: Direction, hops: u32) -> u32 {
        match direction {
            Direction::North => pe - hops * self.cols,
            Direction::South => pe + hops * self.cols,
            Direction::West => pe - hops,
            Direction::East => pe + hops,
        }
    }
}

impl Shape {
    pub fn line(n: u32) -> Self {
        Self { grid: Grid::new(1, n), dims: 1 }
    }

    pub fn rect(rows: u32, cols: u32) -> Self {
        Self { grid: Grid::new(rows, cols), dims: 2 }
    }

    /// Returns `asked` if it is `None`, or a single row or column, whose length then is the number of ranks.
    ///
    /// # Errors
    /// Returns an error if the shape has several rows and columns.
    pub(crate) fn ranks(asked: Option<Self>, machine: &str) -> Result<Option<Self>, MachineError> {
        match asked.filter(|shape| !shape.grid.is_line()) {
            Some(shape) => Err(MachineError::RanksOnly { machine: machine.to_owned(), shape: shape.to_string() }),
            None => Ok(asked),
        }
    }

    /// Returns the numbers that represent the shape in JSON: `[n]` or `[m, n]`.
    pub fn dims(self) -> Vec<u32> {
        if self.dims == 1 { vec![self.grid.cols] } else { vec![self.grid.rows, self.grid.cols] }
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.cols)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dims == 1 { write!(f, "{}", self.grid.cols) } else { self.grid.fmt(f) }
    }
}

impl FromStr for Shape {
    type Err = MachineError;

    fn from_str(text: &str) -> Result<Self, MachineError> {
        let bad = || MachineError::Shape { found: text.to_owned() };
        let side = |t: &str| t.trim().parse::<u32>().ok().filter(|&n| n > 0).ok_or_else(bad);
        match text.split_once(['x', 'X']) {
            None => Ok(Self::line(side(text)?)),
            Some((m, n)) => Ok(Self::rect(side(m)?, side(n)?)),
        }
    }
}
