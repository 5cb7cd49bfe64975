//! Planned collectives on memory of this process: one communicator with plans, one call at a time.
//!
//! All ranks make the calls of a channel in the same order. Overlapping calls use separate channels, whose private
//! communicators keep their messages apart.
//!
//! Lifetimes: MPI may write to the memory of a call until the call is complete. So the list [`under_way::UNDER_WAY`]
//! holds a channel with a call under way, with its arrays, scratch memory and communicator. If Python drops the
//! channel, or a signal ends the wait, later calls of this module advance the call, and `finish` does at the end of the
//! program. A call that never completes is never freed.
//!
//! Locks: a mutex here is locked only to move a value in or out, never during a wait, a call of MPI or Python code. A
//! thread that works on a channel takes the state out ([`under_way::Work`]); another thread then finds no state and is
//! refused.

mod channel;
mod threads;
mod under_way;

use std::{
    fmt::Display,
    sync::{Mutex, MutexGuard, PoisonError},
};

use pyo3::{PyErr, pyfunction};
use unisono_mpi::{Failed, OF_PROGRAMS, REPORTED, is_on};

pub use channel::Channel;
pub use threads::{NOT_RUNNING, enter};

use crate::errors::Error;

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether a switch of the environment is on, and a message about a value that means neither on nor off.
#[pyfunction]
pub fn is_switched_on(name: &str) -> (bool, Option<String>) {
    let mut complaint = None;
    let on = is_on(name, |line| complaint = Some(line.to_owned()));
    (on, complaint)
}

/// The names of the variables that the library for MPI programs reads.
#[pyfunction]
pub fn variables_of_programs() -> [&'static str; 10] {
    OF_PROGRAMS
}

/// Returns a sentence about unknown environment variables, and the variable that records that it was printed.
#[pyfunction]
pub fn unknown_variables() -> Option<(String, &'static str)> {
    Some((unisono_mpi::unknown_variables()?, REPORTED))
}

pub fn mpi_error(Failed(code): Failed) -> PyErr {
    Error::new_err(format!("MPI ended a call with error code {code}"))
}

pub fn refused(message: impl Display) -> PyErr {
    Error::new_err(message.to_string())
}
