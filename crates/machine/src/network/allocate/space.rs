//! The boards of a network that jobs may get, and the rule for the sets of boards of one job.
//!
//! A family of topologies states its `JobSpace` in [`super::super::Topology::jobs`]; its [`Rule`] selects the algorithm
//! that places jobs.

use unisono_base::narrow;

use super::{Free, Heuristic, Job, Placed, blocks, crossings, sub_box};
use crate::MachineError;

/// The rule for the sets of boards that one job may have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The boards at the crossings of any rows and columns of boards: [`crossings`].
    Crossings,
    /// A box of adjacent boards: [`sub_box`]. If it `wraps`, it may continue from the last board of a dimension to the
    /// first.
    SubBox { wraps: bool },
    /// Any boards: [`blocks`]. `sizes` are the numbers of boards in a block of each level, ascending. An `aligned` job
    /// stays inside one block if it fits into one.
    Blocks { sizes: Vec<u32>, aligned: bool },
}

/// The boards of a network, `count` along each dimension, numbered row-major, and the rule for the boards of one job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobSpace {
    pub count: Vec<u32>,
    /// The number of accelerators of a board along each dimension. Accelerators are numbered row-major over all boards.
    pub board: Vec<u32>,
    /// The number of adjacent boards along each dimension between which traffic stays below the upper level of
    /// switches.
    pub leaf: Vec<u32>,
    pub rule: Rule,
}

impl JobSpace {
    /// Returns a job space in which each accelerator is a board, in blocks of `sizes` accelerators. Traffic between
    /// blocks of `leaf` accelerators uses the upper level of switches.
    pub fn of_blocks(accelerators: u32, sizes: Vec<u32>, leaf: u32) -> Self {
        let rule = Rule::Blocks { sizes, aligned: false };
        Self { count: vec![accelerators], board: vec![1], leaf: vec![leaf], rule }
    }

    /// Returns the space with boards of adjacent accelerators, such as those of a server. Blocks that do not consist of
    /// whole boards are omitted.
    ///
    /// # Errors
    /// Returns an error if the network has boards of its own, or if its accelerators or leaves cannot be divided into
    /// such boards.
    pub fn in_boards_of(self, machine: &str, accelerators: u32) -> Result<Self, MachineError> {
        let Rule::Blocks { sizes, aligned } = self.rule else {
            let board = sides(&self.board);
            return Err(MachineError::OwnBoards { machine: machine.to_owned(), board });
        };
        let (all, leaf) = (self.count[0], self.leaf[0]);
        // A board is inside one leaf or consists of whole leaves, so that traffic above the leaves can be counted by
        // board.
        let is_board = |n: u32| all.is_multiple_of(n) && (leaf.is_multiple_of(n) || n.is_multiple_of(leaf));
        if accelerators == 0 || !is_board(accelerators) {
            let accepted: Vec<u32> = (1..=all).filter(|&n| is_board(n)).collect();
            return Err(MachineError::NoSuchBoard {
                found: accelerators,
                machine: machine.to_owned(),
                accelerators: all,
                leaf,
                accepted: accepted.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
            });
        }
        let sizes = sizes.into_iter().filter(|size| size.is_multiple_of(accelerators)).map(|size| size / accelerators);
        Ok(Self {
            count: vec![all / accelerators],
            board: vec![accelerators],
            leaf: vec![(leaf / accelerators).max(1)],
            rule: Rule::Blocks { sizes: sizes.collect(), aligned },
        })
    }

    /// Returns the space in which a job stays inside one block if it fits into one.
    ///
    /// # Errors
    /// Returns an error if the network has no blocks.
    pub fn aligned(self, machine: &str) -> Result<Self, MachineError> {
        match self.rule {
            Rule::Blocks { sizes, .. } => Ok(Self { rule: Rule::Blocks { sizes, aligned: true }, ..self }),
            Rule::Crossings | Rule::SubBox { .. } => Err(MachineError::NoBlocks { machine: machine.to_owned() }),
        }
    }

    pub fn all(&self) -> u64 {
        self.count.iter().map(|&n| u64::from(n)).product()
    }

