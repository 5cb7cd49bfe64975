//! The collectives, by the names users know.

use std::{fmt, str::FromStr};

use crate::CollectiveError;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    Allgather,
    Allreduce,
    Alltoall,
    Barrier,
    Broadcast,
    Gather,
    /// One vector from one rank to the root: the primitive whose time every broadcast is measured against.
    Message,
    Reduce,
    ReduceScatter,
    Scan,
    Scatter,
}

impl Kind {
    pub const ALL: &[Kind] = &[
        Kind::Allgather,
        Kind::Allreduce,
        Kind::Alltoall,
        Kind::Barrier,
        Kind::Broadcast,
        Kind::Gather,
        Kind::Message,
        Kind::Reduce,
        Kind::ReduceScatter,
        Kind::Scan,
        Kind::Scatter,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Allgather => "allgather",
            Kind::Allreduce => "allreduce",
            Kind::Alltoall => "alltoall",
            Kind::Barrier => "barrier",
            Kind::Broadcast => "broadcast",
            Kind::Gather => "gather",
            Kind::Message => "message",
            Kind::Reduce => "reduce",
            Kind::ReduceScatter => "reduce-scatter",
            Kind::Scan => "scan",
            Kind::Scatter => "scatter",
        }
    }

    /// Whether one rank plays a part of its own.
    pub fn has_root(self) -> bool {
        matches!(self, Kind::Broadcast | Kind::Gather | Kind::Message | Kind::Reduce | Kind::Scatter)
    }

    /// Whether elements of different ranks are combined by the operator.
    pub fn reduces(self) -> bool {
        matches!(self, Kind::Allreduce | Kind::Barrier | Kind::Reduce | Kind::ReduceScatter | Kind::Scan)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
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
