//! A proven schedule in the form that message passing runs: for every rank its lanes of steps over memory, with the
//! messages that must have arrived before a step and those that leave after it.
//!
//! # One schedule for every count
//! A stored schedule is proven over vectors of K *blocks*, and a block stands for any number of elements. That keeps
//! the proof: it is made element by element, every combination it accepts aligns equal input blocks, and the ranks it
//! finds in an output block are those of each element of the block. Two rules say which elements a block has:
//!
//! * [`Blocking::Any`]: of `n` elements block `b` holds `b m .. (b + 1) m`, with `m = ceil(n / K)`, cut off at `n`.
//!   Late blocks may be short or empty. It needs every instruction to keep to blocks of one alignment, and whole
//!   vectors.
//! * [`Blocking::Equal`]: every block has `n / K` elements, and only such counts are served. It fits whatever is
//!   proven, and is how collectives of one piece a rank are stored, mostly with K = 1: then it serves every count as
//!   well.
//!
//! # Messages
//! A stream becomes one message for each stretch that no end of it divides, so an instruction is cut where another one
//! would take only a part of its message; the proof holds at every granularity. Sums of three and more become chains of
//! two. A message lands where a copy would put it, if nothing used that place before; else in a slot of scratch memory.
//!
//! # No deadlock without buffers
//! Streams hold their whole length, but a message of MPI may be passed on only when its receiver has asked for it. In
//! the programs a send ends after its receive was posted, a place that is sent from is overwritten after the send has
//! ended, and a landing slot is posted again after its last use. Slots are
//! added until that order has no cycle; with a slot for each message it cannot have one, because receives are then
//! posted at the start, and all else follows the proven order.
//!
//! # Proven again
//! The proof of the schedule is not carried over. `prove.rs` proves the programs themselves, and only what it proves
//! becomes a [`Stored`]; programs that are read from a file go the same way ([`Stored::check`]).

mod align;
mod condense;
mod cut;
mod in_place;
mod lower;
mod order;
mod prove;
mod raise;
mod rank;
pub(crate) mod runs;
mod touches;
mod windows;

use std::ops::Range;

use unisono_collective::{Collective, Kind, OperatorClass};

use crate::verify::Verified;

pub use condense::condense;
pub use in_place::{in_place, offset};
use prove::used_scratch;
pub use prove::{Unsound, bounds};

/// A place in memory, in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    In(u32),
    Out(u32),
    Tmp(u32),
}

/// One step of a lane: `b` missing copies `a`, both missing their target only sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Blocks of every place of the step.
    pub len: u32,
    /// Input block that the first block belongs to; 0 where blocks are equal.
    pub align: u32,
    pub a: Place,
    pub b: Option<Place>,
    pub to: Option<Place>,
    /// Rows of [`RankProgram::arrivals`] that must have arrived.
    pub arrivals: Range<u32>,
    /// Rows of [`RankProgram::departures`] that leave once the step is done.
    pub departures: Range<u32>,
    /// Rows of [`RankProgram::waits`].
    pub waits: Range<u32>,
}

/// What must have happened before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Wait {
    /// The step with this number is done.
    Step(u32),
    /// The message with this number has left its place.
    Departure(u32),
}

/// A message to receive. A lane posts its arrivals in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival {
    pub peer: u32,
    pub tag: u32,
    pub place: Place,
    pub len: u32,
    pub align: u32,
    /// Rows of [`RankProgram::waits`] before it is posted.
    pub waits: Range<u32>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Departure {
    pub peer: u32,
    pub tag: u32,
    pub place: Place,
    pub len: u32,
    pub align: u32,
}

/// Consecutive rows of the tables that one lane runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lane {
    pub steps: Range<u32>,
    pub arrivals: Range<u32>,
}

/// What one rank does.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RankProgram {
    pub scratch_blocks: u32,
    pub lanes: Vec<Lane>,
    pub steps: Vec<Step>,
    pub arrivals: Vec<Arrival>,
    pub departures: Vec<Departure>,
    pub waits: Vec<Wait>,
}

/// Which elements a block holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blocking {
    Any,
    Equal,
}

/// What a stored schedule is, beside its programs. `collective.elements` counts blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    pub collective: Collective,
    pub blocking: Blocking,
    pub class: OperatorClass,
    /// All ranks end with the same bits, also of floating point.
    pub repeatable: bool,
    /// Ranks may run it with their input in their output, as [`in_place()`] gives it.
    pub in_place: bool,
    /// The class of the results' expression, as the proof names it.
    pub expression: String,
    /// How it was proved: `exact` or `fingerprint`.
    pub method: String,
    /// What made it.
    pub origin: String,
}

impl Facts {
    /// Whether it can run on `elements`, counted as the collective counts.
    pub fn serves(&self, elements: u64) -> bool {
        self.blocking == Blocking::Any || elements.is_multiple_of(u64::from(self.collective.elements.max(1)))
    }
}

/// Proven programs with their facts; see `prove.rs`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    facts: Facts,
    programs: Vec<RankProgram>,
}

impl Stored {
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The program of each rank.
    pub fn programs(&self) -> &[RankProgram] {
        &self.programs
    }
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    #[error(
        "the schedule has {nodes} nodes on {ranks} ranks; a plan for MPI can use ranks only, no switches; choose another algorithm"
    )]
    Switches { nodes: usize, ranks: u32 },
    #[error("a plan serves the collectives of MPI, and a {kind} is none; choose another collective")]
    Kind { kind: &'static str },
    #[error("a schedule over no elements does not show how other counts run; store one over at least 1")]
    Empty,
    #[error("{found} messages go from rank {from} to rank {to} side by side; at most {most} can be distinguished")]
    Tags { from: u32, to: u32, found: u32, most: u32 },
    #[error("rank {rank} needs {found} {what}; at most {most} fit a plan")]
    TooMany { rank: u32, what: &'static str, found: u64, most: u64 },
    #[error(
        "its instructions push and pop streams in pieces that do not fit each other: as messages they are cut into more than {most} parts; use pieces with common ends"
    )]
    Parts { most: u64 },
    #[error("as messages the schedule fails its proof: {0}")]
    NotProved(#[from] Unsound),
}

/// MPI promises tags up to 32767.
const MOST_TAGS: u32 = 32_767;

/// Turns a proven schedule into programs of messages, and proves these in turn.
///
/// # Errors
/// Switches, collectives that no plan serves, tables that grow past their limits.
pub fn store(proven: &Verified) -> Result<Stored, StoreError> {
    let schedule = proven.schedule();
    let c = *schedule.collective();
    if schedule.node_count() != c.ranks as usize {
        return Err(StoreError::Switches { nodes: schedule.node_count(), ranks: c.ranks });
    }
    if c.kind == Kind::Message {
        return Err(StoreError::Kind { kind: c.kind.name() });
    }
    if c.elements == 0 {
        return Err(StoreError::Empty);
    }
    let cut = cut::cut(schedule)?;
    let mut slots = 2;
    loop {
        let mut lowered = lower::lower(schedule, &cut, slots)?;
        // With a slot for each message, receives are posted at the start, and all else follows the proven order.
        let endless = slots >= lowered.most_arrivals;
        if endless || order::order(&lowered.programs).is_ok() {
            let origin = schedule.origin().to_owned();
            lowered.programs.iter_mut().for_each(|p| p.scratch_blocks = used_scratch(p));
            return Ok(Stored::prove(c, lowered.blocking, origin, lowered.programs)?);
        }
        slots = slots.saturating_mul(4);
    }
}