    /// Returns the number of the board that has an accelerator.
    pub fn board_of(&self, accelerator: u32) -> u32 {
        let (mut left, mut stride, mut found) = (accelerator, 1, 0);
        for (count, board) in self.count.iter().zip(&self.board).rev() {
            found += left % (count * board) / board * stride;
            left /= count * board;
            stride *= count;
        }
        found
    }

    /// Returns the position of a board in each dimension.
    pub fn position(&self, board: u32) -> Vec<u32> {
        let mut left = board;
        let mut position: Vec<u32> = self
            .count
            .iter()
            .rev()
            .map(|n| {
                let at = left % n;
                left /= n;
                at
            })
            .collect();
        position.reverse();
        position
    }

    /// Returns whether a job fits into the space when all boards are free.
    pub fn fits(&self, job: &Job) -> bool {
        match (&self.rule, &job.shape) {
            (Rule::Blocks { .. }, _) | (_, None) => u64::from(job.boards) <= self.all(),
            // If some order of the sides fits, ascending sides fit into the ascending counts of boards, so only this
            // order is tested.
            (_, Some(shape)) => {
                let sorted = |sides: &[u32]| {
                    let mut sides = sides.to_vec();
                    sides.resize(self.count.len(), 1);
                    sides.sort_unstable();
                    sides
                };
                sorted(shape).iter().zip(sorted(&self.count)).all(|(side, all)| *side <= all)
            }
        }
    }

    /// Returns the largest number of dimensions of a job's shape; `None` if it is not limited.
    pub fn dimensions(&self) -> Option<usize> {
        (!matches!(self.rule, Rule::Blocks { .. })).then_some(self.count.len())
    }

    /// Returns the largest size of drawn jobs. In two dimensions, a job has at most half of each side, as in the
    /// artifact of "HammingMesh". In other spaces, it has at most a quarter of all boards, which is the same number, so
    /// that networks with equally many boards get the same jobs.
    pub(super) fn most_drawn(&self) -> u32 {
        match self.count[..] {
            [rows, columns] => rows.div_ceil(2) * columns.div_ceil(2),
            _ => narrow(self.all().div_ceil(4)),
        }
    }

    /// Finds boards for a job by a heuristic, without marking them as used; `None` if the job is refused.
    pub fn place(&self, free: &mut Free, job: &Job, heuristic: Heuristic) -> Option<Placed> {
        match &self.rule {
            Rule::Crossings => crossings::place(self, free, job, heuristic),
            Rule::SubBox { wraps } => sub_box::place(self, free, job, heuristic, *wraps),
            Rule::Blocks { sizes, aligned } => {
                blocks::place((job.boards, self.count[0]), sizes, *aligned, heuristic, free)
            }
        }
    }

    /// Returns the estimated number of computation steps that place one job. Only [`Rule::SubBox`] uses `shapes`, the
    /// shapes of the job, each of which is tried on the whole machine.
    pub(super) fn steps(&self, heuristic: Heuristic, shapes: &[Vec<u32>]) -> u128 {
        /// The computation steps to move to another corner, for each dimension.
        const CORNER: u128 = 50;
        let width = self.count.last().copied().unwrap_or(1);
        let rows: u128 = self.count.iter().rev().skip(1).map(|&n| u128::from(n)).product();
        let words = u128::from(width.div_ceil(64));
        match &self.rule {
            Rule::Crossings => {
                let starts = u128::from(self.count[0].div_ceil(self.leaf[0].max(1)));
                rows * words * if heuristic >= Heuristic::Locality { 4 * starts } else { 1 }
            }
            // At each corner the rows of a box are intersected, and their columns are examined one by one.
            Rule::SubBox { .. } => {
                let met = |shape: &Vec<u32>| shape.iter().rev().skip(1).map(|&side| u128::from(side)).product::<u128>();
                let corner = 2 * u128::from(width) + CORNER * self.count.len() as u128;
                shapes.iter().map(|shape| rows * (met(shape) * words + corner)).sum()
            }
            Rule::Blocks { sizes, aligned } => {
                let counted = sizes.iter().map(|size| 4 * u128::from(width.div_ceil(*size))).sum::<u128>();
                words + if heuristic >= Heuristic::Locality || *aligned { counted } else { 0 }
            }
        }
    }
}

/// Prints sides in the form `4x8`.
pub(super) fn sides(of: &[u32]) -> String {
    of.iter().map(u32::to_string).collect::<Vec<_>>().join("x")
}
