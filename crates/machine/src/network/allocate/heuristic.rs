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

use crate::MachineError;

unisono_base::named! {
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum Heuristic {
        Greedy = "greedy",
        Transpose = "transpose",
        Aspect = "aspect",
        Sort = "sort",
        Locality = "locality",
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
