//! The message layer of a run, and its implementation by MPI.

use std::ffi::c_int;

use unisono_mpi::{Begun, Collective, Comm, Library, Outcome, Shares, ThreadLevel, int, library};

use crate::{
    admission::{Inside, NOT_RUNNING, enter},
    error::RunError,
    ways::library_call::Arguments,
};

/// Messages between ranks, and collectives. Messages of one sender, receiver and tag arrive in the order sent.
pub trait MessageLayer: Send + Sync {
    type Request: Send;
    /// The permission of a thread to call the layer.
    type Inside;

    /// Returns the permission for this thread to call the layer.
    ///
    /// # Errors
    /// Returns an error if the layer has ended or does not permit calls of this thread now.
    fn enter(&self) -> Result<Self::Inside, RunError>;

    /// # Safety
    /// The memory must be valid and unchanged until the message is complete.
    unsafe fn send(&self, from: *const u8, bytes: usize, to: u32, tag: c_int) -> Outcome<Self::Request>;

    /// # Safety
    /// The memory must be valid, and nothing else may read or write it, until the message is complete.
    unsafe fn receive(&self, into: *mut u8, bytes: usize, from: u32, tag: c_int) -> Outcome<Self::Request>;

    /// Starts a collective.
    ///
    /// # Safety
    /// The requirements are those of `begin_collective` of [`Library`].
    unsafe fn collective(&self, call: &Arguments, from: Shares<'_>, to: Shares<'_>) -> Outcome<Self::Request>;

    /// Returns whether a request is complete. Callers must not call this function again for a request after it returned
    /// true.
    fn is_over(&self, request: &mut Self::Request) -> Outcome<bool>;
}

/// A communicator of MPI on which nothing else uses the same tags.
pub struct Mpi {
    library: &'static Library,
    level: ThreadLevel,
    comm: Comm,
}

impl Mpi {
    /// Creates the layer of a communicator, given by its handle.
    ///
    /// # Errors
    /// Returns an error if MPI is not loaded, or not running.
    pub fn on(comm: usize) -> Result<Self, RunError> {
        let library = loaded()?;
        if !library.is_running() {
            return Err(RunError::refused(NOT_RUNNING));
        }
        Ok(Self { library, level: library.thread_level()?, comm: library.constants.handle(comm) })
    }
}

/// Returns the MPI library of the process.
///
/// # Errors
/// Returns an error if no MPI library is loaded.
pub fn loaded() -> Result<&'static Library, RunError> {
    library().ok_or_else(|| RunError::input("no MPI library is loaded in this process"))
}

impl MessageLayer for Mpi {
    type Request = Begun;
    type Inside = Inside;

    fn enter(&self) -> Result<Inside, RunError> {
        enter(self.library, self.level)
    }

    /// # Safety
    /// As the trait states.
    unsafe fn send(&self, from: *const u8, bytes: usize, to: u32, tag: c_int) -> Outcome<Begun> {
        // SAFETY: as the caller guarantees.
        unsafe { self.library.begin_send(from, bytes, to, tag, self.comm) }
    }

    /// # Safety
    /// As the trait states.
    unsafe fn receive(&self, into: *mut u8, bytes: usize, from: u32, tag: c_int) -> Outcome<Begun> {
        // SAFETY: as the caller guarantees.
        unsafe { self.library.begin_receive(into, bytes, from, tag, self.comm) }
    }

    /// # Safety
    /// As the trait states.
    unsafe fn collective(&self, call: &Arguments, from: Shares<'_>, to: Shares<'_>) -> Outcome<Begun> {
        let c = &self.library.constants;
        let (datatype, op) = call.reduction.map_or((c.byte, 0), |(datatype, op)| (c.handle(datatype), c.handle(op)));
        let (function, comm, root) = (call.function, c.handle(call.comm), int(call.root)?);
        // SAFETY: as the caller guarantees.
        unsafe { self.library.begin_collective(&Collective { function, comm, datatype, op, root }, from, to) }
    }

    fn is_over(&self, request: &mut Begun) -> Outcome<bool> {
        self.library.is_over(request)
    }
}
