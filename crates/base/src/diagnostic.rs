//! Findings of a checker: a stable code, the location in the schedule, and one sentence.

use std::fmt;

use serde::Serialize;

use crate::{InstrId, NodeId};

/// One finding. `rank` and `instruction` are the ids of the node and of the `combine` instruction to which it applies,
/// as in the text form of a schedule. `None` if it applies to no node or no instruction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Diagnostic {
    pub code: &'static str,
    pub rank: Option<u32>,
    pub instruction: Option<u32>,
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// Collects findings. It keeps the first `Diagnostics::KEPT` findings and counts the rest, so that a schedule with many
/// faults does not fill the memory.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    kept: Vec<Diagnostic>,
    left_out: u64,
}

impl Diagnostics {
    pub const KEPT: usize = 64;

    pub fn push(
        &mut self,
        code: &'static str,
        node: Option<NodeId>,
        instr: Option<InstrId>,
        message: impl FnOnce() -> String,
    ) {
        if self.kept.len() < Self::KEPT {
            self.kept.push(Diagnostic {
                code,
                rank: node.map(|n| n.0),
                instruction: instr.map(|i| i.0),
                message: message(),
            });
        } else {
            self.left_out += 1;
        }
    }

    /// Adds a finding of another checker.
    pub fn add(&mut self, finding: Diagnostic) {
        if self.kept.len() < Self::KEPT {
            self.kept.push(finding);
        } else {
            self.left_out += 1;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns true if findings were dropped, so that a checker may stop.
    pub fn is_full(&self) -> bool {
        self.left_out > 0
    }

    pub fn has(&self, code: &str) -> bool {
        self.kept.iter().any(|d| d.code == code)
    }

    /// Returns the findings. If some were dropped, an additional entry with the code `more` states their number.
    pub fn into_vec(mut self) -> Vec<Diagnostic> {
        if self.left_out > 0 {
            self.kept.push(Diagnostic {
                code: "more",
                rank: None,
                instruction: None,
                message: format!("{} more findings left out", self.left_out),
            });
        }
        self.kept
    }
}
