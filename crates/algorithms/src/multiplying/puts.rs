//! The messages of each stage, and the order in which a rank sends them.
//!
//! Algorithms 2 to 6 of "Generalisation of recursive doubling for AllReduce", with their errors corrected
//! (`papers/multiplying/errata.md`). In the middle of a schedule ranks are *virtual*: the ranks that take part,
//! numbered without gaps in the order of their real ranks. A rank reduces in ascending order of senders, ranks that are
//! set apart first. So all members of a group evaluate the same expression, and operands keep their order if groups are
//! consecutive ranks.

use super::{Stage, Stages, Wrap};

/// One stage of a schedule, with the state of the ranks before it.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    pub stage: Stage,
    wrap: Wrap,
    /// The number of consecutive virtual ranks with the same value before this stage (the paper's `stage_mask`).
    same: u32,
}

impl Stages {
    /// Returns the stages in order, each with the state after the stages before it.
    pub fn run(&self) -> impl Iterator<Item = Running> + '_ {
        let mut same = 1;
        self.iter().map(move |stage| {
            let now = Running { stage, wrap: self.wrap(), same };
            if let Stage::Factor { factor } | Stage::Merge { factor, .. } = stage {
                same *= factor;
            }
            now
        })
    }
}

impl Running {
    /// Appends the ranks to which `rank` sends its value, in the order of its puts.
    pub fn puts(&self, rank: u32, to: &mut Vec<u32>) {
        match self.stage {
            Stage::Factor { factor } => {
                if let Some(v) = self.virtual_rank(rank) {
                    self.exchange(v, factor, to);
                }
            }
            Stage::Collapse { threshold, base } => {
                if rank < threshold && rank % base != base - 1 {
                    to.push(rank / base * base + base - 1);
                }
            }
            Stage::Expand { threshold, base } => {
                if rank < threshold && rank % base == base - 1 {
                    to.extend(rank + 1 - base..rank);
                }
            }
            Stage::Merge { rest, groups, factor } => match self.virtual_rank(rank) {
                Some(v) => self.exchange(v, factor, to),
                None => {
                    let first = rest + rank % groups * factor;
                    to.extend(first..first + factor);
                }
            },
            Stage::InverseMerge { rest, groups, factor } => {
                if let Some(v) = self.virtual_rank(rank) {
                    self.exchange(v, factor, to);
                    to.extend((v % groups..rest).step_by(groups as usize));
                }
            }
        }
    }

    /// Returns whether arrivals replace the rank's own value instead of being reduced with it: in an expand, and for
    /// ranks set apart at the end of a merge.
    pub fn replaces(&self, rank: u32) -> bool {
        match self.stage {
            Stage::Expand { .. } => true,
            Stage::InverseMerge { rest, .. } => rank < rest,
            Stage::Factor { .. } | Stage::Collapse { .. } | Stage::Merge { .. } => false,
        }
    }

    /// Appends the other members of the group of virtual rank `v`, in cyclic order from the next member.
    fn exchange(&self, v: u32, factor: u32, to: &mut Vec<u32>) {
        let size = self.same * factor;
        let (block, own) = (v / size * size, v % size);
        to.extend((1..factor).map(|k| self.real_rank(block + (own + k * self.same) % size)));
    }

    /// Returns the virtual rank of a rank; `None` for a rank that a split collapses into another or that a merge sets
    /// apart.
    fn virtual_rank(&self, rank: u32) -> Option<u32> {
        match self.wrap {
            Wrap::Plain => Some(rank),
            Wrap::Split { threshold, base } if rank < threshold => (rank % base == base - 1).then_some(rank / base),
            Wrap::Split { threshold, base } => Some(rank - threshold / base * (base - 1)),
            Wrap::Merge { rest, .. } => rank.checked_sub(rest),
        }
    }

    fn real_rank(&self, v: u32) -> u32 {
        match self.wrap {
            Wrap::Plain => v,
            Wrap::Split { threshold, base } if v < threshold / base => v * base + base - 1,
            Wrap::Split { threshold, base } => v + threshold / base * (base - 1),
            Wrap::Merge { rest, .. } => v + rest,
        }
    }
}
