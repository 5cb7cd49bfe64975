//! Work assignment: the part of a task's range that each rank executes.
//!
//! The assignment is a pure function of the task's geometry and the number of ranks, so that every rank knows the parts
//! of all ranks. The range is split along dimension 0, or along 0 and 1 as tiles; chunk i is assigned to rank i; if the
//! granules cannot be divided evenly, the first chunks have one granule more. Source: Celerity's default split,
//! `papers/discovery/errata.md`.

use unisono_base::narrow;

use crate::space::{Box3, Point};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Split {
    /// Along dimension 0.
    #[default]
    OneD,
    /// Into tiles of dimensions 0 and 1, in a grid that is as square as the number of ranks allows.
    TwoD,
}

/// The range of a task, and the rule of its split. Tasks of equal geometry are assigned equally.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Geometry {
    pub dims: usize,
    pub offset: Point,
    /// The extent: at least 1 in every dimension, and 1 in missing dimensions.
    pub size: Point,
    /// The length of a granule. Chunks consist of whole granules; the last chunk also includes the remainder.
    pub granularity: Point,
    pub split: Split,
}

impl Geometry {
    /// Returns a range from 0 with granules of one point, split along dimension 0.
    pub fn of(size: &[i64]) -> Self {
        let mut full = [1; 3];
        full[..size.len()].copy_from_slice(size);
        Self { dims: size.len(), offset: [0; 3], size: full, granularity: [1; 3], split: Split::OneD }
    }

    pub fn with_granularity(self, granularity: Point) -> Self {
        Self { granularity, ..self }
    }

    pub fn with_split(self, split: Split) -> Self {
        Self { split, ..self }
    }

    pub fn of_part(self, part: &Box3) -> Self {
        let size = std::array::from_fn(|d| part.max[d] - part.min[d]);
        Self { offset: part.min, size, ..self }
    }

    pub fn range(&self) -> Box3 {
        let max = std::array::from_fn(|d| self.offset[d] + self.size[d]);
        Box3::new(self.offset, max)
    }

    /// Returns whether no dimension of the range is longer than a granule. Then the range is a single chunk, on rank 0,
    /// for any number of ranks.
    pub fn is_unsplittable(&self) -> bool {
        (0..3).all(|d| self.size[d] <= self.granularity[d])
    }

    /// Returns whether this type of split may divide the dimension, regardless of its size.
    pub fn cuts(&self, dim: usize) -> bool {
        dim == 0 || dim == 1 && self.split == Split::TwoD && self.dims > 1
    }

    pub fn layout(&self, nodes: u32) -> Layout {
        let granules = |d: usize| narrow((self.size[d] / self.granularity[d]).clamp(1, i64::from(u32::MAX)));
        let (rows, columns) = match self.split {
            _ if self.is_unsplittable() => (1, 1),
            Split::TwoD if self.dims > 1 => tiles(nodes, granules(0), granules(1)),
            _ => (granules(0).min(nodes), 1),
        };
        let axis = |d: usize, parts: u32| Axis {
            offset: self.offset[d],
            size: self.size[d],
            granule: self.granularity[d],
            parts,
        };
        Layout { range: self.range(), axes: [axis(0, rows), axis(1, columns)] }
    }
}

/// Returns the grid with the most tiles. Candidates are the products of two factors of `nodes`, each factor limited to
/// the granules of its dimension. Among equal numbers of tiles, the grid nearest to a square is chosen. The larger
/// number of parts belongs to the dimension with more granules, if the number of tiles stays equal.
pub fn tiles(nodes: u32, granules0: u32, granules1: u32) -> (u32, u32) {
    let mut best = (1, 1);
    let product = |(a, b): (u32, u32)| u64::from(a) * u64::from(b);
    let mut small = nodes.isqrt();
    while small >= 1 {
        if nodes.is_multiple_of(small) {
            let large = nodes / small;
            let (first, second) = if granules0 >= granules1 { (large, small) } else { (small, large) };
            for (a, b) in [(first, second), (second, first)] {
                let fits = (a.min(granules0), b.min(granules1));
                if product(fits) > product(best) {
                    best = fits;
                }
            }
        }
        small -= 1;
    }
    best
}

/// One dimension of a range, divided into parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Axis {
    pub offset: i64,
    pub size: i64,
    pub granule: i64,
    pub parts: u32,
}

impl Axis {
    /// Returns an axis that only counts ranks.
    pub fn count(parts: u32) -> Self {
        Self { offset: 0, size: i64::from(parts), granule: 1, parts }
    }

    /// Returns the number of granules of a small part, and the number of parts that have one granule more.
    fn shares(&self) -> (i64, i64) {
        let granules = (self.size / self.granule).max(1);
        (granules / i64::from(self.parts), granules % i64::from(self.parts))
    }

    fn start(&self, part: i64) -> i64 {
        let (small, larger) = self.shares();
        self.offset + (part * small + part.min(larger)) * self.granule
    }

    pub fn part(&self, k: u32) -> (i64, i64) {
        let end = if k + 1 == self.parts { self.offset + self.size } else { self.start(i64::from(k) + 1) };
        (self.start(i64::from(k)), end)
    }

    /// Returns the index of the part that contains a coordinate, or of the nearest part for coordinates outside.
    pub fn part_of(&self, x: i64) -> u32 {
        let (small, larger) = self.shares();
        let granule = ((x - self.offset).max(0) / self.granule).min(small * i64::from(self.parts) + larger - 1);
        let in_larger = larger * (small + 1);
        let part = if granule < in_larger { granule / (small + 1) } else { larger + (granule - in_larger) / small };
        narrow(part)
    }

    /// Returns the half-open interval of indices of the parts that overlap `[low, high)`.
    pub fn parts_of(&self, low: i64, high: i64) -> (u32, u32) {
        let (low, high) = (low.max(self.offset), high.min(self.offset + self.size));
        if low >= high { (0, 0) } else { (self.part_of(low), self.part_of(high - 1) + 1) }
    }

    /// Returns the index of the first part that has fewer granules than part 0; 0 if there is none.
    pub fn bend(&self) -> u32 {
        narrow(self.shares().1)
    }

    /// Returns the length of the smallest part, without the remainder that the last part also includes.
    pub fn shortest(&self) -> i64 {
        self.shares().0 * self.granule
    }
}

/// The chunks of a range: a grid of parts, numbered row-major.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    pub range: Box3,
    pub axes: [Axis; 2],
}

impl Layout {
    /// Returns the number n of chunks, which are assigned to ranks `0..n`.
    pub fn chunks(&self) -> u32 {
        self.axes[0].parts * self.axes[1].parts
    }

    pub fn chunk(&self, rank: u32) -> Option<Box3> {
        if rank >= self.chunks() {
            return None;
        }
        let mut chunk = self.range;
        let columns = self.axes[1].parts;
        (chunk.min[0], chunk.max[0]) = self.axes[0].part(rank / columns);
        if columns > 1 {
            (chunk.min[1], chunk.max[1]) = self.axes[1].part(rank % columns);
        }
        Some(chunk)
    }
}
