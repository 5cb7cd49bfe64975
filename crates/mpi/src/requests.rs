//! Requests for planned calls that the program does not wait for at once.
//!
//! The library completes, tests, waits for and frees them like any other, in C and in Fortran. A call that is begun
//! once has a request of the program's own kind (`MPI_Grequest_start`). MPI has none of those that can be started
//! again: a persistent collective has the persistent receive of a message that this process sends to itself when a call
//! is complete.

use std::{
    ffi::{c_int, c_void},
    ptr,
    sync::atomic::{AtomicI32, Ordering},
};

use crate::{
    abi::Abi,
    library::{Comm, Datatype, Library, Outcome, check, int, library},
    route::Lease,
};

/// A request that this process completes. Dropping it does not.
#[derive(Debug)]
pub struct GeneralRequest {
    handle: usize,
    /// The error code of the call, which the request keeps until it is freed.
    code: *const AtomicI32,
}

// SAFETY: the code is atomic, and MPI frees it no earlier than the request was completed, which takes the request.
unsafe impl Send for GeneralRequest {}

impl GeneralRequest {
    pub fn handle(&self) -> usize {
        self.handle
    }
}

extern "C" fn query(code: *mut c_void, status: *mut c_void) -> c_int {
    let Some(library) = library() else { return 0 };
    let f = &library.functions;
    // SAFETY: MPI gives the status of this request, and the state that it was started with, which `free` has not freed
    // yet.
    let code = unsafe { &*code.cast::<AtomicI32>() }.load(Ordering::Acquire);
    // SAFETY: as above.
    unsafe { (f.Status_set_elements)(status, library.constants.byte, 0) };
    // SAFETY: as above.
    unsafe { (f.Status_set_cancelled)(status, 0) };
    let at = status.cast::<u8>().wrapping_add(library.constants.status_error);
    // SAFETY: the status has its error code there, aligned for it.
    unsafe { at.cast::<c_int>().write(code) };
    code
}

extern "C" fn free(code: *mut c_void) -> c_int {
    // SAFETY: the state that the request was started with, which MPI gives back once.
    drop(unsafe { Box::from_raw(code.cast::<AtomicI32>()) });
    0
}

/// Collectives cannot be cancelled.
extern "C" fn cancel(_: *mut c_void, _: c_int) -> c_int {
    0
}

/// A request that may be started again. Dropping it does not free it.
#[derive(Debug)]
pub struct PersistentRequest {
    handle: usize,
    comm: Comm,
    rank: c_int,
    tag: c_int,
    /// The byte that MPI writes.
    byte: *mut u8,
    _lease: Lease,
}

// SAFETY: the byte is only MPI's, and freed with the request.
unsafe impl Send for PersistentRequest {}
// SAFETY: as above; nothing of it changes.
unsafe impl Sync for PersistentRequest {}

/// What a process sends itself: one byte, or two where the call failed, which the receive refuses.
static MESSAGE: [u8; 2] = [0; 2];

impl PersistentRequest {
    pub fn handle(&self) -> usize {
        self.handle
    }
}

impl Library {
    /// A request that [`Library::start_again`] starts, and [`Library::complete_again`] completes. Errors on `comm` are
    /// codes.
    ///
    /// # Errors
    /// Those of the library.
    pub(crate) fn persistent(&self, comm: Comm, lease: Lease) -> Outcome<PersistentRequest> {
        let (rank, tag, byte) = (int(self.rank(comm)?)?, lease.first(), Box::into_raw(Box::new(0u8)));
        let mut handle = 0usize;
        let init = self.functions.Recv_init;
        // SAFETY: the byte stays until the request is freed; one handle is written, of 32 or 64 bits; the word was 0
        // before.
        check(unsafe { init(byte as usize, 1, self.constants.byte, rank, tag, comm, &raw mut handle) })?;
        Ok(PersistentRequest { handle, comm, rank, tag, byte, _lease: lease })
    }

    /// Starts a request that is not under way.
    ///
    /// # Errors
    /// Those of the library.
    pub fn start_again(&self, request: &PersistentRequest) -> Outcome {
        let mut handle = request.handle;
        // SAFETY: the handle is that of a persistent request, which is not changed.
        check(unsafe { (self.functions.Start)(&raw mut handle) })
    }

