//! Converts blocks of a stored schedule to ranges of elements for the vector of one call.

use unisono_schedule::stored::{Blocking, Facts, Place};

use crate::{Buffer, Slice};

/// Blocks of `pitch` elements, cut off at the end of the vector. [`unisono_schedule::stored`] states the two rules for
/// the pitch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocks {
    pitch: usize,
    /// The number of elements of the vector; `None` if all blocks are whole.
    limit: Option<usize>,
}

impl Blocks {
    /// Returns the blocks of `elements` elements of the collective; `None` if the schedule does not support that
    /// number.
    pub fn new(facts: &Facts, elements: usize) -> Option<Self> {
        let blocks = facts.collective.elements as usize;
        match facts.blocking {
            Blocking::Any => Some(Self { pitch: elements.div_ceil(blocks), limit: Some(elements) }),
            Blocking::Equal => {
                elements.is_multiple_of(blocks).then_some(Self { pitch: elements / blocks, limit: None })
            }
        }
    }

    /// Returns the number of elements of `blocks` blocks of scratch memory.
    pub fn scratch(&self, blocks: u32) -> usize {
        self.pitch * blocks as usize
    }

    #[inline]
    fn before(&self, block: u32) -> usize {
        let whole = self.pitch * block as usize;
        self.limit.map_or(whole, |limit| whole.min(limit))
    }

    /// Returns the slice at `place` that has as many elements as blocks `align .. align + len` of the vector.
    #[inline]
    pub fn slice(&self, place: Place, len: u32, align: u32) -> Slice {
        let count = self.before(align + len) - self.before(align);
        let (buffer, start) = match place {
            Place::In(block) => (Buffer::In, self.before(block)),
            Place::Out(block) => (Buffer::Out, self.before(block)),
            Place::Tmp(block) => (Buffer::Scratch, self.pitch * block as usize),
        };
        Slice { buffer, start, len: count }
    }
}
