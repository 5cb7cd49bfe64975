//! Decision tables as files for the user's own library. A target is one file in `targets/`, registered in [`TUNINGS`];
//! its head states the grammar and the source. A row whose algorithm or parameters have no counterpart under the names
//! of the target is left to the library's own choice, and the export reports it. Names and ranges are checked against
//! those of the library before they are written, because a library that reads a wrong name falls back in silence.
//! Begin with [`Tuning::write`], then read `region`, by which all targets read a table, and one target.

// A number that does not fit is refused where it enters; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

#[doc(hidden)]
pub mod internals;
mod mpich_table;
mod openmpi;
mod region;
mod targets;

use serde::Serialize;
use unisono_collective::{DecisionTable, Kind};

pub use mpich_table::LibraryTable;
pub use targets::TUNINGS;

/// The reason for which a target can express no row of a table.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{target} cannot express this table: {reason}")]
pub struct Unsaid {
    pub target: &'static str,
    pub reason: String,
}

/// A file, with notes for its user.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Export {
    pub text: String,
    /// The arguments of `mpiexec` or the variables of the environment with which the library loads the file.
    pub load: Vec<String>,
    /// Behaviour of the library that surprises its users.
    pub notes: Vec<String>,
    /// Rows that are left to the library's own choice, with the reason.
    pub left: Vec<String>,
    /// Rows that the file serves.
    pub rows: usize,
}

impl Export {
    /// The notes and the rows that are left, as comments of the file.
    fn comments(&self) -> String {
        self.notes.iter().chain(&self.left).map(|line| format!("# {line}\n")).collect()
    }
}

/// The spread of the ranks of a plan over boxes of GPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spread {
    /// The number of boxes that have ranks.
    pub boxes: u32,
    /// True if all switches between the boxes reduce.
    pub network_reduces: bool,
}

/// One target.
pub trait Tuning: Sync {
    fn name(&self) -> &'static str;
    fn summary(&self) -> &'static str;
    /// The source of names and grammar.
    fn reference(&self) -> &'static str;
    /// True if the file is the library's complete table with our rows in it, so that this table is needed.
    fn needs_table(&self) -> bool {
        false
    }
    /// Returns the reason why the library does not run its counterpart of an algorithm on ranks that are spread like
    /// this; `None` if it does.
    fn skips(&self, _kind: Kind, _algorithm: &str, _spread: Spread) -> Option<String> {
        None
    }
    /// # Errors
    /// Returns an error if no row of the table can be expressed, or if the library's table is missing or lacks a name.
    fn write(&self, table: &DecisionTable, library: Option<&LibraryTable>) -> Result<Export, Unsaid>;
}
