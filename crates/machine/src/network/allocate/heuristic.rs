//! The heuristics that choose the boards of a job. Each includes all earlier ones.
//!
//! * `greedy`: the factors of the job's size that are nearest to a square or cube, with sides of at most half of the
//!   machine if possible; a size without such factors (a large prime) is rounded up;
//! * `transpose`: if no boards are found, the same sides in other dimensions;
//! * `aspect`: if that fails too, all other factors with ratios up to 1:8;
//! * `sort`: jobs are placed in descending order of size;
//! * `locality`: the boards with the least traffic over the upper level of switches are chosen.
//!
//! Jobs on a fat tree, a dragonfly or boxes have no sides, so `transpose` and `aspect` change nothing there. Boards of
//! tori and meshes have no upper level, so `locality` changes nothing there.

use std::fmt;

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
