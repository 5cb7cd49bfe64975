//! Runs of programs of tasks on one rank, and planned calls under way, for a host language with arrays and kernels.
//!
//! The crate decides the order of commands, how each exchange is carried out (its `Way`: a plan, a call of the MPI
//! library, or messages between pairs of ranks), and the lifetime of its memory. Everything else is behind two traits:
//! [`Host`] runs the kernels of a user and the user's functions, and [`MessageLayer`] sends, receives and calls
//! collectives. The extension module implements `Host` for Python, and [`Mpi`] is the message layer of programs. Tests
//! implement both inside one process, with the messages of `unisono_runtime::Mail`.
//!
//! Lifetimes: a message layer may use the memory of an exchange until the exchange is complete. An [`Array`] owns the
//! host's object, and the exchange owns packed data. If a run is dropped with an exchange under way, which happens only
//! after an error that ends all ranks, the memory is never freed.
//!
//! Locks: the program's thread and the thread that advances exchanges during a kernel alternate. The working thread
//! takes the state out of its mutex; meanwhile the other thread finds no state. No mutex is locked during a wait, a
//! call of MPI or code of the host.

mod admission;
mod channel;
mod error;
mod exchange;
mod host;
#[doc(hidden)]
pub mod internals;
mod layer;
mod memory;
mod order;
mod run;
mod state;
mod ways;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use channel::{CallArguments, Channel, Found, LibraryRequest, Program, Side as CallMemory, Signals, finish};
pub use error::RunError;
pub use host::{Host, Objects, Served};
pub use layer::{MessageLayer, Mpi};
pub use memory::{Array, Memory, Rows, layout};
pub use run::{Run, Step};
pub use state::{Act, Command};
pub use ways::{MpiReduction, Reducing, Route, Routes, Way, WorldCall, library_call::Arguments};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
