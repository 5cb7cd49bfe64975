//! The arrangement of ranks in rows, columns and further dimensions, and the parameter that states it.
//!
//! Rank k has the coordinates of k, row-major: the last dimension varies first.

use std::fmt;

use unisono_base::narrow;

use crate::{AlgorithmError, Case, Param, Params};

/// The most dimensions; a hypercube of 65,536 ranks has 16.
const MOST: usize = 16;

/// The number of ranks along each dimension.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Extents {
    dims: [u32; MOST],
    count: u8,
}

/// The parameter of algorithms that use dimensions.
pub const DIMS: Param = Param {
    name: "dims",
    values: "RxC or more extents, whose product is the number of ranks (default: those of the network, else the two \
             factors nearest to a square)",
};

impl Extents {
    /// Creates extents; `None` without dimensions, with too many, with an extent of 0, or with 2^32 ranks or more.
    pub fn new(dims: &[u32]) -> Option<Self> {
        if dims.is_empty() || dims.len() > MOST || dims.contains(&0) {
            return None;
        }
        dims.iter().try_fold(1u32, |all, &d| all.checked_mul(d))?;
        let mut kept = [1; MOST];
        kept[..dims.len()].copy_from_slice(dims);
        Some(Self { dims: kept, count: narrow::<u8>(dims.len()) })
    }

    /// Returns the two factors of `ranks` that are nearest to each other, the smaller factor first.
    pub fn nearest_to_square(ranks: u32) -> Self {
        let rows = (1..=ranks.isqrt()).rev().find(|r| ranks.is_multiple_of(*r)).unwrap_or(1);
        let mut dims = [1; MOST];
        (dims[0], dims[1]) = (rows, ranks / rows.max(1));
        Self { dims, count: 2 }
    }

    /// Returns the extents that the parameter `dims` states. Without it, returns the extents of the network if there
    /// are several and their product is the number of ranks, and otherwise the factors that are nearest to each other.
    ///
    /// # Errors
    ///
    /// Returns an error if `dims` does not state extents whose product is the number of ranks.
    pub fn of(algorithm: &'static str, case: &Case, params: &Params) -> Result<Self, AlgorithmError> {
        let ranks = case.collective.ranks;
        let Some(text) = params.get(DIMS.name) else {
            let own = case.ranks().extents.filter(|e| e.ranks() == ranks && e.count > 1);
            return Ok(own.unwrap_or_else(|| Self::nearest_to_square(ranks)));
        };
        let sides: Option<Vec<u32>> = text.split('x').map(|side| side.parse().ok()).collect();
        let parsed = sides.and_then(|sides| Self::new(&sides)).filter(|e| e.ranks() == ranks);
        parsed.ok_or_else(|| AlgorithmError::Param {
            algorithm,
            param: DIMS.name,
            found: text.to_owned(),
            accepted: format!("extents such as {}, up to {MOST} of them, whose product is {ranks}", {
                Self::nearest_to_square(ranks)
            }),
        })
    }

    /// Returns two extents: those of [`Self::of`] if there are two, otherwise the two factors that are nearest to each
    /// other.
    ///
    /// # Errors
    ///
    /// Returns an error if [`Self::of`] does, or if `dims` has more or fewer than two extents.
    pub fn of_two(algorithm: &'static str, case: &Case, params: &Params) -> Result<(u32, u32), AlgorithmError> {
        let ranks = case.collective.ranks;
        match *Self::of(algorithm, case, params)?.dims() {
            [rows, columns] => Ok((rows, columns)),
            _ if params.get(DIMS.name).is_none() => {
                let square = Self::nearest_to_square(ranks);
                Ok((square.dims[0], square.dims[1]))
            }
            _ => Err(AlgorithmError::Param {
                algorithm,
                param: DIMS.name,
                found: params.get(DIMS.name).unwrap_or_default().to_owned(),
                accepted: format!("RxC with R C = {ranks}"),
            }),
        }
    }

    pub fn dims(&self) -> &[u32] {
        &self.dims[..usize::from(self.count)]
    }

    pub fn ranks(&self) -> u32 {
        self.dims().iter().product()
    }

    /// Returns the difference of the ranks of two neighbors along a dimension.
    pub fn stride(&self, dim: usize) -> u32 {
        self.dims()[dim + 1..].iter().product()
    }

    pub fn coordinate(&self, rank: u32, dim: usize) -> u32 {
        rank / self.stride(dim) % self.dims[dim]
    }

    /// Returns the rank with another coordinate along `dim`.
    pub fn with(&self, rank: u32, dim: usize, coordinate: u32) -> u32 {
        rank - self.coordinate(rank, dim) * self.stride(dim) + coordinate * self.stride(dim)
    }

    /// Returns the rank `steps` steps ahead along a dimension, cyclically.
    pub fn shifted(&self, rank: u32, dim: usize, steps: u32) -> u32 {
        let extent = u64::from(self.dims[dim]);
        let at = (u64::from(self.coordinate(rank, dim)) + u64::from(steps)) % extent;
        self.with(rank, dim, narrow::<u32>(at))
    }
}

impl fmt::Display for Extents {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let sides: Vec<String> = self.dims().iter().map(ToString::to_string).collect();
        f.write_str(&sides.join("x"))
    }
}
