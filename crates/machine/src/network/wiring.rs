//! Cables from a row of switches to the row of switches above, assigned to the upper switches round-robin: the wiring
//! of trees.

use std::ops::Range;

/// A wiring. Cable `u = source * each + i` joins port `i` of a source to target `u mod targets`, at its port `u /
/// targets`. The numbers of cables of two targets therefore differ by at most one, and the cables of neighboring
/// sources are adjacent at each target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wiring {
    pub sources: u32,
    /// The number of cables of each source.
    pub each: u32,
    pub targets: u32,
}

impl Wiring {
    pub fn cables(self) -> u32 {
        self.sources * self.each
    }

    /// Returns the target of the i-th cable of a source, and the port at the target.
    pub fn end(self, source: u32, i: u32) -> (u32, u32) {
        let u = source * self.each + i;
        (u % self.targets, u / self.targets)
    }

    /// Returns the ports of a target with cables to the given sources.
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
