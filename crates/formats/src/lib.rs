//! The interfaces of formats, and the formats that are plain text of a schedule or of its tasks. An [`Emitter`] writes
//! a proved schedule for another tool, or refuses it with the reason, and never alters its meaning; an [`Importer`]
//! reads the schedule of another tool. A format is one folder here: GOAL, traces of Chakra, registers of switches.
//! Formats with code of their own are the crates `csl` and `gpu`, and `emit` lists them all. Begin with [`Emitter`],
//! then read [`registers`], which is written and read.

// A number that does not fit is refused where it enters; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

pub mod chakra;
pub mod goal;
#[doc(hidden)]
pub mod internals;
pub mod registers;

use std::fmt::Display;

use serde::Serialize;
use unisono_collective::{Collective, Dtype, Operator};
use unisono_lower::{File, Placement, VerifiedFile};
use unisono_schedule::Schedule;

/// Why a target cannot express a schedule: what was found, and what the target accepts.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{target} cannot express this schedule: {reason}")]
pub struct Refused {
    pub target: &'static str,
    pub reason: String,
}

impl Refused {
    pub fn new(target: &'static str, reason: impl Display) -> Self {
        Self { target, reason: reason.to_string() }
    }
}

/// The contents of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Contents {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<String> for Contents {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Contents {
    /// The text; `None` of bytes.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bytes(_) => None,
        }
    }
}

/// Files by relative path.
pub type Files = Vec<(String, Contents)>;

/// The name of a format, its source, and a sentence on it, as lists for users show them.
#[derive(Clone, Copy, Serialize)]
pub struct About {
    pub name: &'static str,
    pub reference: &'static str,
    pub summary: &'static str,
}

/// One output format.
pub trait Emitter: Sync {
    fn about(&self) -> About;

    fn name(&self) -> &'static str {
        self.about().name
    }

    /// Values of parameters that algorithms take for this target, where the user gives no others.
    fn params(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns a sentence on work of the target that the plan of a collective leaves out: work that predictions
    /// do not count, or other bits.
    fn note(&self, _collective: &Collective) -> Option<String> {
        None
    }

    /// Returns the sentence of [`Self::note`] if it is true of the written files.
    fn note_of(&self, collective: &Collective, _texts: &[String]) -> Option<String> {
        self.note(collective)
    }

    /// The placement in which the target has a schedule, if it is another one than the file's. The emitted code, its
    /// simulation and its predicted time are those of this placement.
    ///
    /// # Errors
    /// The reason why the target has none.
    fn adapt(&self, _file: &File) -> Result<Option<Placement>, Refused> {
        Ok(None)
    }

    /// Returns whether the target can express a schedule, without writing files where that takes long.
    ///
    /// # Errors
    /// The reason why it cannot.
    fn accepts(&self, proven: &VerifiedFile) -> Result<(), Refused> {
        self.emit(proven).map(drop)
    }

    /// The files, or why there are none. What was written is checked before it is handed out. An emitter that adapts
    /// placements adapts this one too.
    ///
    /// # Errors
    /// The reason why the target cannot express the schedule.
    fn emit(&self, proven: &VerifiedFile) -> Result<Files, Refused>;
}

/// Facts that an imported file leaves open; `None` takes the default of the file or of the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// The elements, as MPI counts them.
    pub elements: Option<u64>,
    pub dtype: Option<Dtype>,
    pub operator: Option<Operator>,
    pub root: Option<u64>,
}

impl Facts {
    /// Asks for the collective of a schedule.
    pub fn of(schedule: &Schedule) -> Self {
        let c = schedule.collective();
        let root = c.kind.has_root().then(|| u64::from(c.root));
        Self { elements: Some(c.count()), dtype: Some(c.dtype), operator: Some(c.operator), root }
    }
}

/// The fault of a file and its line; line 0 is the file as a whole.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{message}", if *.line == 0 { String::new() } else { format!("line {}: ", .line) })]
pub struct ImportError {
    pub line: u32,
    pub message: String,
}

impl ImportError {
    pub fn new(line: u32, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

impl From<unisono_base::xml::XmlError> for ImportError {
    fn from(error: unisono_base::xml::XmlError) -> Self {
        Self { line: error.line, message: error.message }
    }
}

/// One input format.
pub trait Importer: Sync {
    fn about(&self) -> About;

    fn name(&self) -> &'static str {
        self.about().name
    }

    /// The schedule that a file describes, with its placement and machine where the file has them; whether it is right
    /// is for `verify`.
    ///
    /// # Errors
    /// One sentence, with the line.
    fn import(&self, text: &str, facts: &Facts) -> Result<File, ImportError>;
}
