//! A schedule with its placement, and the file that holds both with their machine.

use unisono_base::{Diagnostic, Diagnostics};
use unisono_machine::Machine;
use unisono_schedule::Schedule;

use crate::{GridPlacement, Placement};

/// A schedule with the place where its nodes and streams run; no placement where every rank is like every other.
#[derive(Clone, PartialEq, Debug)]
pub struct Placed {
    pub schedule: Schedule,
    pub placement: Option<Placement>,
}

impl Placed {
    /// A schedule on a grid.
    pub fn on_grid(schedule: Schedule, placement: GridPlacement) -> Self {
        Self { schedule, placement: Some(Placement::Grid(placement)) }
    }

    /// A schedule among ranks that no machine tells apart.
    pub fn among_ranks(schedule: Schedule) -> Self {
        Self { schedule, placement: None }
    }

    /// The view of a schedule on a grid.
    pub fn grid(&self) -> Option<OnGrid<'_>> {
        let placement = self.placement.as_ref()?.grid()?;
        Some(OnGrid { schedule: &self.schedule, placement })
    }
}

/// A schedule on a grid. Whether the schedule is right is for `verify`; whether the placement is, for [`OnGrid::check`].
#[derive(Clone, Copy, Debug)]
pub struct OnGrid<'a> {
    pub schedule: &'a Schedule,
    pub placement: &'a GridPlacement,
}

impl OnGrid<'_> {
    /// Returns the errors of the placement.
    pub fn check(&self) -> Vec<Diagnostic> {
        let mut found = Diagnostics::default();
        self.placement.check(self.schedule, &mut found);
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
