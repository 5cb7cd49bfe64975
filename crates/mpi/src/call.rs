//! A call of a collective: the arguments that are equal on all ranks, and this rank's memory.

use unisono_collective::{Kind, OperatorClass};

use crate::{
    abi::{Element, Op},
    kernels,
    library::{Datatype, OpHandle},
};

/// The operator and the datatype of a call that reduces.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// The operator; None for operators that [`Op`] lacks, which only the library can apply.
    pub op: Option<Op>,
    /// True if the operands may be swapped.
    pub commutes: bool,
    pub op_handle: OpHandle,
    pub datatype: Datatype,
    /// The element of the datatype ([`crate::Constants::element`]); if None, only the library combines elements.
    pub element: Option<Element>,
}

impl Reduction {
    /// Returns whether the kernels of this crate combine the elements. If so, the bits of a result do not depend on the
    /// division of the elements into pieces.
    pub fn is_ours(&self) -> bool {
        self.element.zip(self.op).is_some_and(|(element, op)| kernels::serves(element, op))
    }
}

/// A call over memory without gaps. `input` and `output` do not overlap, unless the call is in place. A pointer may be
/// invalid if the collective does not use this memory on this rank, such as the output of a reduce on a rank other than
/// the root.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub kind: Kind,
    pub root: u32,
    /// The number of elements, counted as in the argument `count` of the collective. If a program calls a collective of
    /// MPI without a reduction, an element is a byte, because ranks may describe the same bytes with different
    /// datatypes.
    pub elements: usize,
    pub element_bytes: usize,
    pub reduction: Option<Reduction>,
    pub input: *const u8,
    pub output: *mut u8,
    /// True if the input is in the output's memory, where `MPI_IN_PLACE` defines it. Only entries with
    /// [`crate::Rows::runs_in_place`] accept such a call.
    pub in_place: bool,
}

// SAFETY: addresses are only numbers here. The code that runs the call guarantees that the memory is valid
// (`Planned::run`), on any thread.
unsafe impl Send for Call {}
// SAFETY: as above. A shared call is never changed.
unsafe impl Sync for Call {}

impl Call {
    pub fn class(&self) -> OperatorClass {
        match self.reduction {
            None => OperatorClass::None,
            Some(reduction) if reduction.commutes => OperatorClass::Commutative,
            Some(_) => OperatorClass::Ordered,
        }
    }

    /// Returns the bytes of the input and the bytes of the output of a rank that has both; None if a size overflows.
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

    /// Returns the bytes of `elements` elements, by which decision tables choose a row; 0 for a barrier.
    pub fn bytes(&self) -> u64 {
        if self.kind == Kind::Barrier { 0 } else { (self.elements as u64).saturating_mul(self.element_bytes as u64) }
    }
}
