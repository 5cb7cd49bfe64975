//! Requests for nonblocking and persistent planned calls.
//!
//! The program tests, waits for and frees these requests by the library's functions, in C and in Fortran. A nonblocking
//! call has a generalized request (`MPI_Grequest_start`). MPI has no persistent generalized requests, so a persistent
//! collective has a persistent receive, and this process sends the message to itself when a call is complete.

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

/// A generalized request that [`Library::complete`] completes. Dropping this value does not complete the request.
#[derive(Debug)]
pub struct GeneralRequest {
    handle: usize,
    /// The error code of the call, which the request keeps until it is freed.
    code: *const AtomicI32,
}

// SAFETY: the code is atomic. MPI frees it only after the request was completed, which consumes this value.
unsafe impl Send for GeneralRequest {}

impl GeneralRequest {
    pub fn handle(&self) -> usize {
        self.handle
    }
}

extern "C" fn query(code: *mut c_void, status: *mut c_void) -> c_int {
    let Some(library) = library() else { return 0 };
    let f = &library.functions;
    // SAFETY: MPI passes the status of this request, and its state, which `free` has not freed yet.
    let code = unsafe { &*code.cast::<AtomicI32>() }.load(Ordering::Acquire);
    // SAFETY: as above.
    unsafe { (f.Status_set_elements)(status, library.constants.byte, 0) };
    // SAFETY: as above.
    unsafe { (f.Status_set_cancelled)(status, 0) };
    let at = status.cast::<u8>().wrapping_add(library.constants.status_error);
    // SAFETY: the status has its aligned error code there.
    unsafe { at.cast::<c_int>().write(code) };
    code
}

extern "C" fn free(code: *mut c_void) -> c_int {
    // SAFETY: the state of the request, which MPI returns once.
    drop(unsafe { Box::from_raw(code.cast::<AtomicI32>()) });
    0
}

/// Does nothing, because collectives cannot be cancelled.
extern "C" fn cancel(_: *mut c_void, _: c_int) -> c_int {
    0
}

/// A request that may be started repeatedly. Dropping this value does not free the request.
#[derive(Debug)]
pub struct PersistentRequest {
    handle: usize,
    comm: Comm,
    rank: c_int,
    tag: c_int,
    /// The memory of the receive, one byte.
    byte: *mut u8,
    _lease: Lease,
}

// SAFETY: only MPI uses the byte, which is freed with the request.
unsafe impl Send for PersistentRequest {}
// SAFETY: as above; a shared request is never changed.
unsafe impl Sync for PersistentRequest {}

/// The message of a process to itself: one byte, or two bytes if the call failed. The receive has room for one byte
/// only, so two bytes cause an error.
static MESSAGE: [u8; 2] = [0; 2];

impl PersistentRequest {
    pub fn handle(&self) -> usize {
        self.handle
    }
}

impl Library {
    /// Makes a request that [`Library::start_again`] starts and [`Library::complete_again`] completes. The error
    /// handler of `comm` must only return codes.
    ///
    /// # Errors
    /// Returns errors of the library.
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
    /// Returns errors of the library.
    pub fn start_again(&self, request: &PersistentRequest) -> Outcome {
        let mut handle = request.handle;
        // SAFETY: the handle is that of a persistent request, which is not changed.
        check(unsafe { (self.functions.Start)(&raw mut handle) })
    }

    /// Completes a started request. If `failed` is set, a wait for the request returns `MPI_ERR_TRUNCATE`.
    pub fn complete_again(&self, request: &PersistentRequest, failed: bool) {
        let (from, bytes, byte) = (MESSAGE.as_ptr() as usize, if failed { 2 } else { 1 }, self.constants.byte);
        let mut handle = 0usize;
        let send = self.functions.Isend;
        // SAFETY: the message is never freed; one handle is written, of 32 or 64 bits; the word was 0 before.
        let code = unsafe { send(from, bytes, byte, request.rank, request.tag, request.comm, &raw mut handle) };
        if code == 0 {
            // SAFETY: the handle was just written; the message is delivered nevertheless.
            unsafe { (self.functions.Request_free)(&raw mut handle) };
        }
    }

    /// Frees the memory of the receive, after the program has freed the request.
    pub fn free_again(&self, request: &PersistentRequest) {
        // SAFETY: the program freed its request, so nothing receives into the byte any more.
        drop(unsafe { Box::from_raw(request.byte) });
    }

    /// Reads a handle from the program's memory.
    ///
    /// # Safety
    /// The address must hold a communicator or a request.
    pub unsafe fn handle_at(&self, from: usize) -> usize {
        let from = ptr::with_exposed_provenance::<u8>(from);
        match self.constants.abi {
            // SAFETY: as the caller guarantees; MPICH's handles have 32 bits.
            Abi::Mpich => unsafe { from.cast::<u32>().read_unaligned() as usize },
            // SAFETY: as the caller guarantees.
            _ => unsafe { from.cast::<usize>().read_unaligned() },
        }
    }

    /// Returns the size of a handle in the program's memory, in bytes.
    pub fn request_bytes(&self) -> usize {
        if self.constants.abi == Abi::Mpich { size_of::<u32>() } else { size_of::<usize>() }
    }

    /// Writes a handle to the program's memory.
    ///
    /// # Safety
    /// The address must have room for a request.
    pub unsafe fn give_handle(&self, handle: usize, to: usize) {
        let to = ptr::with_exposed_provenance_mut::<u8>(to);
        match self.constants.abi {
            // SAFETY: as the caller guarantees; MPICH's handles have 32 bits.
            Abi::Mpich => unsafe { to.cast::<u32>().write_unaligned(handle as u32) },
            // SAFETY: as the caller guarantees.
            _ => unsafe { to.cast::<usize>().write_unaligned(handle) },
        }
    }

    /// Makes a generalized request.
    ///
    /// # Errors
    /// Returns errors of the library.
    pub fn start_request(&self) -> Outcome<GeneralRequest> {
        let code = Box::into_raw(Box::new(AtomicI32::new(0)));
        let mut handle = 0usize;
        let start = self.functions.Grequest_start;
        // SAFETY: three functions with the signatures that MPI calls, their state, and one handle that is written, of
        // 32 or 64 bits; the word was 0 before.
        let started = check(unsafe { start(query, free, cancel, code.cast(), &raw mut handle) });
        if let Err(failed) = started {
            free(code.cast());
            return Err(failed);
        }
        Ok(GeneralRequest { handle, code })
    }

    /// Completes a request with the error code of its call; `MPI_SUCCESS` is 0.
    pub fn complete(&self, request: GeneralRequest, code: c_int) {
        // SAFETY: MPI frees the code only after the request was completed, which happens below.
        unsafe { &*request.code }.store(code, Ordering::Release);
        // SAFETY: the request was started, and is completed once.
        unsafe { (self.functions.Grequest_complete)(request.handle) };
    }

    /// Duplicates a datatype, because the program may free its handle before a call ends.
    ///
    /// # Errors
    /// Returns errors of the library.
    pub fn keep_type(&self, datatype: Datatype) -> Outcome<Datatype> {
        let mut kept = 0usize;
        // SAFETY: one handle is written, of 32 or 64 bits; the word was 0 before.
        check(unsafe { (self.functions.Type_dup)(datatype, &raw mut kept) })?;
        Ok(kept)
    }

    pub fn free_type(&self, mut kept: Datatype) {
        // SAFETY: one handle is read and written.
        unsafe { (self.functions.Type_free)(&raw mut kept) };
    }
}
