//! The contents of an MSCCL file, before the conversion to a schedule.

use unisono_collective::Kind;
use unisono_formats::Facts;

use super::ops::{Buffer, Place};
use crate::collectives::Collectives;

/// The `type` of a step.
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
    /// A step that only waits. Its wait belongs to the next step of another type.
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

    /// Returns whether the executor's parser checks that the source is in its buffer.
    pub fn checks_source(self) -> bool {
        matches!(self, Self::Send | Self::ReceiveReduceSend | Self::ReceiveReduceCopySend | Self::Copy | Self::Reduce)
    }

    /// Returns whether the executor's parser checks that the destination is in its buffer.
    pub fn checks_destination(self) -> bool {
        use Type::{Copy, Receive, ReceiveCopySend, ReceiveReduceCopySend, Reduce};
        matches!(self, Receive | ReceiveCopySend | ReceiveReduceCopySend | Copy | Reduce)
    }

    /// Returns whether a step reads its source.
    pub fn reads(self) -> bool {
        !matches!(self, Type::Receive | Type::ReceiveCopySend | Type::Nothing)
    }

    /// Returns whether a step writes its destination.
    pub fn writes(self) -> bool {
        !matches!(self, Type::Send | Type::ReceiveReduceSend | Type::Nothing)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The line in the file, for errors; 0 without a file.
    pub line: u32,
    /// The number `s` in the file. The executor ignores it and runs steps in the order of the file.
    pub number: u32,
    pub kind: Type,
    pub source: Place,
    pub destination: Place,
    /// The length in chunks.
    pub count: u32,
    /// The thread block and the step of the same GPU that must have completed before.
    pub waits_for: Option<(u32, u32)>,
    /// True if other thread blocks may wait for the step.
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

/// A GPU: the lengths of its buffers in chunks, and its thread blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gpu {
    pub line: u32,
    pub input: u32,
    pub output: u32,
    pub scratch: u32,
    pub blocks: Vec<Block>,
}

impl Gpu {
    /// Returns the length of a buffer in chunks, as the file states it.
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
    /// The number of chunks of the whole vector; of all ranks together if [`counts_all_ranks`].
    pub chunks: u32,
    pub kind: Kind,
    pub in_place: bool,
    pub out_of_place: bool,
    pub min_bytes: u64,
    pub max_bytes: u64,
    /// The attributes that the file lacks and the executor needs to load it.
    pub missing: Vec<&'static str>,
    /// The reason why the executor's parser refuses the text; `None` if it does not.
    pub refused: Option<String>,
    /// Facts for which the format has no attribute. They are written as attributes that the executor ignores.
    pub meaning: Facts,
    pub gpus: Vec<Gpu>,
}

pub const COLLECTIVES: Collectives = Collectives { lacks: &[] };

/// Returns whether the executor counts bytes and chunks of all ranks together.
pub fn counts_all_ranks(kind: Kind) -> bool {
    matches!(kind, Kind::Allgather | Kind::Alltoall | Kind::ReduceScatter)
}
