//! One call of a collective, as all ranks see it, and this rank's memory.

use unisono_collective::{Kind, OperatorClass};

use crate::{
    abi::{Element, Op},
    kernels,
    library::{Datatype, OpHandle},
};

/// How elements are combined.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// None: an operator of the program's own, which only the library can apply.
    pub op: Option<Op>,
    /// Its operands may be swapped.
    pub commutes: bool,
    pub op_handle: OpHandle,
    pub datatype: Datatype,
    /// None where only the library knows the datatype.
    pub element: Option<Element>,
}

impl Reduction {
    /// Whether our own sums serve it, which treat every element of a call alike, however it is cut into pieces.
    pub fn is_ours(&self) -> bool {
        self.element.zip(self.op).is_some_and(|(element, op)| kernels::serves(element, op))
    }
}

/// A call over memory without gaps. `input` and `output` do not overlap, unless the call is in place; either may be
/// dangling where this rank has none.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub kind: Kind,
    pub root: u32,
    /// Elements, counted as the collective counts. Where data only moves, an element is a byte: then ranks may describe
    /// the same bytes with different datatypes.
    pub elements: usize,
    pub element_bytes: usize,
    pub reduction: Option<Reduction>,
    pub input: *const u8,
    pub output: *mut u8,
    /// The input lies in the output where MPI's `MPI_IN_PLACE` has it. For entries that [`crate::Rows::runs_in_place`].
    pub in_place: bool,
}

// SAFETY: addresses are only numbers here. Who runs the call promises that the memory is there (`Planned::run`), on
// whichever thread that is.
unsafe impl Send for Call {}
// SAFETY: as above; nothing of it changes.
unsafe impl Sync for Call {}

impl Call {
    pub fn class(&self) -> OperatorClass {
        match self.reduction {
            None => OperatorClass::None,
            Some(reduction) if reduction.commutes => OperatorClass::Commutative,
            Some(_) => OperatorClass::Ordered,
        }
    }

    /// Bytes of the input and of the output of a rank that has both; none where they are more than memory has.
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

    /// Bytes as decision tables count them.
    pub fn bytes(&self) -> u64 {
        if self.kind == Kind::Barrier { 0 } else { (self.elements as u64).saturating_mul(self.element_bytes as u64) }
    }
}
