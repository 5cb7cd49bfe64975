//! The memory of a call: its sizes, and the addresses of its arrays.

use std::any::Any;

use unisono_collective::Kind;
use unisono_mpi::Call;

use crate::error::RunError;

/// An array of the program that is the input or the output of a call.
pub struct Side {
    address: *mut u8,
    pub bytes: usize,
    /// True if the array's elements are contiguous.
    contiguous: bool,
    writable: bool,
    pub object: Box<dyn Any + Send>,
}

impl Side {
    /// Describes memory of an array of the host; `object` keeps the memory alive.
    ///
    /// # Safety
    /// The memory must be valid for `bytes` bytes while `object` lives.
    pub unsafe fn new(
        address: *mut u8,
        bytes: usize,
        contiguous: bool,
        writable: bool,
        object: Box<dyn Any + Send>,
    ) -> Self {
        Self { address, bytes, contiguous, writable, object }
    }
}

/// Returns the bytes of the input and of the output of a rank: 0 if the rank has none. Only the root has the input of a
/// broadcast or scatter, and the output of a reduce or gather; the root of a broadcast has no output.
///
/// # Errors
/// Returns an error if there are too many elements.
pub fn sizes(call: &Call, ranks: u32, rank: u32) -> Result<(usize, usize), RunError> {
    let refusal = || format!("{} elements of {} bytes are too many", call.elements, call.element_bytes);
    let (given, got) = call.sizes(ranks).ok_or_else(|| RunError::input(refusal()))?;
    let is_root = call.root == rank;
    Ok(match call.kind {
        Kind::Broadcast if is_root => (given, 0),
        Kind::Broadcast => (0, got),
        Kind::Scatter if !is_root => (0, got),
        Kind::Reduce | Kind::Gather if !is_root => (given, 0),
        _ => (given, got),
    })
}

/// Refuses arrays that overlap or, with `in_place`, an input that is not at the position in the output array, of `room`
/// bytes, where `MPI_IN_PLACE` expects it.
pub fn check_places(
    call: &Call,
    rank: u32,
    (given, got): (usize, usize),
    in_place: bool,
    room: usize,
) -> Result<(), RunError> {
    let (from, to) = (call.input.addr(), call.output.addr());
    if !in_place {
        return match from < to.saturating_add(got) && to < from.saturating_add(given) {
            true => Err(RunError::input("the arrays of the input and of the result share memory")),
            false => Ok(()),
        };
    }
    let offset = if call.kind == Kind::Allgather { rank as usize * given } else { 0 };
    match to.checked_add(offset) == Some(from) && offset + given <= room {
        true => Ok(()),
        false => Err(RunError::input("an input in place has to lie in the array of the result")),
    }
}

/// Returns the address of an array of at least `bytes` bytes; null if `bytes` is 0.
pub fn address(side: Option<&Side>, bytes: usize, writes: bool) -> Result<*mut u8, RunError> {
    let Some(side) = side.filter(|_| bytes > 0) else {
        return match bytes {
            0 => Ok(std::ptr::null_mut()),
            _ => Err(RunError::input(format!("an array of {bytes} bytes is missing"))),
        };
    };
    if !side.contiguous || (writes && !side.writable) || side.bytes < bytes {
        let needed = format!("an array has to be contiguous, {bytes} bytes long, and writable for results");
        return Err(RunError::input(needed));
    }
    Ok(side.address)
}
