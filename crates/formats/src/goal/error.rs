//! Reasons why a text is not GOAL.

use unisono_lower::tasks::TaskError;

#[derive(Debug, thiserror::Error)]
#[error("{origin}, {problem}")]
pub struct ReadError {
    /// Name of the text in messages, such as the name of its file.
    pub origin: String,
    pub problem: Problem,
}

#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("line {line}: {what}")]
    Text { line: u64, what: String },
    #[error("line {line}: the comment that begins here does not end; close it with '*/'")]
    Comment { line: u64 },
    #[error("line {line}: rank {rank}, which begins here, does not end; close it with '}}'")]
    Open { rank: u32, line: u64 },
    #[error("at its end: {found} of {ranks} ranks are there; give each its 'rank N {{ ... }}'")]
    Short { found: u32, ranks: u32 },
    #[error("at its end: no 'num_ranks N' is there; it stands before the first rank")]
    Empty,
    #[error("as a whole: {0}")]
    Tasks(#[from] TaskError),
    #[error("unreadable: {0}")]
    Io(#[from] std::io::Error),
}
