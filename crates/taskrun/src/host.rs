//! The host of a run: the kernels of a user, and exchanges that the host carries out itself.

use std::sync::Arc;

use unisono_discover::{Box3, DiscoverError};

use crate::{
    error::RunError,
    state::Command,
    ways::{Reducing, Route, WorldCall},
};

/// The objects of a host that a run keeps.
pub trait Objects {
    /// The details of a command, for traces and devices.
    type Details: Send;
    /// A collective by a plan of the host.
    type Planned: Send;
}

/// The carrier of an exchange that is complete.
pub enum Served<'a, P> {
    Messages,
    Library,
    Planned(&'a P),
}

/// The functions of the host that a run calls. No lock is held meanwhile.
pub trait Host {
    type Objects: Objects;
    type Error: From<RunError>;

    /// Runs the kernel of a task. If it is not `alone`, exchanges are under way, and the host may call
    /// [`crate::Run::advance`] in another thread until it returns.
    ///
    /// # Errors
    /// Those of the kernel.
    fn execute(&self, command: &Command<Self::Objects>, alone: bool) -> Result<(), Self::Error>;

    /// Called before an exchange reads its array.
    ///
    /// # Errors
    /// Those of the host.
    fn begins(&self, command: &mut Command<Self::Objects>) -> Result<(), Self::Error>;

    /// Called after an exchange wrote its array, or after the data of a push was copied. Collectives have a route.
    ///
    /// # Errors
    /// Those of the host.
    fn ended(
        &self,
        command: &mut Command<Self::Objects>,
        route: Option<&Route>,
        served: Served<'_, <Self::Objects as Objects>::Planned>,
    ) -> Result<(), Self::Error>;

    /// Returns the combination of an array's partial results.
    ///
    /// # Errors
    /// Those of the host.
    fn reducing(&self, array: usize) -> Result<Reducing, Self::Error>;

    /// Combines values with the elements of a box of an array, by the operator of the array or by the codes of the
    /// values' operators.
    ///
    /// # Errors
    /// Those of the host.
    fn combine(&self, array: usize, part: &Box3, values: &[u8], codes: Option<&[u8]>) -> Result<(), Self::Error>;

    /// Returns the handle of a communicator of some ranks, which call this in the order of their collectives.
    ///
    /// # Errors
    /// Those of the host.
    fn communicator(&self, participants: &[u32]) -> Result<usize, Self::Error>;

    /// Prepares a collective, and returns whether a plan carries it out. All ranks call it together.
    ///
    /// # Errors
    /// Those of the host.
    fn is_planned(&self, call: &Arc<WorldCall>, array: usize) -> Result<bool, Self::Error>;

    /// Returns whether a planned collective can begin without waiting for an earlier one.
    ///
    /// # Errors
    /// Those of the host.
    fn can_start(&self) -> Result<bool, Self::Error>;

    /// Begins a planned collective. With `in_place` the result goes to its place in the array.
    ///
    /// # Errors
    /// Those of the host.
    fn start(
        &self,
        call: &Arc<WorldCall>,
        array: usize,
        in_place: bool,
    ) -> Result<<Self::Objects as Objects>::Planned, Self::Error>;

    /// Advances a planned collective, and returns whether it is over.
    ///
    /// # Errors
    /// Those of the host.
    fn is_over(&self, planned: &mut <Self::Objects as Objects>::Planned) -> Result<bool, Self::Error>;

    /// Completes a planned collective that is over.
    ///
    /// # Errors
    /// Those of the host.
    fn finish(&self, planned: &mut <Self::Objects as Objects>::Planned) -> Result<(), Self::Error>;

    /// Returns the error for a proof of messages that failed, perhaps on this rank alone.
    fn unproved(&self, error: DiscoverError) -> Self::Error;

    /// Runs a long computation that uses no object of the host.
    ///
    /// # Errors
    /// The computation was interrupted.
    fn guarded<R: Send>(&self, act: impl FnOnce() -> R + Send) -> Result<R, Self::Error>;

    /// Runs a function that uses no object of the host, so that other threads of the host may run meanwhile.
    fn unlocked<R: Send>(&self, act: impl FnOnce() -> R + Send) -> R;

    /// Called repeatedly by a run that waits.
    ///
    /// # Errors
    /// The program was interrupted.
    fn idle(&self) -> Result<(), Self::Error>;
}
