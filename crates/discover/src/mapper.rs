//! Range mappers: the part of a buffer that a chunk of a task's range touches.
//!
//! Each mapper except [`Mapper::EvenSplit`] and a user's function has one rule per dimension of the buffer: a fixed
//! interval, or the chunk's interval in one dimension of the range, moved or widened. The regions of many ranks are
//! therefore known without an evaluation for each rank. Every result is clamped to the buffer. Mappers must be pure and
//! monotone: a part of a chunk touches a part of the region that the chunk touches. The names are those of Celerity
//! 0.7.0, as in "Automatic Discovery of Collective Communication Patterns" (Knorr and others, 2024), section 1.4.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use unisono_base::mix;

use crate::{
    space::{Box3, Point, Region},
    split::Geometry,
    traced::Traced,
};

/// A user's function from a chunk's lowest point, its upper bound and the buffer's shape to boxes of the buffer, or an
/// error. Points have as many numbers as the range or the buffer has dimensions.
pub type MapFunction = dyn Fn(&[i64], &[i64], &[i64]) -> Result<Vec<Box3>, String> + Send + Sync;

/// A user's mapper. Two mappers are equal if and only if their numbers are equal, so each function must have a fixed
/// number.
#[derive(Clone)]
pub struct UserMapper {
    pub number: u64,
    pub name: Arc<str>,
    pub function: Arc<MapFunction>,
    /// The dependence of the function's boxes on the chunk, as found by calls of the function with symbols.
    pub traced: Arc<Traced>,
}

