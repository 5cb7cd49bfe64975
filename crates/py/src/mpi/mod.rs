//! Planned collectives on memory of this process: conversions between Python and `unisono_taskrun`, which keeps the
//! calls under way.

mod channel;

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::{PyErr, pyfunction};
use unisono_mpi::{OF_PROGRAMS, REPORTED, is_on};
use unisono_taskrun::RunError;

pub use channel::{Channel, LibraryCall};

use crate::errors::{Error, input};

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

pub fn run_error(error: RunError) -> PyErr {
    match error {
        RunError::Input(_) => input(error),
        RunError::Refused(_) | RunError::Failed(_) | RunError::Region => Error::new_err(error.to_string()),
    }
}
