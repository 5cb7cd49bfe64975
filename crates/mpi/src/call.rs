//! A call of a collective: the arguments that are equal on all ranks, and this rank's memory.

use unisono_collective::{Kind, OperatorClass};

use crate::{
    abi::{Element, Op},
    kernels,
    library::{Datatype, OpHandle},
};

/// The operator of a call and its datatype.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// None: an operator of the program, which only the library can apply.
    pub op: Option<Op>,
    /// True if the operands may be swapped.
    pub commutes: bool,
    pub op_handle: OpHandle,
    pub datatype: Datatype,
    /// None: only the library can inspect the datatype.
    pub element: Option<Element>,
}

impl Reduction {
    /// Returns whether our own kernels combine the elements. They treat all elements of a call alike, however the call
    /// is cut into pieces.
    pub fn is_ours(&self) -> bool {
        self.element.zip(self.op).is_some_and(|(element, op)| kernels::serves(element, op))
    }
}

/// A call over memory without gaps. `input` and `output` do not overlap, unless the call is in place. A pointer may
/// dangle if this rank does not have that memory.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub kind: Kind,
    pub root: u32,
    /// The number of elements, as the collective counts. Without a reduction an element is a byte, because ranks may
    /// then describe the same bytes with different datatypes.
    pub elements: usize,
    pub element_bytes: usize,
    pub reduction: Option<Reduction>,
    pub input: *const u8,
    pub output: *mut u8,
    /// The input is in the output, at the place that `MPI_IN_PLACE` defines. Only for entries that
    /// [`crate::Rows::runs_in_place`].
    pub in_place: bool,
}

// SAFETY: addresses are only numbers here. The code that runs the call guarantees that the memory is valid
// (`Planned::run`), on any thread.
unsafe impl Send for Call {}
// SAFETY: as above; a shared call is never changed.
unsafe impl Sync for Call {}

impl Call {
    pub fn class(&self) -> OperatorClass {
        match self.reduction {
            None => OperatorClass::None,
            Some(reduction) if reduction.commutes => OperatorClass::Commutative,
            Some(_) => OperatorClass::Ordered,
        }
    }

    /// Returns the bytes of the input and of the output of a rank that has both; None if they overflow.
    pub fn sizes(&self, ranks: u32) -> Option<(usize, usize)> {
        let piece = self.elements.checked_mul(self.element_bytes)?;
        let all = piece.checked_mul(usize::try_from(ranks).ok()?)?;
        Some(match self.kind {
            Kind::Allgather | Kind::Gather => (piece, all),
            Kind::ReduceScatter | Kind::Scatter => (all, piece),
            Kind::Alltoall => (all, all),
            _ => (piece, piece),
        })
    }

    /// Returns the bytes as decision tables count them.
    pub fn bytes(&self) -> u64 {
        if self.kind == Kind::Barrier { 0 } else { (self.elements as u64).saturating_mul(self.element_bytes as u64) }
    }
}
