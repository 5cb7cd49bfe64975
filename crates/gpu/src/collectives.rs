//! The collectives of the formats, with their names in files.

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

/// The collectives of a format: all of [`NAMES`] that `lacks` does not list.
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

    /// Returns the collective with a name, if the format has it.
    pub fn kind(&self, name: &str) -> Option<Kind> {
        self.all().find(|(own, _)| *own == name).map(|(_, kind)| kind)
    }

    /// Returns the name of a collective; empty if the format lacks it.
    pub fn name(&self, kind: Kind) -> &'static str {
        self.all().find(|(_, own)| *own == kind).map_or("", |(name, _)| name)
    }

    /// Returns all names as a list for messages.
    pub fn names(&self) -> String {
        self.all().map(|(name, _)| name).collect::<Vec<_>>().join(", ")
    }
}
