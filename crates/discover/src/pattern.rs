//! The kinds of exchange that discovery finds.

use serde::Serialize;

unisono_base::named! {
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Pattern {
        Gather = "gather",
        Allgather = "allgather",
        Broadcast = "broadcast",
        Scatter = "scatter",
        Alltoall = "alltoall",
        Reduce = "reduce",
        Allreduce = "allreduce",
        #[serde(rename = "reduce-scatter")]
        ReduceScatter = "reduce-scatter",
        /// Each rank exchanges data with its neighbors in the grid; the messages are pushes.
        Halo = "halo",
    }
}

impl Pattern {
    /// Returns whether the pattern combines partial results.
    pub fn reduces(self) -> bool {
        matches!(self, Self::Reduce | Self::Allreduce | Self::ReduceScatter)
    }
}
