//! Half-open ranges of elements.

use std::fmt;

/// Elements `start .. start + len` of a buffer or a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Span {
    pub start: u32,
    pub len: u32,
}

impl Span {
    pub fn new(start: u32, len: u32) -> Self {
        Self { start, len }
    }

    /// Returns the end of the span (exclusive), in 64 bits so that the sum cannot overflow.
    pub fn end(self) -> u64 {
        u64::from(self.start) + u64::from(self.len)
    }

    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    pub fn overlaps(self, other: Span) -> bool {
        u64::from(self.start) < other.end() && u64::from(other.start) < self.end()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}..{}]", self.start, self.end())
    }
}
