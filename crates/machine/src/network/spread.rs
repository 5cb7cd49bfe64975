//! Cables from a row of switches to a row of switches above, one after the other to each: how trees are wired.

use std::ops::Range;

/// Cable `u = source * each + i` joins port `i` of a source to target `u mod targets`, where it is port `u / targets`.
/// So targets differ by one port at most, and the cables of neighboring sources are neighbors at each target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spread {
    pub sources: u32,
    /// Cables of a source.
    pub each: u32,
    pub targets: u32,
}

impl Spread {
    pub fn cables(self) -> u32 {
        self.sources * self.each
    }

    /// Of the i-th cable of a source: its target, and the port there.
    pub fn end(self, source: u32, i: u32) -> (u32, u32) {
        let u = source * self.each + i;
        (u % self.targets, u / self.targets)
    }

    /// The ports of a target that lead to one of these sources.
    #[inline]
    pub fn towards(self, target: u32, sources: Range<u32>) -> Range<u32> {
        self.below(target, sources.start * self.each)..self.below(target, sources.end * self.each)
    }

    /// Cables of a target among the first `u` of all.
    #[inline]
    fn below(self, target: u32, u: u32) -> u32 {
        (u + self.targets - 1 - target) / self.targets
    }
}
