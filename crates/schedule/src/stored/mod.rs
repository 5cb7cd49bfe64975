//! A proven schedule as programs for message passing: each rank has lanes of steps over memory. A step starts after its
//! messages have arrived; other messages may leave after it.
//!
//! # One schedule for every count
//! A stored schedule is proven over vectors of K *blocks*, and a block represents any number of elements. The proof
//! remains valid: it is made element by element, every accepted combination aligns equal input blocks, and the ranks
//! that contribute to an output block contribute to each of its elements. Two rules define the elements of a block:
//!
//! * [`Blocking::Any`]: of `n` elements, block `b` holds the elements `b m .. (b + 1) m` with `m = ceil(n / K)`, cut
//!   off at `n`. The last blocks may be short or empty. This requires whole vectors, and that every instruction uses
//!   blocks of one alignment.
//! * [`Blocking::Equal`]: every block has `n / K` elements, and only multiples of K are served. All proven schedules
//!   can use this rule. Collectives with one piece per rank are stored with it, mostly with K = 1, which serves every
//!   count.
//!
//! # Messages
//! Both ends of a stream are cut wherever one of them is cut, and each piece becomes one message. So an instruction is
//! cut if another instruction would take only a part of its message. The proof holds at every granularity. Sums of
//! three or more sources become chains of two. A message is received directly at the destination of a copy if the copy
//! is the first access of its rank to this destination, and no other lane accesses it. Otherwise the message is
//! received in a slot of scratch memory.
//!
//! # No deadlock without buffers
//! Streams can hold their whole length, but MPI may delay a message until its receive is posted. In the programs a send
//! ends only after its receive was posted, memory is overwritten only after sends from it have ended, and a slot is
//! reused only after its last use. Slots are added until this order has no cycle. With a slot for each message there is
//! no cycle, because all receives are then posted at the start, and all other events follow the proven order.
//!
//! # Proven again
//! The proof of the schedule does not carry over to the programs. `prove.rs` proves the programs themselves, and only
//! proven programs become a [`Stored`]; [`Stored::check`] does the same for programs from a file.

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

use crate::verify::{Expression, Verified};

pub use condense::{condense, packed, unpacked};
pub use in_place::{in_place, offset};
use prove::used_scratch;
pub use prove::{Unsound, bounds};

/// A position in a rank's input, output or scratch memory, in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    In(u32),
    Out(u32),
    Tmp(u32),
}

/// One step of a lane: `to = a + b`, where `+` is the operator. If `b` is `None`, the step copies `a`; if `b` and `to`
/// are `None`, it only sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Number of blocks of each of the step's places.
    pub len: u32,
    /// Index of the input block that the step's first block holds, or is computed from; 0 for [`Blocking::Equal`].
    pub align: u32,
    pub a: Place,
    pub b: Option<Place>,
    pub to: Option<Place>,
    /// Rows of [`RankProgram::arrivals`] that must have arrived before the step.
    pub arrivals: Range<u32>,
    /// Rows of [`RankProgram::departures`] that are sent after the step.
    pub departures: Range<u32>,
    /// Rows of [`RankProgram::waits`] that must have happened before the step.
    pub waits: Range<u32>,
}

/// An event that another event waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Wait {
    /// The step in this row has completed.
    Step(u32),
    /// The message in this row has been sent from its place, which may now be overwritten.
    Departure(u32),
}

/// A message to receive. A lane posts its arrivals in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival {
    pub peer: u32,
    pub tag: u32,
    pub place: Place,
    pub len: u32,
    pub align: u32,
    /// Rows of [`RankProgram::waits`] that must have happened before the receive is posted.
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

/// Consecutive rows of the program's tables that belong to one lane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lane {
    pub steps: Range<u32>,
    pub arrivals: Range<u32>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RankProgram {
    pub scratch_blocks: u32,
    pub lanes: Vec<Lane>,
    pub steps: Vec<Step>,
    pub arrivals: Vec<Arrival>,
    pub departures: Vec<Departure>,
    pub waits: Vec<Wait>,
}

/// Rule that determines the elements of a block; the head of this module defines both rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blocking {
    Any,
    Equal,
}

/// Properties of a stored schedule, without its programs. `collective.elements` counts blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    pub collective: Collective,
    pub blocking: Blocking,
    pub class: OperatorClass,
    /// True if all ranks whose results must be equal get the same bits, also in floating point, except for the bits of
    /// a NaN.
    pub repeatable: bool,
    /// True if the programs of [`in_place()`] exist, which run with the input in the output.
    pub in_place: bool,
    /// Digest of the results' expressions ([`crate::verify::Proof::expression_class`]). Schedules of one collective
    /// with equal digests give the same bits, under the conditions of `repeatable`. Empty if the proof has no digest.
    pub expression: String,
    /// Method of the proof: `exact` or `fingerprint`.
    pub method: String,
    pub origin: String,
}

impl Facts {
    /// Returns true if the schedule can run on `elements` elements of the collective.
    pub fn serves(&self, elements: u64) -> bool {
        self.blocking == Blocking::Any || elements.is_multiple_of(u64::from(self.collective.elements.max(1)))
    }
}

/// Expressions of the elements of a result, as found by the proof of the programs. A file does not contain them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Elements {
    /// The digest of the expression of all elements, for every served count. `None` if elements have different
    /// expressions, or if the expression has too many combinations.
    pub class: Option<String>,
    /// The expression itself ([`crate::verify::Proof::element_expression`]).
    pub expression: Option<Expression>,
    /// Two elements (blocks) with different expressions, described for users; `None` if there are none.
    pub unlike: Option<String>,
}

/// Proven programs with their facts; see `prove.rs`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    facts: Facts,
    elements: Elements,
    programs: Vec<RankProgram>,
}

impl Stored {
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    pub fn elements(&self) -> &Elements {
        &self.elements
    }

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

/// The greatest tag that every MPI library accepts. Messages use smaller tags.
const MOST_TAGS: u32 = 32_767;

/// Converts a proven schedule into programs of messages, and proves these programs.
///
/// # Errors
/// Returns an error for schedules with switches, of [`Kind::Message`] or without elements, if tables exceed their
/// limits, or if the programs cannot be proved.
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
        // With a slot for each message, receives are posted at the start, and all other events follow the proven order.
        let endless = slots >= lowered.most_arrivals;
        let order = order::order(&lowered.programs);
        if endless || order.is_ok() {
            let origin = schedule.origin().to_owned();
            lowered.programs.iter_mut().for_each(|p| p.scratch_blocks = used_scratch(p));
            return Ok(Stored::prove(c, lowered.blocking, origin, lowered.programs, order.ok())?);
        }
        slots = slots.saturating_mul(4);
    }
}