impl PartialEq for UserMapper {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for UserMapper {}

impl PartialOrd for UserMapper {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for UserMapper {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}

impl Hash for UserMapper {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl fmt::Debug for UserMapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user function '{}'", self.name)
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mapper {
    /// The box of the chunk.
    OneToOne,
    /// The whole buffer.
    All,
    /// This box, for every chunk.
    Fixed(Box3),
    /// The box of the chunk, with the buffer's whole extent in this dimension.
    Slice(usize),
    /// The chunk, extended on both sides of each dimension by the given number of points: a bounding box.
    Neighborhood(Point),
    /// Dimension i of the result is dimension `perm[i]` of the chunk.
    Transposed([usize; 3]),
    /// One row of the buffer, with all columns.
    Row(i64),
    /// One row of the buffer, at the columns of the chunk: dimension d of the buffer follows dimension d - 1 of the
    /// range.
    RowChunk(i64),
    /// The box of the chunk, moved.
    Shift(Point),
    /// The chunk's interval in this dimension of the range, for a buffer of one dimension.
    Project(usize),
    /// The buffer, divided along dimension 0 into as many even parts as the range has points. Parts consist of whole
    /// granules of this number of rows.
    EvenSplit(i64),
    User(UserMapper),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DimRule {
    Const {
        low: i64,
        high: i64,
    },
    /// The chunk's `[start + low, end + high)` in dimension `dim` of the range.
    Follow {
        dim: usize,
        low: i64,
        high: i64,
    },
}

impl Mapper {
    pub fn name(&self) -> &str {
        match self {
            Self::OneToOne => "one_to_one",
            Self::All => "all",
            Self::Fixed(_) => "fixed",
            Self::Slice(_) => "slice",
            Self::Neighborhood(_) => "neighborhood",
            Self::Transposed(_) => "transposed",
            Self::Row(_) => "row",
            Self::RowChunk(_) => "row_chunk",
            Self::Shift(_) => "shift",
            Self::Project(_) => "project",
            Self::EvenSplit(_) => "even_split",
            Self::User(user) => &user.name,
        }
    }

    /// Returns the rules of all three dimensions for a buffer of `dims` dimensions, or `None` if the mapper must be
    /// evaluated.
    ///
    /// With `rows`, a buffer may have more dimensions than the range. A chunk then covers the additional dimensions
    /// entirely.
    pub fn rules(
        &self,
        geometry: &Geometry,
        buffer: &Box3,
        dims: usize,
        rows: bool,
    ) -> Result<Option<[DimRule; 3]>, String> {
        let range = geometry.dims;
        let whole = |d: usize| DimRule::Const { low: 0, high: buffer.max[d] };
        let follow = |dim: usize| DimRule::Follow { dim, low: 0, high: 0 };
        let like_range = |d: usize| if d < range { follow(d) } else { whole(d) };
        let same_dims = |least: usize| {
            if range == dims || rows && range < dims && range >= least {
                return Ok(());
            }
            Err(format!(
                "mapper {} maps a range of {range} dimensions to a buffer of {dims}; accepted are equal numbers",
                self.name()
            ))
        };
        let all: [DimRule; 3] = std::array::from_fn(whole);
        let made = match self {
            Self::OneToOne => {
                same_dims(1)?;
                std::array::from_fn(|d| if d < dims { like_range(d) } else { whole(d) })
            }
            Self::All => all,
            Self::Fixed(fixed) => {
                if !fixed.is_empty() && !fixed.overlaps(buffer) {
                    let (given, there) = (fixed.text(dims), buffer.text(dims));
                    return Err(format!("mapper fixed is {given}, which is not there; the buffer is {there}"));
                }
                std::array::from_fn(|d| DimRule::Const { low: fixed.min[d], high: fixed.max[d] })
            }
            Self::Slice(dim) => {
                same_dims(1)?;
                if *dim >= dims {
                    return Err(format!("mapper slice names dimension {dim}; the buffer has 0 to {}", dims - 1));
                }
                std::array::from_fn(|d| if d == *dim || d >= dims { whole(d) } else { like_range(d) })
            }
            Self::Neighborhood(halo) => {
                same_dims(1)?;
                if let Some(side) = halo.iter().find(|&&side| side < 0) {
                    return Err(format!("mapper neighborhood has a halo of {side}; accepted are 0 and more"));
                }
                no_more_dims("a halo", halo, range.min(dims))?;
                std::array::from_fn(|d| {
                    let (low, high) = (-halo[d], halo[d]);
                    if d < range && d < dims { DimRule::Follow { dim: d, low, high } } else { whole(d) }
                })
            }
            Self::Transposed(perm) => {
                same_dims(dims)?;
                let mut seen = [false; 3];
                for &k in &perm[..dims] {
                    if k >= dims || std::mem::replace(&mut seen[k], true) {
                        let given = &perm[..dims];
                        return Err(format!(
                            "mapper transposed has perm {given:?}; accepted is an order of 0 to {}",
                            dims - 1
                        ));
                    }
                }
                std::array::from_fn(|d| if d < dims { follow(perm[d]) } else { whole(d) })
            }
            Self::Row(index) | Self::RowChunk(index) => {
                let (name, of_chunk) = (self.name(), matches!(self, Self::RowChunk(_)));
                if !(0..buffer.max[0]).contains(index) {
                    return Err(format!("mapper {name} names row {index}; the buffer has 0 to {}", buffer.max[0] - 1));
                }
                if of_chunk && dims < 2 {
                    return Err(
                        "mapper row_chunk maps to columns; the buffer has 1 dimension, accepted are 2 and 3".to_owned()
                    );
                }
                std::array::from_fn(|d| match d {
                    0 => DimRule::Const { low: *index, high: index + 1 },
                    _ if of_chunk && d < dims && d <= range => follow(d - 1),
                    _ => all[d],
                })
            }
            Self::Shift(offset) => {
                same_dims(1)?;
                no_more_dims("an offset", offset, range.min(dims))?;
                std::array::from_fn(|d| {
                    let (low, high) = (offset[d], offset[d]);
                    if d < range && d < dims { DimRule::Follow { dim: d, low, high } } else { whole(d) }
                })
            }
            Self::Project(dim) => {
                if dims != 1 {
                    return Err(format!("mapper project maps to a buffer of 1 dimension; this one has {dims}"));
                }
                if *dim >= range {
                    return Err(format!("mapper project names dimension {dim}; the range has 0 to {}", range - 1));
                }
                [follow(*dim), whole(1), whole(2)]
            }
            Self::EvenSplit(granule) => {
                if range != 1 {
                    return Err(format!("mapper even_split takes a range of 1 dimension; this one has {range}"));
                }
                if *granule < 1 {
                    return Err(format!("mapper even_split has granules of {granule}; accepted are 1 and more"));
                }
                return Ok(None);
            }
            Self::User(_) => return Ok(None),
        };
        Ok(Some(made))
    }

    /// Returns the region that a chunk touches, for mappers without rules.
    pub fn evaluate(&self, geometry: &Geometry, chunk: &Box3, buffer: &Box3, dims: usize) -> Result<Region, String> {
        match self {
            Self::EvenSplit(granule) => Ok(even_share(geometry, chunk, buffer, *granule).into()),
            Self::User(user) => {
                let range = geometry.dims;
                let boxes = (user.function)(&chunk.min[..range], &chunk.max[..range], &buffer.max[..dims])
                    .map_err(|why| format!("mapper '{}' for chunk {}: {why}", user.name, chunk.text(geometry.dims)))?;
                let clamped = Region::of(boxes.iter().map(|b| b.intersect(buffer)));
                if clamped.is_empty()
                    && let Some(outside) = boxes.iter().find(|b| !b.is_empty())
                {
                    return Err(format!(
                        "mapper '{}' maps chunk {} to {}, which is not there; the buffer is {}",
                        user.name,
                        chunk.text(geometry.dims),
                        outside.text(dims),
                        buffer.text(dims)
                    ));
                }
                Ok(clamped)
            }
            _ => Err(format!("mapper {} needs no evaluation", self.name())),
        }
    }

    /// Returns a hash of the mapper that is the same on every rank.
    pub fn digest(&self) -> u64 {
        let numbers: Vec<i64> = match self {
            Self::OneToOne | Self::All => Vec::new(),
            Self::Fixed(b) => b.min.iter().chain(&b.max).copied().collect(),
            Self::Slice(d) | Self::Project(d) => vec![*d as i64],
            Self::Neighborhood(p) | Self::Shift(p) => p.to_vec(),
            Self::Transposed(perm) => perm.iter().map(|&d| d as i64).collect(),
            Self::Row(k) | Self::RowChunk(k) | Self::EvenSplit(k) => vec![*k],
            Self::User(_) => Vec::new(),
        };
        let letters = self.name().bytes().fold(0xd15c, |h, b| mix(h ^ u64::from(b)).wrapping_add(1));
        numbers.iter().fold(letters, |h, &n| mix(h ^ n.cast_unsigned()).wrapping_add(1))
    }
}

/// Returns an error if a number for a dimension that the range or the buffer lacks is not 0, because it would have no
/// effect. `dims` is the smaller number of dimensions.
fn no_more_dims(what: &str, given: &Point, dims: usize) -> Result<(), String> {
    let Some(d) = (dims..given.len()).find(|&d| given[d] != 0) else { return Ok(()) };
    let there = if dims == 1 { "1 dimension".to_owned() } else { format!("{dims} dimensions") };
    Err(format!(
        "the mapper has {what} of {} in dimension {d}; accepted are {there}, those of the range and of the buffer",
        given[d]
    ))
}

/// Returns the rows of [`Mapper::EvenSplit`] for points `[a, b)` of a range of n points. In granules, the rows are `[a
/// q + min(a, r), b q + min(b, r))`, with q = granules / n and the remainder r. The last point also gets the incomplete
/// granule at the end.
fn even_share(geometry: &Geometry, chunk: &Box3, buffer: &Box3, granule: i64) -> Box3 {
    let (rows, n) = (buffer.max[0], geometry.size[0]);
    let (q, r) = (rows / granule / n, rows / granule % n);
    let start = |k: i64| if k >= n { rows } else { (k * q + k.min(r)) * granule };
    let (a, b) = (chunk.min[0] - geometry.offset[0], chunk.max[0] - geometry.offset[0]);
    let (mut min, mut max) = (buffer.min, buffer.max);
    (min[0], max[0]) = (start(a), start(b));
    Box3::new(min, max)
}
