//! Decision tables as files for the user's own communication library (MPI, NCCL or UCC). A target is one file in
//! `targets/`, registered in [`TUNINGS`]; its head states the grammar and the source. A row whose algorithm and
//! parameters have no counterpart in the target is left to the library's own choice, and the export reports the row.
//! Before a file is written, its names and ranges are checked against those in the target's source (for MPICH, against
//! those in the user's library), because a library that reads a wrong name uses its own choice without a message. Begin
//! with [`Tuning::write`], then read `region`, which presents a table to all targets, and one target.

// Numbers too large for their types are refused when they are read; see `unisono_base::narrow`.
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

/// The error that a target cannot write a file for a table, with the reason.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{target} cannot express this table: {reason}")]
pub struct Unsaid {
    pub target: &'static str,
    pub reason: String,
}

/// The text of a file for a library, with notes for its user.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Export {
    pub text: String,
    /// The arguments of `mpiexec` or the variables of the environment with which the library loads the file, named
    /// `FILE`.
    pub load: Vec<String>,
    /// Surprising behaviour of the library, and how the file was checked.
    pub notes: Vec<String>,
    /// The rows with an algorithm that the file leaves to the library's own choice, for all or for some of their sizes,
    /// each with the reason.
    pub left: Vec<String>,
    /// The number of rows with an algorithm that the file expresses at least in part.
    pub rows: usize,
}

impl Export {
    /// Returns the notes and the rows of `left`, as comments of the file.
    fn comments(&self) -> String {
        self.notes.iter().chain(&self.left).map(|line| format!("# {line}\n")).collect()
    }
}

/// The distribution of the ranks of a plan among boxes of GPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spread {
    /// The number of boxes that have ranks.
    pub boxes: u32,
    /// True if all switches between the boxes can reduce.
    pub network_reduces: bool,
}

/// The format of a file by which a library chooses its algorithms.
pub struct Tuning {
    pub name: &'static str,
    pub summary: &'static str,
    /// The source of the names and the grammar.
    pub reference: &'static str,
    /// `(name, value)` of the parameters whose values in the library differ from the defaults of Unisono's algorithms.
    pub params: &'static [(&'static str, &'static str)],
    /// True if the file contains the library's complete table, which [`Self::write`] then needs.
    pub needs_table: bool,
    /// Returns the reason why the library does not run its counterpart of an algorithm on ranks with this distribution;
    /// `None` if the library runs it.
    pub skips: fn(Kind, &str, Spread) -> Option<String>,
    /// Returns the reason why the file has no lines for a collective; `None` if it may have some.
    pub lacks: fn(Kind) -> Option<String>,
    /// Writes the file. Returns an error if no row of the table can be expressed, or if the library's table is needed
    /// and is missing or lacks a name.
    pub write: fn(&DecisionTable, Option<&LibraryTable>) -> Result<Export, Unsaid>,
}

impl Tuning {
    /// The default values, for the fields that few formats set.
    const PLAIN: Self = Self {
        name: "",
        summary: "",
        reference: "",
        params: &[],
        needs_table: false,
        skips: |_, _, _| None,
        lacks: |_| None,
        write: |_, _| Ok(Export::default()),
    };
}
