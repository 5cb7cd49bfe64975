//! Places a job on rows of boards that all have the same free columns.
//!
//! For a job of b rows and a columns: go through the rows in order and keep the columns that are free in all rows taken
//! so far. Take a row if that leaves at least a columns. Stop at b rows and take the first a columns. Rows and columns
//! need not be adjacent. Source: "HammingMesh", section 4.2; simulate_allocation.py of its artifact.
//!
//! If boards are linked only with their neighbors, as in a torus, a job takes adjacent rows and adjacent columns, with
//! wraparound: the first such rectangle of free boards, row by row.
//!
//! Heuristics, each including those before it:
//! * `greedy`: the factors of the job's size that are nearest to a square, with sides of at most half of the machine if
//!   possible; a size without such factors (a large prime) is rounded up;
//! * `transpose`: the transposed shape, if that fails;
//! * `aspect`: then all other factors up to 1:8;
//! * `sort`: jobs in descending order of size;
//! * `locality`: the scan starts from the rows of each leaf, for all these shapes; the place with the least traffic
//!   over the upper level of the trees is chosen.

use std::fmt;

use unisono_base::interrupt::poll;

use super::{super::Boards, Job, UpperShare};
use crate::MachineError;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Heuristic {
    Greedy,
    Transpose,
    Aspect,
    Sort,
    Locality,
}

impl Heuristic {
    pub const ALL: &[Heuristic] = &[Self::Greedy, Self::Transpose, Self::Aspect, Self::Sort, Self::Locality];

    pub fn name(self) -> &'static str {
        match self {
            Self::Greedy => "greedy",
            Self::Transpose => "transpose",
            Self::Aspect => "aspect",
            Self::Sort => "sort",
            Self::Locality => "locality",
        }
    }
}

impl fmt::Display for Heuristic {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Heuristic {
    type Err = MachineError;

    fn from_str(text: &str) -> Result<Self, MachineError> {
        Self::ALL.iter().copied().find(|h| h.name() == text).ok_or_else(|| MachineError::UnknownHeuristic {
            found: text.to_owned(),
            accepted: Self::ALL.iter().map(|h| h.name()).collect::<Vec<_>>().join(", "),
        })
    }
}

/// The boards of a job: the crossings of its rows and columns, which ascend, or are in order with wraparound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    pub rows: Vec<u32>,
    pub columns: Vec<u32>,
}

/// The free boards, as bits of each row.
#[derive(Clone, Debug)]
pub struct Free {
    boards: Boards,
    words: usize,
    bits: Vec<u64>,
    meet: Vec<u64>,
}

impl Free {
    /// Makes a set with all boards free.
    pub fn new(boards: Boards) -> Self {
        let words = boards.count[1].div_ceil(64) as usize;
        let mut free = Self { boards, words, bits: vec![0; words * boards.count[0] as usize], meet: vec![0; words] };
        for row in 0..boards.count[0] {
            for column in 0..boards.count[1] {
                free.bits[row as usize * words + column as usize / 64] |= 1 << (column % 64);
            }
        }
        free
    }

