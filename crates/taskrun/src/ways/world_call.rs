//! A collective of all ranks, with equal parts, by a plan of the host.

use std::sync::Arc;

use unisono_collective::Kind;
use unisono_mpi::Layout;

use super::library_call::{Packed, Packing};
use crate::memory::Array;

pub struct WorldCall {
    pub kind: Kind,
    /// The length of one rank's part, or of the vector: in elements if the call `combines`, otherwise in bytes.
    pub count: usize,
    /// True if the call combines elements of the array.
    pub combines: bool,
    /// The root, as a rank of the program; 0 for collectives without a root.
    pub root: u32,
    pub(crate) layout: Layout,
    pub(crate) packing: Packing,
}

impl WorldCall {
    /// Returns the bytes of this rank's input; if the rank has no input, the bytes of the result. The result replaces
    /// the input unless it has separate memory.
    pub fn bytes(&self) -> usize {
        self.packing.given.as_ref().or(self.packing.got.as_ref()).map_or(0, |side| side.bytes)
    }

    /// Returns the bytes of the result; `None` if it replaces the input.
    pub fn result_bytes(&self) -> Option<usize> {
        self.packing.got.as_ref().filter(|_| !self.packing.shared).map(|side| side.bytes)
    }

    /// Returns the offset of the input in the array in bytes, if the call reads it there.
    pub fn at(&self) -> Option<usize> {
        self.packing.at
    }

    /// Returns the offset of the result in the array in bytes, if nothing else accesses the array meanwhile.
    pub fn in_place(&self) -> Option<usize> {
        self.packing.in_place.as_ref().map(|(at, _)| *at)
    }

    /// Packs this rank's input.
    ///
    /// # Safety
    /// The memory must have [`Self::bytes`] bytes, and nothing else may use it meanwhile.
    ///
    /// # Panics
    /// Panics if the array has another layout.
    pub unsafe fn pack(&self, array: &Arc<Array>, into: *mut u8) {
        assert_eq!(array.layout, self.layout, "a call is for arrays of one layout");
        // SAFETY: as the caller guarantees; the layout is that of the parts. Commands that write the parts wait for the
        // exchange.
        unsafe { self.packing.pack(array, into) };
    }

    /// Unpacks the result to its regions in the array.
    ///
    /// # Safety
    /// The memory must have the bytes of the result, and nothing else may write it meanwhile.
    ///
    /// # Panics
    /// Panics if the array has another layout.
    pub unsafe fn unpack(&self, array: &Arc<Array>, from: *const u8) {
        assert_eq!(array.layout, self.layout, "a call is for arrays of one layout");
        if let Some(Packed { parts, .. }) = &self.packing.got {
            // SAFETY: as the caller guarantees; the layout is that of the parts. Commands that touch the parts wait for
            // the exchange.
            unsafe { parts.unpack(array.at(0), from) };
        }
    }
}
