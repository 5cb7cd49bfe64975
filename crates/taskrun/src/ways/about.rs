//! The operation that is to be carried out, with the queries of one rank.

use unisono_discover::{Box3, Operation, Region, Sides};
use unisono_mpi::{Function, Layout};

use super::library_call::{Arguments, LibraryCall, Packed, Packing, Part};
use crate::error::RunError;

/// The reduction of the partial results of an array.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reducing {
    /// The number of the operator; `None` if the tasks that reduce the array have several operators.
    pub operator: Option<u32>,
    /// The reduction by MPI; `None` if MPI has no such operator for the elements.
    pub mpi: Option<MpiReduction>,
}

/// The arguments of a reduction by MPI.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MpiReduction {
    pub datatype: usize,
    pub op: usize,
    /// The bytes of the operator's neutral element.
    pub neutral: Vec<u8>,
    /// True if the order of the operands does not change the bits of the result.
    pub exact: bool,
}

pub struct About<'a> {
    pub sides: &'a Sides,
    pub operation: &'a Operation,
    pub rank: u32,
    pub ranks: u32,
    pub layout: Layout,
    /// The maximum number of bytes of one call of the MPI library: the length of the longest message.
    pub largest: usize,
    pub participants: Vec<u32>,
    pub reducing: Option<&'a Reducing>,
}

impl About<'_> {
    /// Returns whether all ranks participate.
    pub fn everyone(&self) -> bool {
        self.participants.len() == self.ranks as usize
    }

    /// Returns the number of elements that all ranks together receive from other ranks.
    pub fn moved(&self) -> usize {
        usize::try_from(self.operation.elements(self.sides)).unwrap_or(usize::MAX)
    }

    pub fn bytes(&self, elements: usize) -> usize {
        elements.saturating_mul(self.layout.element_bytes)
    }

    /// Returns the index of a rank among the participants; 0 if it is none of them.
    pub fn place_of(&self, rank: u32) -> u32 {
        let place = self.participants.iter().position(|&k| k == rank).unwrap_or_default();
        u32::try_from(place).unwrap_or_default()
    }

    /// Returns the region that a rank contributes.
    pub fn given(&self, rank: u32) -> Region {
        self.operation.given(self.sides, rank)
    }

    /// Returns the region that a rank receives.
    pub fn received(&self, rank: u32) -> Region {
        self.operation.received(self.sides, rank)
    }

    /// Returns the regions that this rank sends, by the rank that receives them.
    pub fn sends(&self) -> Vec<(u32, Region)> {
        self.operation.sends(self.sides, self.rank)
    }

    /// Returns the regions that this rank receives, by the rank that sends them.
    pub fn receives(&self) -> Vec<(u32, Region)> {
        self.operation.receives(self.sides, self.rank)
    }

    /// Returns whether one call of the MPI library may have `elements` elements.
    pub fn fits(&self, elements: usize) -> bool {
        self.bytes(elements) <= self.largest
    }

    /// Describes packed memory of `elements` elements, in which `rows` are the parts of the array. MPI gets `counts`
    /// and `places`: the lengths and offsets of the ranks' parts, in elements for a reduction, otherwise in bytes.
    /// Never returns `Ok(None)`.
    pub fn packed(
        &self,
        rows: Vec<Part>,
        elements: usize,
        counts: &[usize],
        places: &[usize],
    ) -> Result<Option<Packed>, RunError> {
        Packed::new(&self.layout, rows, self.bytes(elements), counts, places).map(Some)
    }

    /// Describes packed memory of `elements` elements like [`Self::packed`], except that MPI gets one length, that of
    /// the whole memory in bytes, and no offsets.
    pub fn one(&self, rows: Vec<Part>, elements: usize) -> Result<Option<Packed>, RunError> {
        self.packed(rows, elements, &[self.bytes(elements)], &[])
    }

    /// Returns a call of the library that moves bytes. `root` is a rank of the program.
    pub fn call(&self, function: Function, root: u32, packing: Packing) -> LibraryCall {
        let arguments = Arguments { function, comm: 0, reduction: None, root: self.place_of(root) };
        LibraryCall::new(arguments, self.layout, packing)
    }
}

pub fn volume(boxes: &[Box3]) -> usize {
    usize::try_from(boxes.iter().map(Box3::volume).sum::<u64>()).unwrap_or(usize::MAX)
}

/// Returns each box with the offset of its first element in memory in which the boxes are packed one after the other.
/// The first box has offset `first`, in elements.
fn starts(boxes: &[Box3], first: usize) -> impl Iterator<Item = (Box3, usize)> {
    boxes.iter().scan(first, |at, part| {
        let start = *at;
        *at += volume(&[*part]);
        Some((*part, start))
    })
}

/// Returns each box as a [`Part`] that covers it, with the boxes packed one after the other from element `first` on.
pub fn packed_parts(boxes: &[Box3], first: usize) -> Vec<Part> {
    starts(boxes, first).map(|(part, start)| (part, start, part)).collect()
}

/// Returns the intersections of `wanted` and `boxes`, with `boxes` packed one after the other from element `first` on.
pub fn shared_parts(wanted: &[Box3], boxes: &[Box3], first: usize) -> Vec<Part> {
    let shared = |(part, start): (Box3, usize)| {
        let both = wanted.iter().map(move |other| part.intersect(other)).filter(|both| !both.is_empty());
        both.map(move |both| (both, start, part))
    };
    starts(boxes, first).flat_map(shared).collect()
}
