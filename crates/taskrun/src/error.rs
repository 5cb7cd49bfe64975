//! Errors of a run.

use unisono_mpi::Failed;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RunError {
    /// An invalid argument.
    #[error("{0}")]
    Input(String),
    /// A call that cannot be made now.
    #[error("{0}")]
    Refused(String),
    #[error("MPI ended a call with error code {0}")]
    Failed(i32),
    #[error("a region is not in its array, please report it")]
    Region,
}

impl RunError {
    pub fn input(message: impl ToString) -> Self {
        Self::Input(message.to_string())
    }

    pub fn refused(message: impl ToString) -> Self {
        Self::Refused(message.to_string())
    }
}

impl From<Failed> for RunError {
    fn from(Failed(code): Failed) -> Self {
        Self::Failed(code)
    }
}
