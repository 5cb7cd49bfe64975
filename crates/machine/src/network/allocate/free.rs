//! The free boards of a network, one bit each, row by row.

use std::ops::Range;

/// The boards of a job: all combinations of its positions along each dimension. Positions ascend, or are consecutive
/// with wraparound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    pub positions: Vec<Vec<u32>>,
}

impl Placed {
    /// Returns the number of boards, which may exceed the number that the job requested.
    pub fn size(&self) -> u64 {
        self.positions.iter().map(|line| line.len() as u64).product()
    }

    /// Returns the row-major numbers of the job's boards on a network with `count` boards in each dimension.
    pub fn boards(&self, count: &[u32]) -> Vec<u32> {
        let cross = |before: Vec<u32>, (line, &all): (&Vec<u32>, &u32)| -> Vec<u32> {
            before.iter().flat_map(|at| line.iter().map(move |k| at * all + k)).collect()
        };
        self.positions.iter().zip(count).fold(vec![0], cross)
    }
}

/// The free boards. A row is all boards with the same coordinates except in the last dimension.
#[derive(Clone, Debug)]
pub struct Free {
    count: Vec<u32>,
    columns: u32,
    words: usize,
    bits: Vec<u64>,
    /// The intersection of the free columns of all rows passed to `meet` since the last call of `meet_none`.
    meet: Vec<u64>,
}

fn bit(words: &[u64], column: u32) -> bool {
    words[column as usize / 64] >> (column % 64) & 1 == 1
}

impl Free {
    /// Makes a set of `count` boards along each dimension, all free.
    pub fn new(count: &[u32]) -> Self {
        let columns = count.last().copied().unwrap_or(1);
        let words = columns.div_ceil(64) as usize;
        let rows: u32 = count.iter().rev().skip(1).product();
        let mut row = vec![u64::MAX; words];
        if !columns.is_multiple_of(64) {
            row[words - 1] = (1 << (columns % 64)) - 1;
        }
        Self { count: count.to_vec(), columns, words, bits: row.repeat(rows as usize), meet: vec![0; words] }
    }

    pub fn count(&self) -> u64 {
        self.bits.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns whether a board is free, by its row-major number.
    pub fn is_free(&self, board: u32) -> bool {
        bit(self.row(board / self.columns), board % self.columns)
    }

    /// Removes a board that failed or was given to a job.
    pub fn take(&mut self, board: u32) {
        let (row, column) = (board / self.columns, board % self.columns);
        self.bits[row as usize * self.words + column as usize / 64] &= !(1 << (column % 64));
    }

    pub fn give(&mut self, placed: &Placed) {
        placed.boards(&self.count).into_iter().for_each(|board| self.take(board));
    }

    fn row(&self, row: u32) -> &[u64] {
        &self.bits[row as usize * self.words..][..self.words]
    }

    /// Starts a new intersection of rows, which contains all columns until a row is added.
    pub(super) fn meet_none(&mut self) {
        self.meet.fill(u64::MAX);
    }

    /// Returns the number of columns that are free in the intersection of rows and in `row`.
    pub(super) fn left_with(&self, row: u32) -> u32 {
        self.meet.iter().zip(self.row(row)).map(|(a, b)| (a & b).count_ones()).sum()
    }

    pub(super) fn meet(&mut self, row: u32) {
        let of_row = &self.bits[row as usize * self.words..][..self.words];
        self.meet.iter_mut().zip(of_row).for_each(|(meet, row)| *meet &= row);
    }

    /// Returns whether a column is free in all rows of the intersection.
    pub(super) fn is_met(&self, column: u32) -> bool {
        bit(&self.meet, column)
    }

    /// Returns the number of free boards in a range, on a network with a single row.
    pub(super) fn count_in(&self, range: &Range<u32>) -> u32 {
        let mut all = 0;
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min((at / 64 + 1) * 64);
            let mask = (u64::MAX >> (64 - (end - at))) << (at % 64);
            all += (self.bits[at as usize / 64] & mask).count_ones();
            at = end;
        }
        all
    }

    /// Returns the first `most` free boards in a range, on a network with a single row.
    pub(super) fn first_in(&self, range: Range<u32>, most: u32) -> Vec<u32> {
        let words = range.start / 64..range.end.div_ceil(64);
        let bits = words.flat_map(|word| {
            let mut left = self.bits[word as usize];
            std::iter::from_fn(move || {
                let at = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                (at < 64).then_some(word * 64 + at)
            })
        });
        bits.filter(|board| range.contains(board)).take(most as usize).collect()
    }
}
