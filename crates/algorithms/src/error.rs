//! The reasons why an algorithm has no schedule for a case.

use unisono_schedule::BuildError;

use crate::multiplying::StagesError;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AlgorithmError {
    #[error("'{found}' is not an algorithm; accepted are {accepted}")]
    Unknown { found: String, accepted: String },
    #[error("{algorithm} does not support this case: {reason}")]
    Unsupported { algorithm: &'static str, reason: String },
    #[error("{algorithm} has no parameter '{found}'; accepted are {accepted}")]
    UnknownParam { algorithm: &'static str, found: String, accepted: String },
    #[error("parameter {param} of {algorithm} is '{found}'; accepted is {accepted}")]
    Param { algorithm: &'static str, param: &'static str, found: String, accepted: String },
    #[error("{algorithm} means {meaning} here, so {param} cannot be '{found}'; name {composed} to choose its parts")]
    Contradiction {
        algorithm: &'static str,
        meaning: String,
        param: &'static str,
        found: String,
        composed: &'static str,
    },
    #[error("parameter schedule of {algorithm}: {error}")]
    Stages { algorithm: &'static str, error: StagesError },
    #[error("'{algorithm}' is an algorithm of the catalog; choose another name")]
    Taken { algorithm: &'static str },
    /// An error that an algorithm of the user's program returned.
    #[error("the function of algorithm '{algorithm}' {message}")]
    Own { algorithm: &'static str, message: String },
    #[error(transparent)]
    Build(#[from] BuildError),
}
