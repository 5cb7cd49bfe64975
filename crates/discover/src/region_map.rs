//! A value for every point of a buffer, kept as disjoint boxes.
//!
//! An own structure rather than an R-tree: the maps of real programs hold one to a few dozen boxes, which a B-tree keeps
//! in one or two leaves, and boxes there are replaced as a whole far more often than they are searched. Boxes are
//! ordered by their lowest point; how far the longest one reaches along dimension 0 bounds a search, so a query costs
//! O(log n + boxes of the slab that it meets).

use std::collections::BTreeMap;

use crate::space::{Box3, Point};

#[derive(Clone, Debug)]
pub struct RegionMap<V> {
    boxes: BTreeMap<Point, (Point, V)>,
    /// No box is longer along dimension 0. Looked up again when as many boxes were inserted as there are.
    longest: i64,
    inserted: usize,
}

impl<V: Copy + PartialEq> RegionMap<V> {
    /// The same value everywhere in `whole`.
    pub fn new(whole: Box3, value: V) -> Self {
        let mut map = Self { boxes: BTreeMap::new(), longest: 0, inserted: 0 };
        map.insert(whole, value);
        map
    }

    fn insert(&mut self, b: Box3, value: V) {
        if !b.is_empty() {
            self.longest = self.longest.max(b.max[0] - b.min[0]);
            self.boxes.insert(b.min, (b.max, value));
            self.inserted += 1;
            if self.inserted > self.boxes.len() {
                self.inserted = 0;
                self.longest = self.boxes.iter().map(|(min, (max, _))| max[0] - min[0]).max().unwrap_or(0);
            }
        }
    }

    /// Calls `f` with what lies in `window`, clipped to it, ordered by lowest points of the boxes.
    pub fn query(&self, window: &Box3, mut f: impl FnMut(Box3, V)) {
        if window.is_empty() {
            return;
        }
        if self.boxes.len() == 1 {
            let (&min, &(max, value)) = self.boxes.iter().next().expect("there is one");
            let clipped = Box3 { min, max }.intersect(window);
            if !clipped.is_empty() {
                f(clipped, value);
            }
            return;
        }
        let low = [window.min[0].saturating_sub(self.longest), i64::MIN, i64::MIN];
        for (&min, &(max, value)) in self.boxes.range(low..[window.max[0], i64::MIN, i64::MIN]) {
            let clipped = Box3 { min, max }.intersect(window);
            if !clipped.is_empty() {
                f(clipped, value);
            }
        }
    }

    /// Gives all points of `window` one value.
    pub fn set(&mut self, window: &Box3, value: V) {
        if window.is_empty() {
            return;
        }
        if let Some((max, old)) = self.boxes.get_mut(&window.min)
            && *max == window.max
        {
            *old = value;
            return;
        }
        let low = [window.min[0].saturating_sub(self.longest), i64::MIN, i64::MIN];
        let met: Vec<(Box3, V)> = self
            .boxes
            .range(low..[window.max[0], i64::MIN, i64::MIN])
            .map(|(&min, &(max, value))| (Box3 { min, max }, value))
            .filter(|(b, _)| b.overlaps(window))
            .collect();
        let mut rest = Vec::new();
        for (b, old) in met {
            self.boxes.remove(&b.min);
            rest.clear();
            b.minus(window, &mut rest);
            for &piece in &rest {
                self.insert(piece, old);
            }
        }
        self.insert(*window, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_single_points() {
        let whole = Box3::of_size([12, 9, 1]);
        let mut map = RegionMap::new(whole, 0u32);
        let mut plain = [[0u32; 9]; 12];
        let mut state = 3u64;
        let mut next = |n: u64| {
            state = unisono_base::mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
            (state % n) as i64
        };
        for step in 1..400 {
            let (x, y) = (next(12), next(9));
            let b = Box3::new([x, y, 0], [x + 1 + next(12), y + 1 + next(9), 1]).intersect(&whole);
            if step % 2 == 0 {
                map.set(&b, step);
                for row in &mut plain[b.min[0] as usize..b.max[0] as usize] {
                    row[b.min[1] as usize..b.max[1] as usize].fill(step);
                }
            }
            let mut seen = 0;
            map.query(&b, |piece, value| {
                assert!(b.contains(&piece));
                seen += piece.volume();
                for x in piece.min[0]..piece.max[0] {
                    for y in piece.min[1]..piece.max[1] {
                        assert_eq!(plain[x as usize][y as usize], value);
                    }
                }
            });
            assert_eq!(seen, b.volume());
        }
        assert!(map.boxes.len() > 1);
    }
}
