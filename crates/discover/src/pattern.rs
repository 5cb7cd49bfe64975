//! The kinds of exchange that discovery finds.

use std::fmt;

use serde::Serialize;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    Gather,
    Allgather,
    Broadcast,
    Scatter,
    Alltoall,
    Reduce,
    Allreduce,
    #[serde(rename = "reduce-scatter")]
    ReduceScatter,
    /// Each rank exchanges data with its neighbors in the grid; the messages are pushes.
    Halo,
}

impl Pattern {
    pub fn name(self) -> &'static str {
        match self {
            Self::Gather => "gather",
            Self::Allgather => "allgather",
            Self::Broadcast => "broadcast",
            Self::Scatter => "scatter",
            Self::Alltoall => "alltoall",
            Self::Reduce => "reduce",
            Self::Allreduce => "allreduce",
            Self::ReduceScatter => "reduce-scatter",
            Self::Halo => "halo",
        }
    }

    /// Returns whether the pattern combines partial results.
    pub fn reduces(self) -> bool {
        matches!(self, Self::Reduce | Self::Allreduce | Self::ReduceScatter)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
