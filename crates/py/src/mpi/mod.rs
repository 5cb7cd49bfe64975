//! Planned collectives on memory of this process: one communicator with plans, one call at a time.
//!
//! The calls of a channel are made in the same order on all ranks. Calls that are to overlap take channels of their
//! own, each with its private communicator, so that their messages never meet.
//!
//! Lifetimes: MPI may write to the memory of a call until the call is over. So a channel with a call under way is held
//! by the list [`under_way::UNDER_WAY`], not by Python alone, together with the arrays, the scratch memory and the
//! communicator. Where Python drops the channel, or a signal ends the wait, later calls of this module carry the call
//! on, and `finish` does when the program ends. What never ends is never freed.
//!
//! Locks: a mutex here is held to move a value in or out, and never while anything waits, calls MPI or runs Python. A
//! thread that works on a channel takes the state out ([`under_way::Work`]); another one finds none there and is
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

/// Whether a switch of the environment is on, and a line about a value that is neither on nor off.
#[pyfunction]
pub fn is_switched_on(name: &str) -> (bool, Option<String>) {
    let mut complaint = None;
    let on = is_on(name, |line| complaint = Some(line.to_owned()));
    (on, complaint)
}

/// The names of the variables that the library for MPI programs reads.
#[pyfunction]
pub fn variables_of_programs() -> [&'static str; 8] {
    OF_PROGRAMS
}

/// A sentence on variables of the environment that nothing reads, and the variable that keeps it once it is printed.
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
