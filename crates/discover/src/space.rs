//! Boxes and regions of an index space of up to three dimensions.
//!
//! A region is a set of points, stored as disjoint boxes in a normal form: the space is divided into slabs along
//! dimension 0 at each change of the cross-section, each cross-section is divided in the same way along dimension 1,
//! then 2. Maximal slabs are unique, so two regions are equal if and only if their lists of boxes are equal.

use std::fmt;

/// A point; the coordinates of missing dimensions are 0.
pub type Point = [i64; 3];

/// The half-open box `min <= x < max`. An empty box is always `Box3::EMPTY`; a missing dimension is `[0, 1)`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Box3 {
    pub min: Point,
    pub max: Point,
}

impl Box3 {
    pub const EMPTY: Box3 = Box3 { min: [0; 3], max: [0; 3] };

    pub fn new(min: Point, max: Point) -> Self {
        if (0..3).any(|d| min[d] >= max[d]) { Self::EMPTY } else { Self { min, max } }
    }

    /// Returns the box from 0 to `size`, in which missing dimensions have size 1.
    pub fn of_size(size: Point) -> Self {
        Self::new([0; 3], size)
    }

    pub fn is_empty(&self) -> bool {
        self.min[0] >= self.max[0]
    }

    pub fn intersect(&self, other: &Box3) -> Box3 {
        let (mut min, mut max) = (self.min, self.max);
        for d in 0..3 {
            min[d] = min[d].max(other.min[d]);
            max[d] = max[d].min(other.max[d]);
        }
        Self::new(min, max)
    }

    pub fn overlaps(&self, other: &Box3) -> bool {
        !self.is_empty()
            && !other.is_empty()
            && (0..3).all(|d| self.min[d] < other.max[d] && other.min[d] < self.max[d])
    }

    pub fn contains(&self, other: &Box3) -> bool {
        other.is_empty() || (0..3).all(|d| self.min[d] <= other.min[d] && other.max[d] <= self.max[d])
    }

    /// Returns the number of points, which is less than 2^62 for boxes in a buffer ([`crate::Buffer::new`]).
    pub fn volume(&self) -> u64 {
        (0..3).map(|d| (self.max[d] - self.min[d]).cast_unsigned()).product()
    }

    /// Appends the points of this box that are not in `other`, as at most six boxes.
    pub fn minus(&self, other: &Box3, out: &mut Vec<Box3>) {
        let common = self.intersect(other);
        if common.is_empty() {
            if !self.is_empty() {
                out.push(*self);
            }
            return;
        }
        let mut rest = *self;
        for d in 0..3 {
            if rest.min[d] < common.min[d] {
                let mut below = rest;
                below.max[d] = common.min[d];
                out.push(below);
                rest.min[d] = common.min[d];
            }
            if common.max[d] < rest.max[d] {
                let mut above = rest;
                above.min[d] = common.max[d];
                out.push(above);
                rest.max[d] = common.max[d];
            }
        }
    }

    /// Formats the first `dims` dimensions as half-open intervals.
    pub fn text(&self, dims: usize) -> String {
        let side = |d: usize| format!("[{}, {})", self.min[d], self.max[d]);
        (0..dims).map(side).collect::<Vec<_>>().join(" x ")
    }
}

/// A set of points in normal form.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Region {
    boxes: Vec<Box3>,
}

impl Region {
    pub fn empty() -> Self {
        Self::default()
    }

    /// Returns the union of boxes, which may overlap.
    pub fn of(boxes: impl IntoIterator<Item = Box3>) -> Self {
        let boxes: Vec<Box3> = boxes.into_iter().filter(|b| !b.is_empty()).collect();
        Self { boxes: if boxes.len() < 2 { boxes } else { slabs(&boxes, 0) } }
    }

    pub fn boxes(&self) -> &[Box3] {
        &self.boxes
    }

