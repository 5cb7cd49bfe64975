//! Named exceptions, and the only place that converts Rust errors and panics to them.

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use pyo3::{create_exception, exceptions::PyException, prelude::*};
use serde::Serialize;
use unisono_base::{
    Diagnostic,
    interrupt::{Interrupted, watch},
    limits::{OverLimit, counted},
    parallel::Caller,
};
use unisono_plan::{PlanError, RunError};

use crate::limits;

create_exception!(unisono, Error, PyException, "Base of all errors of unisono.");
create_exception!(unisono, InputError, Error, "Wrong input: the message names the value and what is accepted.");
create_exception!(unisono, UnsupportedError, Error, "A valid request that Unisono cannot fulfil, with the reason.");
create_exception!(
    unisono,
    NotExpressibleError,
    UnsupportedError,
    "A format of code cannot express it, with the reason."
);
create_exception!(unisono, VerifyError, Error, "A schedule failed its proof; `.diagnostics` lists the findings.");
create_exception!(unisono, SimulationError, Error, "A run could not finish; `.stuck` names what waits.");

pub fn input(message: impl std::fmt::Display) -> PyErr {
    InputError::new_err(message.to_string())
}

pub fn plan_error(error: PlanError) -> PyErr {
    let message = error.to_string();
    match error {
        PlanError::NotProved { .. } => Error::new_err(message),
        PlanError::NotExpressible { .. } => NotExpressibleError::new_err(message),
        e if e.is_unsupported() => UnsupportedError::new_err(message),
        _ => InputError::new_err(message),
    }
}

pub fn verify_error(py: Python<'_>, diagnostics: &[Diagnostic]) -> PyErr {
    let first = diagnostics.first().map_or_else(|| "the proof failed".to_owned(), ToString::to_string);
    let error = VerifyError::new_err(match diagnostics.len() {
        0 | 1 => first,
        n => format!("{first} (and {} more)", n - 1),
    });
    let attached = to_python(py, diagnostics).and_then(|d| error.value(py).setattr("diagnostics", d));
    attached.err().unwrap_or(error)
}

pub fn simulation_error(py: Python<'_>, message: String, stuck: Vec<String>) -> PyErr {
    let error = SimulationError::new_err(message);
    error.value(py).setattr("stuck", stuck).err().unwrap_or(error)
}

/// Converts a serialisable value to dicts, lists and numbers.
pub fn to_python<'py, T: Serialize + ?Sized>(py: Python<'py>, value: &T) -> PyResult<Bound<'py, PyAny>> {
    pythonize::pythonize(py, value).map_err(|e| Error::new_err(e.to_string()))
}

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
    /// The exception that ends the work of [`detached`].
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Makes panics store their message and source line for [`detached`] instead of printing them.
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(|info| PANIC.with(|p| p.replace(info.to_string().replace('\n', " ")).clear())));
}

/// Ends the work of [`detached`] on this thread with an exception that a function of the user raised.
pub fn end_with(error: PyErr) -> ! {
    RAISED.set(Some(error));
    resume_unwind(Box::new(Interrupted))
}

/// Runs `f` without the interpreter lock. A panic becomes an exception with the panic's message.
///
/// While `f` polls ([`unisono_base::interrupt`]), pending signals are handled. If a handler raises an exception, as for
/// Ctrl-C, `f` ends and the exception is returned. An exception of [`end_with`] is returned too. Python handles signals
/// in its main thread only. Work over a limit ([`unisono_base::limits`]) returns an `InputError`.
pub fn detached<R: Send>(py: Python<'_>, f: impl FnOnce() -> R + Send) -> PyResult<R> {
    limits::refresh();
    py.detach(|| {
        let _caller = Caller::enter();
        let signalled = || match Python::attach(|py| py.check_signals()) {
            Ok(()) => false,
            Err(error) => {
                RAISED.set(Some(error));
                true
            }
        };
        catch_unwind(AssertUnwindSafe(|| counted(|| watch(Box::new(signalled), f)))).map_err(|payload| {
            if let Some(over) = payload.downcast_ref::<OverLimit>() {
                return input(over);
            }
            if let (true, Some(error)) = (payload.is::<Interrupted>(), RAISED.take()) {
                return error;
            }
            let what = PANIC.with(|p| p.replace(String::new()));
            Error::new_err(format!("an internal fault of unisono, please report it: {what}"))
        })
    })
}

pub fn failed(py: Python<'_>, error: RunError) -> PyErr {
    if let Some(stuck) = error.stuck() {
        return simulation_error(py, error.to_string(), stuck);
    }
    if error.is_unsupported() {
        return UnsupportedError::new_err(error.to_string());
    }
    match error {
        RunError::Plan(error) => plan_error(error),
        error => input(error),
    }
}
