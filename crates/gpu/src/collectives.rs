//! The collectives of the formats, by the names that files have for them.

use unisono_collective::Kind;

const NAMES: &[(&str, Kind)] = &[
    ("allgather", Kind::Allgather),
    ("allreduce", Kind::Allreduce),
    ("alltoall", Kind::Alltoall),
    ("broadcast", Kind::Broadcast),
    ("gather", Kind::Gather),
    ("reduce", Kind::Reduce),
    ("reducescatter", Kind::ReduceScatter),
    ("scatter", Kind::Scatter),
];

/// The collectives of a format: all but those that it lacks.
pub struct Collectives {
    pub lacks: &'static [Kind],
}

impl Collectives {
    fn all(&self) -> impl Iterator<Item = (&'static str, Kind)> {
        NAMES.iter().copied().filter(|(_, kind)| !self.lacks.contains(kind))
    }

    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.all().map(|(_, kind)| kind)
    }

    /// Returns the collective with this name in the format, if there is one.
    pub fn kind(&self, name: &str) -> Option<Kind> {
        self.all().find(|(own, _)| *own == name).map(|(_, kind)| kind)
    }

    /// The name of a collective; empty if the format lacks it.
    pub fn name(&self, kind: Kind) -> &'static str {
        self.all().find(|(_, own)| *own == kind).map_or("", |(name, _)| name)
    }

    /// All names, as a message lists them.
    pub fn names(&self) -> String {
        self.all().map(|(name, _)| name).collect::<Vec<_>>().join(", ")
    }
}
