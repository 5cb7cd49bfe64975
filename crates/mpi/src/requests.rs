//! Requests of the program's own kind (`MPI_Grequest_start`), for planned calls that it does not wait for at once.
//!
//! The library completes, tests, waits for and frees them like any other, in C and in Fortran.

use std::{
    ffi::{c_int, c_void},
    ptr,
    sync::atomic::{AtomicI32, Ordering},
};

use crate::{
    abi::Abi,
    library::{Datatype, Library, Outcome, check, library},
};

/// A request that this process completes. Dropping it does not.
pub struct GeneralRequest {
    handle: usize,
    /// The error code of the call, which the request keeps until it is freed.
    code: *const AtomicI32,
}

// SAFETY: the code is atomic, and MPI frees it no earlier than the request was completed, which takes the request.
unsafe impl Send for GeneralRequest {}

extern "C" fn query(code: *mut c_void, status: *mut c_void) -> c_int {
    let Some(library) = library() else { return 0 };
    let f = &library.functions;
    // SAFETY: MPI gives the status of this request, and the state that it was started with, which `free` has not freed yet.
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

impl Library {
    /// Makes a request.
    ///
    /// # Errors
    /// Those of the library.
    pub fn start_request(&self) -> Outcome<GeneralRequest> {
        let code = Box::into_raw(Box::new(AtomicI32::new(0)));
        let mut handle = 0usize;
        let start = self.functions.Grequest_start;
        // SAFETY: three functions of the signatures that MPI calls, their state, and one handle that is written, of 32 or 64
        // bits; the word was 0 before.
        let started = check(unsafe { start(query, free, cancel, code.cast(), &raw mut handle) });
        if let Err(failed) = started {
            free(code.cast());
            return Err(failed);
        }
        Ok(GeneralRequest { handle, code })
    }

    /// Writes the handle where the program wants it.
    ///
    /// # Safety
    /// The address has room for a request.
    pub unsafe fn give_request(&self, request: &GeneralRequest, to: usize) {
        let to = ptr::with_exposed_provenance_mut::<u8>(to);
        match self.constants.abi {
            // SAFETY: as the caller promises; MPICH's handles have 32 bits.
            Abi::Mpich => unsafe { to.cast::<u32>().write_unaligned(request.handle as u32) },
            // SAFETY: as the caller promises.
            _ => unsafe { to.cast::<usize>().write_unaligned(request.handle) },
        }
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
