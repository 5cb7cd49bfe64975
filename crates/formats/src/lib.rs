//! The interfaces of formats, and the formats that are plain text of a schedule or of its tasks. An [`Emitter`] writes
//! a proved schedule for another tool without altering its meaning, or refuses it with the reason; an [`Importer`]
//! reads the schedule of another tool. Each folder here is a format: GOAL, Chakra traces, registers of switches.
//! Formats that contain code are the crates `csl` and `gpu`, and `emit` lists them all. Begin with [`Emitter`], then
//! read [`registers`], which is written and read.

// A number that does not fit is rejected on input; see `unisono_base::narrow`.
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

/// Reason why a target cannot express a schedule: the fact found in the schedule, and the accepted facts.
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

/// Contents of a file.
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
    /// Returns the text; `None` for bytes.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bytes(_) => None,
        }
    }
}

/// Files, each as its relative path and its contents.
pub type Files = Vec<(String, Contents)>;

/// Name of a format, its source, and a sentence about it, as lists for users show them.
#[derive(Clone, Copy, Serialize)]
pub struct About {
    pub name: &'static str,
    pub reference: &'static str,
    pub summary: &'static str,
}

/// An output format.
pub trait Emitter: Sync {
    fn about(&self) -> About;

    fn name(&self) -> &'static str {
        self.about().name
    }

    /// Returns the parameters, as names and values, that algorithms use for this target by default.
    fn params(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns a sentence about properties of the target that the plan of a collective does not show, such as work that
    /// is missing in predictions, or results whose bits differ. Returns `None` if there is no such fact.
    fn note(&self, _collective: &Collective) -> Option<String> {
        None
    }

    /// Returns the sentence of [`Self::note`] if it applies to the written files.
    fn note_of(&self, collective: &Collective, _texts: &[String]) -> Option<String> {
        self.note(collective)
    }

    /// Returns the placement that the target requires for a schedule, if it differs from the file's. The emitted code,
    /// its simulation and its predicted time use this placement.
    ///
    /// # Errors
    /// Returns the reason why no placement is possible.
    fn adapt(&self, _file: &File) -> Result<Option<Placement>, Refused> {
        Ok(None)
    }

    /// Checks that the target can express a schedule. Targets whose files take long to write override this function by
    /// a check that does not write them.
    ///
    /// # Errors
    /// Returns the reason why the target cannot express the schedule.
    fn accepts(&self, proven: &VerifiedFile) -> Result<(), Refused> {
        self.emit(proven).map(drop)
    }

    /// Writes the files of a proved schedule, with the placement that [`Self::adapt`] returns, if any.
    ///
    /// # Errors
    /// Returns the reason why the target cannot express the schedule.
    fn emit(&self, proven: &VerifiedFile) -> Result<Files, Refused>;
}

/// Facts that an imported file does not state; `None` means the default of the file or of the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// Number of elements, as MPI counts them ([`Collective::count`]).
    pub elements: Option<u64>,
    pub dtype: Option<Dtype>,
    pub operator: Option<Operator>,
    pub root: Option<u64>,
}

impl Facts {
    /// Returns the facts of a schedule's collective.
    pub fn of(schedule: &Schedule) -> Self {
        let c = schedule.collective();
        let root = c.kind.has_root().then(|| u64::from(c.root));
        Self { elements: Some(c.count()), dtype: Some(c.dtype), operator: Some(c.operator), root }
    }
}

/// An error in a file, with its line; line 0 means the file as a whole.
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

/// An input format.
pub trait Importer: Sync {
    fn about(&self) -> About;

    fn name(&self) -> &'static str {
        self.about().name
    }

    /// Returns the schedule that a file describes, with its placement and machine if the file has them; `verify`
    /// decides whether it is correct.
    ///
    /// # Errors
    /// Returns an error of one sentence, with the number of the line.
    fn import(&self, text: &str, facts: &Facts) -> Result<File, ImportError>;
}
