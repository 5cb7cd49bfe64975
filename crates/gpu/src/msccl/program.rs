//! The contents of a file of MSCCL, as it is written: not yet converted to a schedule.

use unisono_collective::Kind;
use unisono_formats::Facts;

use super::ops::{Buffer, Place};
use crate::collectives::Collectives;

/// `type` of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    Send,
    Receive,
    ReceiveCopySend,
    ReceiveReduceSend,
    ReceiveReduceCopy,
    ReceiveReduceCopySend,
    Copy,
    Reduce,
    /// A step that only waits: one of the waits of the next step that does something.
    Nothing,
}

impl Type {
    pub const NAMES: &[(&str, Type)] = &[
        ("cpy", Type::Copy),
        ("nop", Type::Nothing),
        ("r", Type::Receive),
        ("rcs", Type::ReceiveCopySend),
        ("re", Type::Reduce),
        ("rrc", Type::ReceiveReduceCopy),
        ("rrcs", Type::ReceiveReduceCopySend),
        ("rrs", Type::ReceiveReduceSend),
        ("s", Type::Send),
    ];

    pub fn name(self) -> &'static str {
        Type::NAMES.iter().find(|(_, t)| *t == self).map_or("", |(name, _)| name)
    }

    pub fn receives(self) -> bool {
        use Type::{Receive, ReceiveCopySend, ReceiveReduceCopy, ReceiveReduceCopySend, ReceiveReduceSend};
        matches!(self, Receive | ReceiveCopySend | ReceiveReduceSend | ReceiveReduceCopy | ReceiveReduceCopySend)
    }

    pub fn sends(self) -> bool {
        use Type::{ReceiveCopySend, ReceiveReduceCopySend, ReceiveReduceSend, Send};
        matches!(self, Send | ReceiveCopySend | ReceiveReduceSend | ReceiveReduceCopySend)
    }

    /// True where the executor's parser reads the place of its source, and of its destination.
    pub fn checks_source(self) -> bool {
        matches!(self, Self::Send | Self::ReceiveReduceSend | Self::ReceiveReduceCopySend | Self::Copy | Self::Reduce)
    }

    pub fn checks_destination(self) -> bool {
        use Type::{Copy, Receive, ReceiveCopySend, ReceiveReduceCopySend, Reduce};
        matches!(self, Receive | ReceiveCopySend | ReceiveReduceCopySend | Copy | Reduce)
    }

    /// True if it reads its source place.
    pub fn reads(self) -> bool {
        !matches!(self, Type::Receive | Type::ReceiveCopySend | Type::Nothing)
    }

    /// True if it writes its destination.
    pub fn writes(self) -> bool {
        !matches!(self, Type::Send | Type::ReceiveReduceSend | Type::Nothing)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Line of the file, for errors; 0 for what was not read.
    pub line: u32,
    /// The number that the file states, which is its place in the thread block or has no meaning.
    pub number: u32,
    pub kind: Type,
    pub source: Place,
    pub destination: Place,
    /// Chunks.
    pub count: u32,
    /// `(thread block, step)` of the same GPU that must have completed.
    pub waits_for: Option<(u32, u32)>,
    /// True if others wait for it.
    pub is_awaited: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    pub line: u32,
    pub send: Option<u32>,
    pub receive: Option<u32>,
    pub channel: u32,
    pub steps: Vec<Step>,
}

/// Its buffers in chunks, and its thread blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gpu {
    pub line: u32,
    pub input: u32,
    pub output: u32,
    pub scratch: u32,
    pub blocks: Vec<Block>,
}

impl Gpu {
    /// Chunks of a buffer, as the file states them.
    pub fn chunks(&self, buffer: Buffer) -> u32 {
        match buffer {
            Buffer::Input => self.input,
            Buffer::Output => self.output,
            Buffer::Scratch => self.scratch,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    pub name: String,
    pub protocol: String,
    pub channels: u32,
    /// Chunks of the whole vector: of all ranks together where ranks give or keep parts.
    pub chunks: u32,
    pub kind: Kind,
    pub in_place: bool,
    pub out_of_place: bool,
    pub min_bytes: u64,
    pub max_bytes: u64,
    /// Attributes without which the executor does not load the file.
    pub missing: Vec<&'static str>,
    /// Why its parser refuses the text.
    pub refused: Option<String>,
    /// Facts for which the format has no attribute: written as attributes of our own, which the executor ignores.
    pub meaning: Facts,
    pub gpus: Vec<Gpu>,
}

pub const COLLECTIVES: Collectives = Collectives { lacks: &[] };

/// True if the executor counts the bytes, and so the chunks, of all ranks together.
pub fn counts_all_ranks(kind: Kind) -> bool {
    matches!(kind, Kind::Allgather | Kind::Alltoall | Kind::ReduceScatter)
}
