//! Why a text is no GOAL.

use unisono_lower::tasks::TaskError;

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("line {line}: {what}")]
    Text { line: u64, what: String },
    #[error("the text ends after {found} of {ranks} ranks; every rank has its 'rank N {{ ... }}'")]
    Short { found: u32, ranks: u32 },
    #[error("the text ends inside rank {rank}, which began on line {line}; close it with '}}'")]
    Open { rank: u32, line: u64 },
    #[error("the comment that begins on line {line} does not end; close it with '*/'")]
    Comment { line: u64 },
    #[error("the text has no 'num_ranks N', which stands before the first rank")]
    Empty,
    #[error(transparent)]
    Tasks(#[from] TaskError),
    #[error("the text cannot be read: {0}")]
    Io(#[from] std::io::Error),
}
