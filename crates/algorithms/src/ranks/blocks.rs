//! A vector in blocks, one per rank.

use unisono_base::Span;

/// The division of `elements` elements into `count` blocks whose lengths differ by at most one; longer blocks come
/// first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocks {
    elements: u32,
    count: u32,
}

impl Blocks {
    pub fn new(elements: u32, count: u32) -> Self {
        Self { elements, count }
    }

    /// Returns the first element of block `at`, or the number of elements for `at` = count.
    pub fn start(self, at: u32) -> u32 {
        let (size, longer) = (self.elements / self.count, self.elements % self.count);
        at * size + at.min(longer)
    }

    /// Returns the elements of blocks `from .. to`.
    pub fn span(self, from: u32, to: u32) -> Span {
        Span::new(self.start(from), self.start(to) - self.start(from))
    }

    pub fn block(self, at: u32) -> Span {
        self.span(at, at + 1)
    }
}
