//! One call of a collective, as all ranks see it, and this rank's memory.

use unisono_collective::{Kind, OperatorClass};

use crate::{
    abi::{Element, Op},
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

/// A call over memory without gaps. `input` and `output` do not overlap, unless the call is in place; either may be dangling
/// where this rank has none.
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
    /// The input lies in the output where MPI's `MPI_IN_PLACE` has it. For entries that [`crate::Planned::runs_in_place`].
    pub in_place: bool,
}

// SAFETY: the addresses are the caller's, who keeps the memory as long as the call may run, on whichever thread.
unsafe impl Send for Call {}

impl Call {
    pub fn class(&self) -> OperatorClass {
        match self.reduction {
            None => OperatorClass::None,
            Some(reduction) if reduction.commutes => OperatorClass::Commutative,
            Some(_) => OperatorClass::Ordered,
        }
    }

    /// Bytes as decision tables count them.
    pub fn bytes(&self) -> u64 {
        if self.kind == Kind::Barrier { 0 } else { (self.elements as u64).saturating_mul(self.element_bytes as u64) }
    }
}
