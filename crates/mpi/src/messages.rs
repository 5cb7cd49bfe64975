//! Nonblocking messages and collectives of the MPI library, on memory that the caller keeps valid.

use std::{
    ffi::c_int,
    ptr::{null, null_mut},
};

use crate::{
    functions::Status,
    library::{Comm, Datatype, Library, OpHandle, Outcome, check, int},
};

/// A message or collective under way: the request that the library returned.
#[must_use = "its memory is MPI's until it is over"]
#[derive(Debug)]
pub struct Begun(usize);

impl Begun {
    /// Takes over a request of the program, given by its handle. Nothing else may test or free the request.
    pub fn of_program(handle: usize) -> Self {
        Self(handle)
    }
}

/// The memory of the input or of the result of a collective: an address, and the counts and offsets of ranks' elements
/// there.
#[derive(Clone, Copy, Debug)]
pub struct Shares<'a> {
    pub address: *mut u8,
    /// The number of elements of each rank, if the function has a count for each rank; else one number.
    pub counts: &'a [c_int],
    /// The index of each rank's first element in the memory; empty if the function takes no such indices.
    pub places: &'a [c_int],
    /// True if the input is in the result's memory, where `MPI_IN_PLACE` defines it.
    pub in_place: bool,
}

impl Shares<'_> {
    /// An input or a result without data.
    pub const NONE: Self = Self { address: null_mut(), counts: &[], places: &[], in_place: false };

    fn count(&self) -> c_int {
        self.counts.first().copied().unwrap_or(0)
    }
}

/// The nonblocking functions for collectives that [`Library::begin_collective`] calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Function {
    Allgather,
    Allgatherv,
    Allreduce,
    Alltoallv,
    Broadcast,
    Gatherv,
    Reduce,
    ReduceScatter,
    /// `MPI_Reduce_scatter_block`: all ranks receive equally many elements.
    ReduceScatterBlock,
    Scatterv,
}

impl Function {
    pub const ALL: [(&'static str, Self); 10] = [
        ("allgather", Self::Allgather),
        ("allgatherv", Self::Allgatherv),
        ("allreduce", Self::Allreduce),
        ("alltoallv", Self::Alltoallv),
        ("broadcast", Self::Broadcast),
        ("gatherv", Self::Gatherv),
        ("reduce", Self::Reduce),
        ("reduce-scatter", Self::ReduceScatter),
        ("reduce-scatter-block", Self::ReduceScatterBlock),
        ("scatterv", Self::Scatterv),
    ];

    /// Returns whether the input has a count for each rank.
    pub fn divides_input(self) -> bool {
        matches!(self, Self::Alltoallv | Self::ReduceScatter | Self::Scatterv)
    }

    /// Returns whether the result has a count for each rank.
    pub fn divides_result(self) -> bool {
        matches!(self, Self::Allgatherv | Self::Alltoallv | Self::Gatherv)
    }
}

/// The arguments of a collective that are equal on all ranks.
#[derive(Clone, Copy, Debug)]
pub struct Collective {
    pub function: Function,
    pub comm: Comm,
    pub datatype: Datatype,
    /// The operator of a reduction; 0 for other functions.
    pub op: OpHandle,
    pub root: c_int,
}

impl Library {
    /// Begins to send `bytes` bytes to rank `to`.
    ///
    /// # Safety
    /// The memory must be valid and unchanged until the message is complete.
    pub unsafe fn begin_send(&self, from: *const u8, bytes: usize, to: u32, tag: c_int, comm: Comm) -> Outcome<Begun> {
        let (bytes, to, byte) = (int(bytes)?, int(to)?, self.constants.byte);
        let mut handle = 0;
        // SAFETY: as the caller guarantees; one handle is written, of 32 or 64 bits; the word was 0 before.
        check(unsafe { (self.functions.Isend)(from as usize, bytes, byte, to, tag, comm, &raw mut handle) })?;
        Ok(Begun(handle))
    }

