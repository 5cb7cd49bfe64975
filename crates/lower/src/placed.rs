//! A schedule with its placement, and the file that holds both with their machine.

use unisono_base::{Diagnostic, Diagnostics};
use unisono_machine::Machine;
use unisono_schedule::{
    Schedule,
    verify::{Expected, Method, Proof, Verified},
};

use crate::{GridPlacement, Placement, ThreadBlocks};

/// A schedule with the placement of its nodes and streams; the placement is None if all ranks are equivalent.
#[derive(Clone, PartialEq, Debug)]
pub struct Placed {
    pub schedule: Schedule,
    pub placement: Option<Placement>,
}

impl Placed {
    pub fn on_grid(schedule: Schedule, placement: GridPlacement) -> Self {
        Self { schedule, placement: Some(Placement::Grid(placement)) }
    }

    /// Makes a schedule without a placement, for a machine on which all ranks are equivalent.
    pub fn among_ranks(schedule: Schedule) -> Self {
        Self { schedule, placement: None }
    }

    /// Returns the schedule on its grid, if it has one.
    pub fn grid(&self) -> Option<OnGrid<'_>> {
        let placement = self.placement.as_ref()?.grid()?;
        Some(OnGrid { schedule: &self.schedule, placement })
    }
}

/// A schedule on a grid. `verify` checks the schedule, and [`OnGrid::check`] the placement.
#[derive(Clone, Copy, Debug)]
pub struct OnGrid<'a> {
    pub schedule: &'a Schedule,
    pub placement: &'a GridPlacement,
}

impl OnGrid<'_> {
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
    /// The thread blocks of an imported plan for GPUs; `.sched` and JSON files do not have them.
    pub blocks: Option<ThreadBlocks>,
}

impl File {
    /// Returns the contradictions of the placement to the schedule and to the machine. If there is a machine and no
    /// placement, all nodes must be ranks.
    pub fn check(&self) -> Vec<Diagnostic> {
        let mut found = Diagnostics::default();
        if let Some(placement) = &self.placement {
            placement.check(&self.schedule, self.machine.as_ref(), &mut found);
        }
        if let (None, Some(machine)) = (&self.placement, &self.machine)
            && let Err(more) = self.schedule.check_ranks_only()
        {
            let message = || format!("{more}; without a placement {} has no place for them", machine.name());
            found.push("placement-machine", None, None, message);
        }
        found.into_vec()
    }
}

/// A file with a proved schedule and a placement that fits its machine. Emitters, and the simulations that users run,
/// accept only this type.
#[derive(Clone, Debug)]
pub struct VerifiedFile<'a> {
    file: &'a File,
    verified: Verified<'a>,
}

impl<'a> VerifiedFile<'a> {
    /// # Errors
    /// Returns the failed proof, with the errors of the placement among its diagnostics.
    pub fn new(file: &'a File, method: Method) -> Result<Self, Box<Proof>> {
        Self::placed(file, Verified::of(&file.schedule, method))
    }

    /// Proves a schedule of messages that are not a collective, whose results are `expected`; see
    /// [`unisono_schedule::verify::verify_with`].
    ///
    /// # Errors
    /// Returns the errors of [`VerifiedFile::new`].
    pub fn of_messages(file: &'a File, method: Method, expected: &[Vec<Expected>]) -> Result<Self, Box<Proof>> {
        Self::placed(file, Verified::of_messages(&file.schedule, method, expected))
    }

    fn placed(file: &'a File, verified: Result<Verified<'a>, Box<Proof>>) -> Result<Self, Box<Proof>> {
        let found = file.check();
        match verified {
            Ok(verified) if found.is_empty() => Ok(Self { file, verified }),
            Ok(verified) => Err(Box::new(Proof { diagnostics: found, ..verified.proof().clone() })),
            Err(mut proof) => {
                proof.diagnostics.extend(found);
                Err(proof)
            }
        }
    }

    pub fn file(&self) -> &'a File {
        self.file
    }

    pub fn verified(&self) -> &Verified<'a> {
        &self.verified
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
