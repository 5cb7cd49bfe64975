//! Cables from a row of switches to a row of switches above, dealt to these in turn: the wiring of trees.

use std::ops::Range;

/// Cable `u = source * each + i` joins port `i` of a source to target `u mod targets`, at its port `u / targets`. So
/// the numbers of cables of targets differ by at most one, and the cables of neighboring sources are adjacent at each
/// target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wiring {
    pub sources: u32,
    /// Cables of each source.
    pub each: u32,
    pub targets: u32,
}

impl Wiring {
    pub fn cables(self) -> u32 {
        self.sources * self.each
    }

    /// Returns the target of the i-th cable of a source, and the port there.
    pub fn end(self, source: u32, i: u32) -> (u32, u32) {
        let u = source * self.each + i;
        (u % self.targets, u / self.targets)
    }

    /// Returns the ports of a target that lead to some sources.
    #[inline]
    pub fn towards(self, target: u32, sources: Range<u32>) -> Range<u32> {
        self.below(target, sources.start * self.each)..self.below(target, sources.end * self.each)
    }

    /// Returns the number of cables of a target among the first `u` cables.
    #[inline]
    fn below(self, target: u32, u: u32) -> u32 {
        (u + self.targets - 1 - target) / self.targets
    }
}
