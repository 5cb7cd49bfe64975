//! The runtime's transport over point-to-point messages of MPI.

use std::ffi::c_int;

use unisono_runtime::{Buffer, Slice, Transport};

use crate::{
    abi::{Element, Number},
    call::Call,
    functions::Status,
    kernels,
    library::{Failed, Library, Outcome, check, int},
    patience::Patience,
    pause::Pause,
    planned::grow,
    route::Route,
    watch::Watch,
};

/// A message under way.
pub struct Request {
    handle: usize,
    /// For a receive, the bytes that the schedule expects. A shorter message shows that the ranks' arguments differ;
    /// MPI itself detects a longer one.
    expected: Option<c_int>,
    /// The peer's rank in the communicator of the route.
    peer: c_int,
}

pub struct Port<'a> {
    pub library: &'a Library,
    pub route: &'a Route,
    pub call: Call,
    pub scratch: *mut u8,
    /// Memory for the result of `MPI_Reduce_local`, used if the target still holds the left operand.
    pub spare: &'a mut Vec<u128>,
    pub ranks: u32,
    /// The number added to a rank of the schedule, modulo `ranks`, to get the rank of the communicator.
    pub shift: u32,
    /// Finds ranks that made this call with another length; None if the plan's rows depend on no length.
    pub watch: Option<&'a mut Watch>,
    /// Reports a wait longer than the limit.
    pub patience: Option<&'a mut Patience>,
    /// Pauses of a call that blocks; None if it does not block, or the library pauses itself.
    pub pause: Option<Pause>,
    /// True if the MPI library's progress function calls this transport. In MPICH, the transport must then not call
    /// functions that make progress.
    pub inside: bool,
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

    /// Returns the length of a message in bytes. Returns an error if the length exceeds an `int`, which is possible
    /// only for an unproven plan.
    #[inline]
    fn bytes(&self, slice: Slice) -> Outcome<c_int> {
        slice.len.checked_mul(self.call.element_bytes).ok_or(Failed::COUNT).and_then(int)
    }

    #[inline]
    fn peer(&self, rank: u32) -> Outcome<c_int> {
        int((u64::from(rank) + u64::from(self.shift)) % u64::from(self.ranks))
    }
}

impl Port<'_> {
    /// Returns an error if a message is shorter than the schedule expects: its sender made the call with another
    /// length.
    #[inline]
    fn is_whole(&self, request: &Request, status: &Status) -> Outcome {
        let Some(expected) = request.expected else { return Ok(()) };
        let (mut found, byte) = (0, self.library.constants.byte);
        // SAFETY: the status is that of a completed message.
        check(unsafe { (self.library.functions.Get_count)(status, byte, &raw mut found) })?;
        if found == expected { Ok(()) } else { Err(Failed(self.library.constants.truncated)) }
    }
}

impl Transport for Port<'_> {
    type Request = Request;
    type Error = Failed;

    #[inline]
    fn send(&mut self, peer: u32, tag: u32, from: Slice) -> Outcome<Request> {
        let (f, byte, comm) = (&self.library.functions, self.library.constants.byte, self.route.comm);
        let (address, bytes) = (self.address(from) as usize, self.bytes(from)?);
        let (peer, tag) = self.route.to(self.peer(peer)?, tag)?;
        let mut handle = 0;
        // SAFETY: the slice is in the call's memory or the scratch memory, which are kept until the request has ended
        // (`Planned::run`). The runtime does not use the slice meanwhile.
        check(unsafe { (f.Isend)(address, bytes, byte, peer, tag, comm, &raw mut handle) })?;
        Ok(Request { handle, expected: None, peer })
    }

    #[inline]
    fn receive(&mut self, peer: u32, tag: u32, into: Slice) -> Outcome<Request> {
        let (f, byte, comm) = (&self.library.functions, self.library.constants.byte, self.route.comm);
        let (address, bytes) = (self.address(into) as usize, self.bytes(into)?);
        let (peer, tag) = self.route.from(self.peer(peer)?, tag)?;
        let mut handle = 0;
        // SAFETY: as for sends; nothing else reads or writes the slice until the request has ended.
        check(unsafe { (f.Irecv)(address, bytes, byte, peer, tag, comm, &raw mut handle) })?;
        Ok(Request { handle, expected: Some(bytes), peer })
    }

    #[inline]
    fn test(&mut self, request: &mut Request) -> Outcome<bool> {
        if self.inside && !self.library.may_have_ended(request.handle) {
            return Ok(false);
        }
        let (mut flag, mut status) = (0, Status::EMPTY);
        // SAFETY: the request belongs to this run, and there is room for a status.
        check(unsafe { (self.library.functions.Test)(&raw mut request.handle, &raw mut flag, &raw mut status) })?;
        if let Some(patience) = &mut self.patience {
            match flag {
                0 => patience.pending(request.peer, request.expected.is_some()),
                _ => patience.ended(&self.call),
            }
        }
        if flag != 0 {
            self.is_whole(request, &status)?;
        }
        Ok(flag != 0)
    }

    #[inline]
    fn wait(&mut self, request: &mut Request) -> Outcome {
        while !self.test(request)? {
            if let Err(failed) = self.idle() {
                if request.expected.is_some() {
                    self.give_up(request);
                }
                return Err(failed);
            }
        }
        Ok(())
    }

    #[inline]
    fn idle(&mut self) -> Outcome {
        if let Some(patience) = &mut self.patience {
            patience.idle(&self.call);
        }
        if let Some(pause) = &mut self.pause {
            pause.idle();
        }
        let unlike = self.watch.as_mut().is_some_and(|watch| watch.finds_unlike(&self.call));
        if unlike { Err(Failed(self.library.constants.truncated)) } else { Ok(()) }
    }

    fn give_up(&mut self, request: &mut Request) {
        let (f, mut status) = (&self.library.functions, Status::EMPTY);
        // SAFETY: the request belongs to this run and has not ended.
        if unsafe { (f.Cancel)(&raw mut request.handle) } == 0 {
            // SAFETY: a receive ends if it is cancelled or its message is already arriving; there is room for a status.
            unsafe { (f.Wait)(&raw mut request.handle, &raw mut status) };
        }
    }

    #[inline]
    fn copy(&mut self, from: Slice, to: Slice) {
        let (source, target) = (self.address(from), self.address(to));
        // If a call is in place, most elements are already at their destination.
        if std::ptr::eq(source, target) {
            return;
        }
        // SAFETY: both slices are in the call's memory and have the same length.
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
            // SAFETY: all three are in the call's memory, with `count` elements each. An instruction of a schedule
            // reads and writes an element at one place only.
            unsafe { kernels::combine(element, op, left, right, target, count) }
        });
        if known {
            return Ok(());
        }
        // `MPI_Reduce_local` computes `inout = in op inout`, so the right operand must first be in the memory of the
        // result. The operands are swapped, to avoid a copy, only if the swap cannot change a bit: a minimum of +0 and
        // -0, or with a NaN, may depend on the order.
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
            // SAFETY: the operand as above; the result's memory is the call's, or was just made for `bytes` bytes.
            unsafe { std::ptr::copy(right, result, bytes) };
        }
        let f = &self.library.functions;
        let (datatype, op) = (reduction.datatype, reduction.op_handle);
        let count = int(count)?;
        // SAFETY: both places hold `count` elements of the datatype, as above.
        check(unsafe { (f.Reduce_local)(given as usize, result as usize, count, datatype, op) })?;
        if result != target {
            // SAFETY: as above.
            unsafe { std::ptr::copy(result, target, bytes) };
        }
        Ok(())
    }
}
