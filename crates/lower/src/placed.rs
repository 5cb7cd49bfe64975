//! A schedule with its placement, and the file that holds both with their machine.

use unisono_base::{Diagnostic, Diagnostics};
use unisono_machine::Machine;
use unisono_schedule::Schedule;

use crate::{GridPlacement, Placement};

/// A schedule on a grid. Whether the schedule is right is for `verify`; whether the placement is, for [`Placed::check`].
#[derive(Clone, PartialEq, Debug)]
pub struct Placed {
    pub schedule: Schedule,
    pub placement: GridPlacement,
}

impl Placed {
    /// Returns the errors of the placement.
    pub fn check(&self) -> Vec<Diagnostic> {
        let mut found = Diagnostics::default();
        self.placement.check(&self.schedule, &mut found);
        found.into_vec()
    }
}

/// The contents of a `.sched` or JSON file.
#[derive(Clone, PartialEq, Debug)]
pub struct File {
    pub schedule: Schedule,
    pub placement: Option<Placement>,
    pub machine: Option<Machine>,
}

impl File {
    /// Returns the errors of the placement, on its own and on the machine.
    pub fn check(&self) -> Vec<Diagnostic> {
        let mut found = Diagnostics::default();
        if let Some(placement) = &self.placement {
            placement.check(&self.schedule, self.machine.as_ref(), &mut found);
        }
        found.into_vec()
    }
}

#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum FileError {
    #[error("{origin}, {error}")]
    Text { origin: String, error: unisono_schedule::text::ParseError },
    #[error("{origin}: {message}")]
    Json { origin: String, message: String },
    #[error(transparent)]
    Machine(#[from] unisono_machine::MachineError),
}