    pub fn count(&self) -> u64 {
        self.bits.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    pub fn is_free(&self, row: u32, column: u32) -> bool {
        self.bits[row as usize * self.words + column as usize / 64] >> (column % 64) & 1 == 1
    }

    /// Removes a board that failed or was given to a job.
    pub fn take(&mut self, row: u32, column: u32) {
        self.bits[row as usize * self.words + column as usize / 64] &= !(1 << (column % 64));
    }

    pub fn give(&mut self, placed: &Placed) {
        placed.rows.iter().for_each(|&row| placed.columns.iter().for_each(|&column| self.take(row, column)));
    }

    /// Finds boards for a job by a heuristic, without taking them.
    pub fn place(&mut self, job: Job, heuristic: Heuristic) -> Option<Placed> {
        let shapes = shapes(job, &self.boards, heuristic);
        if self.boards.adjacent {
            return shapes.iter().find_map(|&shape| self.rectangle(shape));
        }
        if heuristic < Heuristic::Locality {
            return shapes.iter().find_map(|&shape| self.scan(shape, 0));
        }
        let starts: Vec<u32> = (0..self.boards.count[0]).step_by(self.boards.leaf[0].max(1) as usize).collect();
        let mut best: Option<(f64, Placed)> = None;
        for &shape in &shapes {
            for &start in &starts {
                let Some(placed) = self.scan(shape, start) else { continue };
                let share = UpperShare::of(&placed, &self.boards).alltoall;
                if best.as_ref().is_none_or(|(least, _)| share < *least) {
                    best = Some((share, placed));
                }
            }
        }
        best.map(|(_, placed)| placed)
    }

    /// Runs the greedy scan for `rows` x `columns`, beginning at row `start`, with wraparound.
    fn scan(&mut self, [rows, columns]: [u32; 2], start: u32) -> Option<Placed> {
        let all = self.boards.count[0];
        self.meet.fill(u64::MAX);
        let mut taken = Vec::new();
        for row in (start..all).chain(0..start) {
            poll();
            let of_row = &self.bits[row as usize * self.words..][..self.words];
            let left: u32 = self.meet.iter().zip(of_row).map(|(a, b)| (a & b).count_ones()).sum();
            if left < columns {
                continue;
            }
            self.meet.iter_mut().zip(of_row).for_each(|(meet, row)| *meet &= row);
            taken.push(row);
            if taken.len() == rows as usize {
                taken.sort_unstable();
                return Some(Placed { rows: taken, columns: self.first_columns(columns) });
            }
        }
        None
    }

    /// Returns the first rectangle of adjacent free boards, with wraparound.
    fn rectangle(&mut self, [rows, columns]: [u32; 2]) -> Option<Placed> {
        let [all, width] = self.boards.count;
        for start in 0..all {
            poll();
            let taken: Vec<u32> = (0..rows).map(|k| (start + k) % all).collect();
            self.meet.fill(u64::MAX);
            for &row in &taken {
                let of_row = &self.bits[row as usize * self.words..][..self.words];
                self.meet.iter_mut().zip(of_row).for_each(|(meet, row)| *meet &= row);
            }
            let is_free = |column: u32| self.meet[column as usize / 64] >> (column % 64) & 1 == 1;
            let mut run = 0;
            // A run may continue past the end, up to its first column.
            for column in 0..width + columns - 1 {
                run = if is_free(column % width) { run + 1 } else { 0 };
                if run == columns {
                    let first = column + 1 - columns;
                    let columns = (first..=column).map(|column| column % width).collect();
                    return Some(Placed { rows: taken, columns });
                }
            }
        }
        None
    }

    /// Returns the first `columns` columns that are free in all rows taken.
    fn first_columns(&self, columns: u32) -> Vec<u32> {
        let free = (0..self.boards.count[1]).filter(|c| self.meet[*c as usize / 64] >> (c % 64) & 1 == 1);
        free.take(columns as usize).collect()
    }
}

/// The largest ratio of the sides of other shapes that are tried.
const MOST_UNEQUAL: u32 = 8;

/// Returns the shapes to try, in order.
pub fn shapes(job: Job, boards: &Boards, heuristic: Heuristic) -> Vec<[u32; 2]> {
    let fits = |[r, c]: [u32; 2]| r <= boards.count[0] && c <= boards.count[1];
    let turned = |[r, c]: [u32; 2]| [c, r];
    if let Some(shape) = job.shape {
        // The user's shape is fixed, but may be transposed.
        return [shape, turned(shape)].into_iter().filter(|&s| fits(s)).collect();
    }
    let half = |[r, c]: [u32; 2]| r <= boards.count[0].div_ceil(2) && c <= boards.count[1].div_ceil(2);
    let factors = |n: u32| (1..=n.isqrt()).rev().filter(move |r| n.is_multiple_of(*r)).map(move |r| [r, n / r]);
    let lying = |s: [u32; 2], within: &dyn Fn([u32; 2]) -> bool| [s, turned(s)].into_iter().find(|&s| within(s));
    let nearest = |n: u32, within: &dyn Fn([u32; 2]) -> bool| factors(n).find_map(|s| lying(s, within));
    let most = boards.count[0] * boards.count[1];
    let rounded = |within: &dyn Fn([u32; 2]) -> bool| (job.boards..=most).find_map(|n| nearest(n, within));
    let first = nearest(job.boards, &half).or_else(|| nearest(job.boards, &fits));
    let Some(first) = first.or_else(|| rounded(&half)).or_else(|| rounded(&fits)) else {
        return Vec::new();
    };
    let mut shapes = vec![first];
    if heuristic >= Heuristic::Transpose {
        shapes.push(turned(first));
    }
    if heuristic >= Heuristic::Aspect {
        let near = |s: &[u32; 2]| s[1] <= MOST_UNEQUAL * s[0];
        shapes.extend(factors(first[0] * first[1]).filter(near).flat_map(|s| [s, turned(s)]));
    }
    let mut tried: Vec<[u32; 2]> = Vec::new();
    shapes.retain(|&s| {
        fits(s) && !tried.contains(&s) && {
            tried.push(s);
            true
        }
    });
    shapes
}
