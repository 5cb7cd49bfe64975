//! Buffers and tasks of a program.

use serde::Deserialize;
use unisono_base::BufferId;

use crate::{error::DiscoverError, mapper::Mapper, space::Box3, split::Geometry};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Read,
    /// The task writes all points that its mapper touches; old contents are discarded.
    Write,
    ReadWrite,
    /// Every chunk contributes a partial result of all points that its mapper touches; old contents are discarded.
    Reduce,
}

impl Mode {
    pub fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite)
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    pub buffer: BufferId,
    pub mode: Mode,
    pub mapper: Mapper,
}

impl Access {
    pub fn new(buffer: BufferId, mode: Mode, mapper: Mapper) -> Self {
        Self { buffer, mode, mapper }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Buffer {
    pub name: String,
    pub dims: usize,
    pub shape: Box3,
    pub element_bytes: u64,
    /// True if every rank has the same contents from the start.
    pub initialized: bool,
}

/// The exclusive limit of a buffer's bytes, so that every count of bytes fits 64 bits.
const MOST_BYTES: u128 = 1 << 62;

impl Buffer {
    pub fn new(name: &str, sizes: &[i64], element_bytes: u64, initialized: bool) -> Result<Self, DiscoverError> {
        let size = sizes3(&format!("buffer '{name}': shape"), sizes, 1)?;
        let times = |all: u128, &n: &i64| all.saturating_mul(u128::from(n.unsigned_abs()));
        let bytes = size.iter().fold(u128::from(element_bytes), times);
        if element_bytes == 0 || bytes >= MOST_BYTES {
            let what = format!("buffer '{name}' has {bytes} bytes; accepted are 1 to {}", MOST_BYTES - 1);
            return Err(DiscoverError::Input(what));
        }
        Ok(Self { name: name.to_owned(), dims: sizes.len(), shape: Box3::of_size(size), element_bytes, initialized })
    }
}

/// The exclusive limit of coordinates, so that sums of a few coordinates never overflow.
pub const MOST_EXTENT: i64 = 1 << 60;

/// Checks that there are one to three numbers, each at least `least`, and returns three; missing numbers become 1.
pub fn sizes3(what: &str, given: &[i64], least: i64) -> Result<[i64; 3], DiscoverError> {
    if given.is_empty() || given.len() > 3 {
        let count = given.len();
        return Err(DiscoverError::Input(format!("{what} has {count} dimensions; accepted are 1 to 3")));
    }
    if let Some(wrong) = given.iter().find(|&&n| n < least || n >= MOST_EXTENT) {
        return Err(DiscoverError::Input(format!("{what} has {wrong}; accepted are {least} to {}", MOST_EXTENT - 1)));
    }
    let mut full = [1; 3];
    full[..given.len()].copy_from_slice(given);
    Ok(full)
}

#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    pub name: &'a str,
    pub geometry: Geometry,
    pub accesses: &'a [Access],
}