    /// Completes a request that was started; with an error, waiting for it returns `MPI_ERR_TRUNCATE`.
    pub fn complete_again(&self, request: &PersistentRequest, failed: bool) {
        let (from, bytes, byte) = (MESSAGE.as_ptr() as usize, if failed { 2 } else { 1 }, self.constants.byte);
        let mut handle = 0usize;
        let send = self.functions.Isend;
        // SAFETY: the message is never freed; one handle is written, of 32 or 64 bits; the word was 0 before.
        let code = unsafe { send(from, bytes, byte, request.rank, request.tag, request.comm, &raw mut handle) };
        if code == 0 {
            // SAFETY: the handle was just written; the message is delivered all the same.
            unsafe { (self.functions.Request_free)(&raw mut handle) };
        }
    }

    /// Frees a request of the program's that is not under way.
    pub fn free_again(&self, request: &PersistentRequest) {
        // SAFETY: nothing receives into the byte any more, as the program freed its request.
        drop(unsafe { Box::from_raw(request.byte) });
    }

    /// The handle that the program has at an address.
    ///
    /// # Safety
    /// There is a communicator or a request.
    pub unsafe fn handle_at(&self, from: usize) -> usize {
        let from = ptr::with_exposed_provenance::<u8>(from);
        match self.constants.abi {
            // SAFETY: as the caller promises; MPICH's handles have 32 bits.
            Abi::Mpich => unsafe { from.cast::<u32>().read_unaligned() as usize },
            // SAFETY: as the caller promises.
            _ => unsafe { from.cast::<usize>().read_unaligned() },
        }
    }

    /// Bytes of a handle in the program's memory.
    pub fn request_bytes(&self) -> usize {
        if self.constants.abi == Abi::Mpich { size_of::<u32>() } else { size_of::<usize>() }
    }

    /// Writes a handle where the program wants it.
    ///
    /// # Safety
    /// The address has room for a request.
    pub unsafe fn give_handle(&self, handle: usize, to: usize) {
        let to = ptr::with_exposed_provenance_mut::<u8>(to);
        match self.constants.abi {
            // SAFETY: as the caller promises; MPICH's handles have 32 bits.
            Abi::Mpich => unsafe { to.cast::<u32>().write_unaligned(handle as u32) },
            // SAFETY: as the caller promises.
            _ => unsafe { to.cast::<usize>().write_unaligned(handle) },
        }
    }

    /// Makes a request.
    ///
    /// # Errors
    /// Those of the library.
    pub fn start_request(&self) -> Outcome<GeneralRequest> {
        let code = Box::into_raw(Box::new(AtomicI32::new(0)));
        let mut handle = 0usize;
        let start = self.functions.Grequest_start;
        // SAFETY: three functions of the signatures that MPI calls, their state, and one handle that is written, of 32
        // or 64 bits; the word was 0 before.
        let started = check(unsafe { start(query, free, cancel, code.cast(), &raw mut handle) });
        if let Err(failed) = started {
            free(code.cast());
            return Err(failed);
        }
        Ok(GeneralRequest { handle, code })
    }

    /// Completes a request with an error code of its call, or with `MPI_SUCCESS`.
    pub fn complete(&self, request: GeneralRequest, code: c_int) {
        // SAFETY: MPI frees the code after the request was completed, which is below.
        unsafe { &*request.code }.store(code, Ordering::Release);
        // SAFETY: the request was started, and is completed once.
        unsafe { (self.functions.Grequest_complete)(request.handle) };
    }

    /// A datatype that lives on when the program frees its own.
    ///
    /// # Errors
    /// Those of the library.
    pub fn keep_type(&self, datatype: Datatype) -> Outcome<Datatype> {
        let mut kept = 0usize;
        // SAFETY: one handle is written, of 32 or 64 bits; the word was 0 before.
        check(unsafe { (self.functions.Type_dup)(datatype, &raw mut kept) })?;
        Ok(kept)
    }

    /// Frees what [`Library::keep_type`] kept.
    pub fn free_type(&self, mut kept: Datatype) {
        // SAFETY: one handle is read and written.
        unsafe { (self.functions.Type_free)(&raw mut kept) };
    }
}
