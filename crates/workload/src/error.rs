//! The reasons why a file is not a program, with the place in the file.

use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    File,
    Line(u32),
    Rank(u32),
    Node { rank: u32, node: u64 },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => Ok(()),
            Self::Line(line) => write!(f, ", line {line}"),
            Self::Rank(rank) => write!(f, ", rank {rank}"),
            Self::Node { rank, node } => write!(f, ", rank {rank}, node {node}"),
        }
    }
}

/// An error in a file, with the file's name, the place in the file, and a sentence.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{origin}{place}: {message}")]
pub struct ReadError {
    pub origin: String,
    pub place: Place,
    pub message: String,
}

/// An error without the name of its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wrong {
    pub place: Place,
    pub message: String,
}

impl Wrong {
    pub fn file(message: impl Into<String>) -> Self {
        Self { place: Place::File, message: message.into() }
    }

    pub fn line(line: u32, message: impl Into<String>) -> Self {
        Self { place: Place::Line(line), message: message.into() }
    }

    /// Returns the error for a file that is not JSON of the expected structure.
    pub fn json(what: &str, error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let reason = text.split(" at line ").next().unwrap_or_default();
        Self::line(
            u32::try_from(error.line()).unwrap_or(u32::MAX),
            format!("{what}: {}", unisono_base::excerpt(reason)),
        )
    }

    pub fn of(self, origin: &str) -> ReadError {
        ReadError { origin: origin.to_owned(), place: self.place, message: self.message }
    }
}
