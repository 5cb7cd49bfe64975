//! Accesses to memory that clash: two accesses that overlap, at least one of which writes.
//!
//! Accesses are added in an order in which the program may run. Each is compared only with the latest accesses to the
//! same blocks: the last write and, for a write, the reads since that write. If all of these pairs are ordered, all
//! clashing pairs are, because each access was compared with its predecessors in turn.

use unisono_base::Span;

use super::{Place, runs::Runs};

#[derive(Clone)]
struct Touch<A> {
    write: Option<A>,
    reads: Vec<A>,
}

/// Latest accesses to the blocks of one buffer.
pub struct Touches<A>(Runs<Touch<A>>);

impl<A> Default for Touches<A> {
    fn default() -> Self {
        Self(Runs::default())
    }
}

impl<A: Copy + PartialEq> Touches<A> {
    /// Adds a read, and calls `clash` with the latest writes to its blocks.
    pub fn read(&mut self, span: Span, by: A, mut clash: impl FnMut(A)) {
        let empty = || Touch { write: None, reads: Vec::new() };
        self.0.update(span, empty, |touch| {
            touch.write.into_iter().for_each(&mut clash);
            if touch.reads.last() != Some(&by) {
                touch.reads.push(by);
            }
        });
    }

    /// Adds a write, and calls `clash` with the latest write to its blocks and the reads since then.
    pub fn write(&mut self, span: Span, by: A, mut clash: impl FnMut(A)) {
        if let Some(touch) = self.0.exactly(span) {
            touch.write.replace(by).into_iter().for_each(&mut clash);
            touch.reads.drain(..).for_each(clash);
            return;
        }
        for (_, _, touch) in self.0.over(span) {
            touch.write.into_iter().for_each(&mut clash);
            touch.reads.iter().copied().for_each(&mut clash);
        }
        self.0.set(span, Touch { write: Some(by), reads: Vec::new() });
    }
}

/// Returns the buffer (0 `in`, 1 `out`, 2 `tmp`) and the blocks that a place covers.
pub fn region(place: Place, len: u32) -> (usize, Span) {
    match place {
        Place::In(start) => (0, Span::new(start, len)),
        Place::Out(start) => (1, Span::new(start, len)),
        Place::Tmp(start) => (2, Span::new(start, len)),
    }
}
