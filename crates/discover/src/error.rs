//! The errors of a program. Each message about an access names the task, the buffer and, if it concerns one, the rank.

use thiserror::Error;

#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum DiscoverError {
    #[error("{0}")]
    Input(String),
    #[error("task '{task}', buffer '{buffer}'{}: {what}", rank.map_or_else(String::new, |r| format!(", rank {r}")))]
    Access { task: String, buffer: String, rank: Option<u32>, what: String },
    #[error("{0}")]
    Messages(String),
    #[error("the messages of an exchange are not proved: {0}")]
    Unproved(String),
}
