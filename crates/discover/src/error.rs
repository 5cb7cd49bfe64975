//! What a program can get wrong. Every message names the task, the buffer and, where there is one, the rank.

use thiserror::Error;

#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum DiscoverError {
    /// A number or a name that no program may have.
    #[error("{0}")]
    Input(String),
    /// An access that cannot be.
    #[error("task '{task}', buffer '{buffer}'{}: {what}", rank.map_or_else(String::new, |r| format!(", rank {r}")))]
    Access { task: String, buffer: String, rank: Option<u32>, what: String },
    /// Messages that no schedule holds.
    #[error("{0}")]
    Messages(String),
    /// Messages whose proof fails.
    #[error("the messages of an exchange are not proved: {0}")]
    Unproved(String),
}
