//! The host of a run, which executes the kernels of a user, and executes collectives by its own plans.

use std::sync::Arc;

use unisono_discover::{Box3, DiscoverError};

use crate::{
    error::RunError,
    state::Command,
    ways::{Reducing, Route, WorldCall},
};

/// The types of the host's objects that a run stores.
pub trait Objects {
    /// The details of a command, for traces and devices.
    type Details: Send;
    /// A collective under way by a plan of the host.
    type Planned: Send;
}

/// The way in which a completed exchange was carried out.
pub enum Served<'a, P> {
    Messages,
    Library,
    Planned(&'a P),
}

/// The functions of the host that a run calls, without holding a lock.
pub trait Host {
    type Objects: Objects;
    type Error: From<RunError>;

    /// Runs the kernel of a task. If `alone` is false, exchanges are under way, and the host may call
    /// [`crate::Run::advance`] in another thread until the kernel returns.
    ///
    /// # Errors
    /// Returns the errors of the kernel.
    fn execute(&self, command: &Command<Self::Objects>, alone: bool) -> Result<(), Self::Error>;

    /// Prepares for a push, an awaited push or a collective, before it reads or writes its array.
    ///
    /// # Errors
    /// Returns the errors of the host.
    fn begins(&self, command: &mut Command<Self::Objects>) -> Result<(), Self::Error>;

    /// Handles the end of an exchange that wrote its array, or of a push whose data were copied. `route` is `None`
    /// unless the command is a collective.
    ///
    /// # Errors
    /// Returns the errors of the host.
    fn ended(
        &self,
        command: &mut Command<Self::Objects>,
        route: Option<&Route>,
        served: Served<'_, <Self::Objects as Objects>::Planned>,
    ) -> Result<(), Self::Error>;

    /// Returns the reduction of an array's partial results.
    ///
    /// # Errors
    /// Returns the errors of the host.
    fn reducing(&self, array: usize) -> Result<Reducing, Self::Error>;

    /// Combines values with the elements of a box of an array, by the operator of the array or, for each value, by the
    /// operator with the code in `codes`.
    ///
    /// # Errors
    /// Returns the errors of the host.
    fn combine(&self, array: usize, part: &Box3, values: &[u8], codes: Option<&[u8]>) -> Result<(), Self::Error>;

    /// Returns the handle of a communicator of some ranks, which call this in the order of their collectives.
    ///
    /// # Errors
    /// Returns the errors of the host.
    fn communicator(&self, participants: &[u32]) -> Result<usize, Self::Error>;

    /// Prepares a collective, and returns whether a plan will carry it out. All ranks must call this together.
    ///
    /// # Errors
    /// Returns the errors of the host.
    fn is_planned(&self, call: &Arc<WorldCall>, array: usize) -> Result<bool, Self::Error>;

    /// Returns whether a planned collective can start now, without waiting for an earlier collective.
    ///
    /// # Errors
    /// Returns the errors of the host.
    fn can_start(&self) -> Result<bool, Self::Error>;

    /// Starts a planned collective. With `in_place` the result is written to the array itself.
    ///
    /// # Errors
    /// Returns the errors of the host.
    fn start(
        &self,
        call: &Arc<WorldCall>,
        array: usize,
        in_place: bool,
    ) -> Result<<Self::Objects as Objects>::Planned, Self::Error>;

    /// Advances a planned collective, and returns whether it is complete.
    ///
    /// # Errors
    /// Returns the errors of the host.
    fn is_over(&self, planned: &mut <Self::Objects as Objects>::Planned) -> Result<bool, Self::Error>;

    /// Ends a planned collective that is complete, after which its result is in the array.
    ///
    /// # Errors
    /// Returns the errors of the host.
    fn finish(&self, planned: &mut <Self::Objects as Objects>::Planned) -> Result<(), Self::Error>;

    /// Converts the error of an exchange whose schedule of messages was not proved, perhaps on this rank alone.
    fn unproved(&self, error: DiscoverError) -> Self::Error;

    /// Runs a long computation that uses no object of the host.
    ///
    /// # Errors
    /// Returns an error if the computation was interrupted or failed.
    fn guarded<R: Send>(&self, act: impl FnOnce() -> R + Send) -> Result<R, Self::Error>;

    /// Runs a function that uses no object of the host, so that other threads of the host may run meanwhile.
    fn unlocked<R: Send>(&self, act: impl FnOnce() -> R + Send) -> R;

    /// Lets the host act while a run waits; called repeatedly.
    ///
    /// # Errors
    /// Returns an error if the program was interrupted.
    fn idle(&self) -> Result<(), Self::Error>;
}