    /// Begins to receive `bytes` bytes from rank `from`.
    ///
    /// # Safety
    /// The memory must be valid, and nothing else may read or write it, until the message is complete.
    pub unsafe fn begin_receive(
        &self,
        into: *mut u8,
        bytes: usize,
        from: u32,
        tag: c_int,
        comm: Comm,
    ) -> Outcome<Begun> {
        let (bytes, from, byte) = (int(bytes)?, int(from)?, self.constants.byte);
        let mut handle = 0;
        // SAFETY: as the caller guarantees; one handle is written, of 32 or 64 bits; the word was 0 before.
        check(unsafe { (self.functions.Irecv)(into as usize, bytes, byte, from, tag, comm, &raw mut handle) })?;
        Ok(Begun(handle))
    }

    /// Returns whether a message or a collective is complete. Later calls for a complete one also return true.
    pub fn is_over(&self, begun: &mut Begun) -> Outcome<bool> {
        let (mut flag, mut status) = (0, Status::EMPTY);
        // SAFETY: the request is one of this library that was not freed; there is room for a status.
        check(unsafe { (self.functions.Test)(&raw mut begun.0, &raw mut flag, &raw mut status) })?;
        Ok(flag != 0)
    }

    /// Begins a collective.
    ///
    /// # Safety
    /// The memory of input and result must fit this rank's counts and places, which have one entry for each rank of the
    /// communicator if the function divides that memory. Until the collective is complete, the memory, the counts and
    /// the places must stay valid, nothing may change the input, and nothing else may read or write the result.
    pub unsafe fn begin_collective(&self, c: &Collective, from: Shares<'_>, to: Shares<'_>) -> Outcome<Begun> {
        let (f, t, op, root, comm) = (&self.functions, c.datatype, c.op, c.root, c.comm);
        let input = if from.in_place { self.constants.in_place } else { from.address as usize };
        let result = to.address as usize;
        let (given, got) = (from.count(), to.count());
        let list = |numbers: &[c_int]| if numbers.is_empty() { null() } else { numbers.as_ptr() };
        let (sent, sent_at) = (list(from.counts), list(from.places));
        let (received, received_at) = (list(to.counts), list(to.places));
        let mut handle = 0;
        let at = &raw mut handle;
        check(match c.function {
            // SAFETY: as the caller guarantees; one handle is written, of 32 or 64 bits; the word was 0 before.
            Function::Allgather => unsafe { (f.Iallgather)(input, given, t, result, got, t, comm, at) },
            // SAFETY: as above.
            Function::Allgatherv => unsafe {
                (f.Iallgatherv)(input, given, t, result, received, received_at, t, comm, at)
            },
            // SAFETY: as above.
            Function::Allreduce => unsafe { (f.Iallreduce)(input, result, got, t, op, comm, at) },
            // SAFETY: as above.
            Function::Alltoallv => unsafe {
                (f.Ialltoallv)(input, sent, sent_at, t, result, received, received_at, t, comm, at)
            },
            // SAFETY: as above.
            Function::Broadcast => unsafe { (f.Ibcast)(result, got, t, root, comm, at) },
            // SAFETY: as above.
            Function::Gatherv => unsafe {
                (f.Igatherv)(input, given, t, result, received, received_at, t, root, comm, at)
            },
            // SAFETY: as above.
            Function::Reduce => unsafe { (f.Ireduce)(input, result, given, t, op, root, comm, at) },
            // SAFETY: as above.
            Function::ReduceScatter => unsafe { (f.Ireduce_scatter)(input, result, sent, t, op, comm, at) },
            // SAFETY: as above.
            Function::ReduceScatterBlock => unsafe { (f.Ireduce_scatter_block)(input, result, got, t, op, comm, at) },
            // SAFETY: as above.
            Function::Scatterv => unsafe { (f.Iscatterv)(input, sent, sent_at, t, result, got, t, root, comm, at) },
        })?;
        Ok(Begun(handle))
    }
}