    pub fn is_empty(&self) -> bool {
        self.boxes.is_empty()
    }

    pub fn volume(&self) -> u64 {
        self.boxes.iter().map(Box3::volume).sum()
    }

    pub fn overlaps(&self, other: &Region) -> bool {
        self.boxes.iter().any(|a| other.boxes.iter().any(|b| a.overlaps(b)))
    }

    pub fn union(&self, other: &Region) -> Region {
        if other.is_empty() || self == other {
            return self.clone();
        }
        if self.is_empty() {
            return other.clone();
        }
        Self::of(self.boxes.iter().chain(&other.boxes).copied())
    }

    pub fn intersect(&self, other: &Region) -> Region {
        if let ([a], [b]) = (&self.boxes[..], &other.boxes[..]) {
            return a.intersect(b).into();
        }
        Self::of(self.boxes.iter().flat_map(|a| other.boxes.iter().map(move |b| a.intersect(b))))
    }

    pub fn minus(&self, other: &Region) -> Region {
        if !self.overlaps(other) {
            return self.clone();
        }
        let mut rest = self.boxes.clone();
        for cut in &other.boxes {
            let mut next = Vec::with_capacity(rest.len() + 4);
            for b in &rest {
                b.minus(cut, &mut next);
            }
            rest = next;
        }
        Self::of(rest)
    }

    pub fn contains(&self, other: &Region) -> bool {
        if let ([a], [b]) = (&self.boxes[..], &other.boxes[..]) {
            return a.contains(b);
        }
        other.minus(self).is_empty()
    }

    /// Returns the smallest box around all points.
    pub fn bounds(&self) -> Box3 {
        let first = *self.boxes.first().unwrap_or(&Box3::EMPTY);
        let wider = |all: Box3, b: &Box3| Box3 {
            min: std::array::from_fn(|d| all.min[d].min(b.min[d])),
            max: std::array::from_fn(|d| all.max[d].max(b.max[d])),
        };
        self.boxes.iter().fold(first, wider)
    }

    pub fn text(&self, dims: usize) -> String {
        if self.is_empty() {
            return "nothing".to_owned();
        }
        self.boxes.iter().map(|b| b.text(dims)).collect::<Vec<_>>().join(" and ")
    }
}

impl From<Box3> for Region {
    fn from(b: Box3) -> Self {
        Self { boxes: if b.is_empty() { Vec::new() } else { vec![b] } }
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(3))
    }
}

/// Returns the normal form of a union of boxes in the dimensions from `d` on. The caller sets the intervals of the
/// dimensions below `d`.
fn slabs(boxes: &[Box3], d: usize) -> Vec<Box3> {
    let mut cuts: Vec<i64> = boxes.iter().flat_map(|b| [b.min[d], b.max[d]]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut out: Vec<Box3> = Vec::new();
    // The previous slab: the index of its first box in `out`, and its end coordinate.
    let (mut from, mut end) = (0, i64::MIN);
    for pair in cuts.windows(2) {
        let (low, high) = (pair[0], pair[1]);
        let covering: Vec<Box3> = boxes.iter().filter(|b| b.min[d] <= low && high <= b.max[d]).copied().collect();
        let mut cross = match covering.len() {
            0 => continue,
            1 => covering,
            _ if d == 2 => vec![covering[0]],
            _ => slabs(&covering, d + 1),
        };
        let same = |a: &Box3, b: &Box3| (d + 1..3).all(|k| a.min[k] == b.min[k] && a.max[k] == b.max[k]);
        let before = &out[from..];
        if end == low && before.len() == cross.len() && before.iter().zip(&cross).all(|(a, b)| same(a, b)) {
            out[from..].iter_mut().for_each(|b| b.max[d] = high);
        } else {
            from = out.len();
            for b in &mut cross {
                (b.min[d], b.max[d]) = (low, high);
            }
            out.append(&mut cross);
        }
        end = high;
    }
    out
}
