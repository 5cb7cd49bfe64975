//! The runtime's transport over point-to-point messages of MPI.

use std::ffi::c_int;

use unisono_runtime::{Buffer, Slice, Transport};

use crate::{
    abi::{Element, Number},
    call::Call,
    kernels,
    library::{Comm, Failed, Library, Outcome, check, int},
    planned::grow,
};

/// The transport of one call.
pub struct Port<'a> {
    pub library: &'a Library,
    pub comm: Comm,
    pub call: Call,
    pub scratch: *mut u8,
    /// For an operand that must not be overwritten yet.
    pub spare: &'a mut Vec<u128>,
    pub ranks: u32,
    /// What is added to a rank of the schedule to get the rank of the communicator.
    pub shift: u32,
}

impl Port<'_> {
    #[inline]
    fn address(&self, slice: Slice) -> *mut u8 {
        let base = match slice.buffer {
            Buffer::In => self.call.input.cast_mut(),
            Buffer::Out => self.call.output,
            Buffer::Scratch => self.scratch,
        };
        base.wrapping_add(slice.start * self.call.element_bytes)
    }

    /// The length of a message, which a plan that nobody proved may make longer than an `int` holds.
    #[inline]
    fn bytes(&self, slice: Slice) -> Outcome<c_int> {
        slice.len.checked_mul(self.call.element_bytes).ok_or(Failed::COUNT).and_then(int)
    }

    #[inline]
    fn peer(&self, rank: u32) -> Outcome<c_int> {
        int((u64::from(rank) + u64::from(self.shift)) % u64::from(self.ranks))
    }
}

impl Transport for Port<'_> {
    type Request = usize;
    type Error = Failed;

    #[inline]
    fn send(&mut self, peer: u32, tag: u32, from: Slice) -> Outcome<usize> {
        let (f, byte) = (&self.library.functions, self.library.constants.byte);
        let (address, bytes, peer) = (self.address(from) as usize, self.bytes(from)?, self.peer(peer)?);
        let (tag, mut request) = (int(tag)?, 0);
        // SAFETY: the slice lies in the call's memory or the scratch, which are kept until the request has ended
        // (`Planned::run`); the runtime leaves the slice alone meanwhile.
        check(unsafe { (f.Isend)(address, bytes, byte, peer, tag, self.comm, &raw mut request) })?;
        Ok(request)
    }

    #[inline]
    fn receive(&mut self, peer: u32, tag: u32, into: Slice) -> Outcome<usize> {
        let (f, byte) = (&self.library.functions, self.library.constants.byte);
        let (address, bytes, peer) = (self.address(into) as usize, self.bytes(into)?, self.peer(peer)?);
        let (tag, mut request) = (int(tag)?, 0);
        // SAFETY: as for sends; nothing else reads or writes the slice until the request has ended.
        check(unsafe { (f.Irecv)(address, bytes, byte, peer, tag, self.comm, &raw mut request) })?;
        Ok(request)
    }

    #[inline]
    fn test(&mut self, request: &mut usize) -> Outcome<bool> {
        let mut flag = 0;
        let ignore = self.library.constants.status_ignore;
        // SAFETY: the request is one of this run's.
        check(unsafe { (self.library.functions.Test)(request, &raw mut flag, ignore) })?;
        Ok(flag != 0)
    }

    #[inline]
    fn wait(&mut self, request: &mut usize) -> Outcome {
        // SAFETY: the request is one of this run's.
        check(unsafe { (self.library.functions.Wait)(request, self.library.constants.status_ignore) })
    }

    #[inline]
    fn copy(&mut self, from: Slice, to: Slice) {
        let (source, target) = (self.address(from), self.address(to));
        // In place most elements are where they go.
        if std::ptr::eq(source, target) {
            return;
        }
        // SAFETY: both slices lie in the call's memory and have one length.
        unsafe { std::ptr::copy(source, target, from.len * self.call.element_bytes) }
    }

    fn combine(&mut self, left: Slice, right: Slice, to: Slice) -> Outcome {
        let Some(reduction) = self.call.reduction else {
            // A barrier only waits for its messages.
            return Ok(());
        };
        let (left, right, target) = (self.address(left), self.address(right), self.address(to));
        let count = to.len;
        let bytes = count * self.call.element_bytes;
        let known = reduction.element.zip(reduction.op).is_some_and(|(element, op)| {
            // SAFETY: all three lie in the call's memory, with `count` elements each; a schedule's instruction reads and
            // writes an element at one place only.
            unsafe { kernels::combine(element, op, left, right, target, count) }
        });
        if known {
            return Ok(());
        }
        // Reduce_local computes `inout = in op inout`: the right operand has to be where the result goes. Operands are
        // swapped only where that cannot change a bit: a minimum of +0 and -0, or of a NaN, may depend on their order.
        let integer = |element: Element| matches!(element.number, Number::Signed | Number::Unsigned | Number::Bits);
        let exact = reduction.op.is_some() && reduction.element.is_some_and(integer);
        let (given, result) = match (target == left, target == right) {
            (_, true) => (left, target),
            (true, _) if exact => (right, target),
            (true, _) => {
                grow(self.spare, bytes)?;
                (left, self.spare.as_mut_ptr().cast())
            }
            _ => (left, target),
        };
        if result != left && result != right {
            // SAFETY: the operand as above; the result's memory is the call's, or was just made for so many bytes.
            unsafe { std::ptr::copy(right, result, bytes) };
        }
        let f = &self.library.functions;
        let (datatype, op) = (reduction.datatype, reduction.op_handle);
        let count = int(count)?;
        // SAFETY: `count` elements of the datatype lie at both places, as above.
        check(unsafe { (f.Reduce_local)(given as usize, result as usize, count, datatype, op) })?;
        if result != target {
            // SAFETY: as above.
            unsafe { std::ptr::copy(result, target, bytes) };
        }
        Ok(())
    }
}
