//! A request that the program started by the MPI library itself, in the list of calls under way.

use std::{any::Any, sync::Arc};

use unisono_mpi::{Begun, Library, ThreadLevel};

use super::{CALLS, MpiCall, Phase, Program, Slot, carry_on, poll};
use crate::{admission::enter, error::RunError, layer::loaded};

/// A started collective of the library. If the host drops this value before the collective is complete, other calls of
/// this crate complete it.
pub struct LibraryRequest {
    library: &'static Library,
    level: ThreadLevel,
    slot: Arc<Slot<MpiCall>>,
}

impl LibraryRequest {
    /// Takes ownership of a request by its handle, and of the object of the host that owns its memory. The program must
    /// not test or free the request.
    ///
    /// # Errors
    /// Returns an error if MPI is not loaded, or fails.
    pub fn new(handle: usize, held: Box<dyn Any + Send>) -> Result<Self, RunError> {
        let library = loaded()?;
        let (level, slot) = (library.thread_level()?, Slot::new());
        let mut work = slot.work().expect("nobody else knows the new slot");
        let state = work.state();
        state.plans.push(Some(MpiCall::Library(library, Begun::of_program(handle))));
        state.held.push(held);
        state.phase = Phase::Running(0);
        drop(work);
        CALLS.begin(&slot);
        Ok(Self { library, level, slot })
    }

    /// Advances the call and returns whether it is complete, like `poll` of a channel.
    ///
    /// # Errors
    /// Returns an error if MPI has ended, or fails.
    pub fn poll<P: Program>(&self, program: &P) -> Result<bool, P::Error> {
        let _inside = enter(self.library, self.level)?;
        carry_on(program)?;
        poll(program, &self.slot)
    }
}

impl Drop for LibraryRequest {
    fn drop(&mut self) {
        CALLS.leave(&self.slot);
    }
}
