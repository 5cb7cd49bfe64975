//! The collectives, by the names that users use.

use std::str::FromStr;

use serde::Serialize;

use crate::CollectiveError;

unisono_base::named! {
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Kind {
        Allgather = "allgather",
        Allreduce = "allreduce",
        Alltoall = "alltoall",
        Barrier = "barrier",
        Broadcast = "broadcast",
        Gather = "gather",
        /// One vector from [`crate::Collective::sender`] to the root, as a reference for the times of broadcasts.
        Message = "message",
        Reduce = "reduce",
        ReduceScatter = "reduce-scatter",
        Scan = "scan",
        Scatter = "scatter",
    }
}

impl Kind {
    pub fn has_root(self) -> bool {
        matches!(self, Kind::Broadcast | Kind::Gather | Kind::Message | Kind::Reduce | Kind::Scatter)
    }

    /// Returns whether elements of different ranks are combined; true for a barrier too, whose elements carry no data.
    pub fn reduces(self) -> bool {
        matches!(self, Kind::Allreduce | Kind::Barrier | Kind::Reduce | Kind::ReduceScatter | Kind::Scan)
    }

    /// Returns the algorithm bandwidth and the bus bandwidth, in GB/s, of a collective of `bytes` bytes that takes
    /// `seconds` seconds. `bytes` counts as in decision tables ([`crate::DecisionTable`]). Returns `None` for a barrier
    /// and a scan, which nccl-tests do not have, and if `seconds` is 0.
    ///
    /// Source: nccl-tests, doc/PERFORMANCE.md and the function `GetBw` of each test. The size in nccl-tests is that of
    /// the larger buffer: if a collective has a block for each rank, the size is that of all blocks.
    pub fn bandwidths(self, ranks: u32, bytes: u64, seconds: f64) -> Option<Bandwidths> {
        let n = f64::from(ranks);
        let (blocks, share) = match self {
            Kind::Allreduce => (1.0, 2.0 * (n - 1.0) / n),
            Kind::Allgather | Kind::Alltoall | Kind::Gather | Kind::ReduceScatter | Kind::Scatter => (n, (n - 1.0) / n),
            Kind::Broadcast | Kind::Message | Kind::Reduce => (1.0, 1.0),
            Kind::Barrier | Kind::Scan => return None,
        };
        let algbw = blocks * bytes as f64 / seconds / 1e9;
        algbw.is_finite().then_some(Bandwidths { algbw, busbw: algbw * share })
    }
}

/// The algorithm bandwidth and the bus bandwidth that nccl-tests print beside a time, in GB/s.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bandwidths {
    pub algbw: f64,
    pub busbw: f64,
}

impl FromStr for Kind {
    type Err = CollectiveError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = text.replace('_', "-");
        Kind::ALL.iter().copied().find(|k| k.name() == wanted).ok_or_else(|| CollectiveError::UnknownName {
            what: "collective",
            found: text.to_owned(),
            accepted: names(Kind::ALL.iter().map(|k| k.name())),
        })
    }
}

pub(crate) fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    all.collect::<Vec<_>>().join(", ")
}
