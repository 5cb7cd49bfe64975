//! A value for every point of a buffer, stored as disjoint boxes.
//!
//! B-trees replace an R-tree, because the maps of real programs have one to a few dozen boxes, which are replaced far
//! more often than searched. Boxes are ordered by their lowest point. Boxes whose lengths along dimension 0 have the
//! same power of two form a level. A search in a level therefore starts less than twice the length of the level's boxes
//! before the window. For any mixture of lengths, a query costs O(log n + m), where m boxes overlap the window along
//! dimension 0.

use std::collections::BTreeMap;

use crate::space::{Box3, Point};

/// The upper corner and the value of each box, by the box's lowest point.
type Level<V> = BTreeMap<Point, (Point, V)>;

#[derive(Clone, Debug)]
pub struct RegionMap<V> {
    /// Level k contains boxes of at least 2^k and less than 2^(k+1) along dimension 0. Levels ascend; some may be
    /// empty.
    pub levels: Vec<(u32, Level<V>)>,
}

fn level_of(b: &Box3) -> u32 {
    (b.max[0] - b.min[0]).ilog2()
}

/// The maximum number of boxes of a level for which all boxes are visited, because a search takes longer.
pub const FEW: usize = 8;

/// Calls `f` with the boxes of level `k` that may overlap a window.
fn near<V: Copy>(k: u32, level: &Level<V>, window: &Box3, mut f: impl FnMut(Box3, V)) {
    if level.len() <= FEW {
        return level.iter().for_each(|(&min, &(max, value))| f(Box3 { min, max }, value));
    }
    let longest = (1i64 << k) - 1 + (1i64 << k);
    let low = [window.min[0].saturating_sub(longest), i64::MIN, i64::MIN];
    for (&min, &(max, value)) in level.range(low..[window.max[0], i64::MIN, i64::MIN]) {
        f(Box3 { min, max }, value);
    }
}

impl<V: Copy + PartialEq> RegionMap<V> {
    /// Creates a map with the same value everywhere in `whole`.
    pub fn new(whole: Box3, value: V) -> Self {
        let mut map = Self { levels: Vec::new() };
        map.insert(whole, value);
        map
    }

    fn insert(&mut self, b: Box3, value: V) {
        if b.is_empty() {
            return;
        }
        let k = level_of(&b);
        let at = self.levels.partition_point(|(level, _)| *level < k);
        if self.levels.get(at).is_none_or(|(level, _)| *level != k) {
            self.levels.insert(at, (k, BTreeMap::new()));
        }
        self.levels[at].1.insert(b.min, (b.max, value));
    }

    fn level_mut(&mut self, b: &Box3) -> Option<&mut Level<V>> {
        let k = level_of(b);
        self.levels.iter_mut().find(|(level, _)| *level == k).map(|(_, level)| level)
    }

    /// Calls `f` with the boxes in `window`, clipped to it. The order is the same for equal maps.
    pub fn query(&self, window: &Box3, mut f: impl FnMut(Box3, V)) {
        if window.is_empty() {
            return;
        }
        for (k, level) in &self.levels {
            near(*k, level, window, |b, value| {
                let clipped = b.intersect(window);
                if !clipped.is_empty() {
                    f(clipped, value);
                }
            });
        }
    }

    pub fn set(&mut self, window: &Box3, value: V) {
        if window.is_empty() {
            return;
        }
        if let Some((max, old)) = self.level_mut(window).and_then(|level| level.get_mut(&window.min))
            && *max == window.max
        {
            *old = value;
            return;
        }
        let mut met: Vec<(Box3, V)> = Vec::new();
        for (k, level) in &self.levels {
            near(*k, level, window, |b, value| {
                if b.overlaps(window) {
                    met.push((b, value));
                }
            });
        }
        let mut rest = Vec::new();
        for (b, old) in met {
            if let Some(level) = self.level_mut(&b) {
                level.remove(&b.min);
            }
            rest.clear();
            b.minus(window, &mut rest);
            for &piece in &rest {
                self.insert(piece, old);
            }
        }
        self.insert(*window, value);
    }
}
