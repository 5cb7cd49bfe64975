//! Planned collectives on arrays of Python: conversions between Python and `unisono_taskrun`, which runs the calls.

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

/// Returns true if a switch of the environment is on, and a message if its value means neither on nor off.
#[pyfunction]
pub fn is_switched_on(name: &str) -> (bool, Option<String>) {
    let mut complaint = None;
    let on = is_on(name, |line| complaint = Some(line.to_owned()));
    (on, complaint)
}

/// Returns the names of the environment variables that the preload library reads.
#[pyfunction]
pub fn variables_of_programs() -> [&'static str; 10] {
    OF_PROGRAMS
}

/// Returns a sentence about unknown environment variables, and the name of the variable that records the printed
/// sentence; `None` if no sentence is to be printed.
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
