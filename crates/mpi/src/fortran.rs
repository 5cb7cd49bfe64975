//! Arguments of Open MPI's Fortran bindings: integers for handles, and addresses for `MPI_IN_PLACE` and `MPI_BOTTOM`.
//!
//! The bindings call the `PMPI_` functions of C, so a library that replaces the `MPI_` functions does not see calls
//! from Fortran. MPICH's bindings call the `MPI_` functions and need no conversion.
//! Source: `ompi/mpi/fortran/mpif-h` and `ompi/mpi/fortran/base/constants.h` of Open MPI 4.1 and 5.0.

use std::{
    ffi::{c_int, c_void},
    mem::transmute,
};

use crate::{abi::Abi, library::Library};

/// The type of `MPI_Comm_f2c` and of the same function for other handles.
type FromFortran = unsafe extern "C" fn(c_int) -> usize;
/// The type of `MPI_Request_c2f`.
type ToFortran = unsafe extern "C" fn(usize) -> c_int;

/// The conversions from Fortran to C that Open MPI's bindings make.
#[derive(Clone, Copy, Debug)]
pub struct Fortran {
    comm: FromFortran,
    datatype: FromFortran,
    op: FromFortran,
    info: FromFortran,
    handle: FromFortran,
    request: ToFortran,
    /// Pairs for `MPI_IN_PLACE` and `MPI_BOTTOM`: the address that a Fortran program passes, and the value that a C
    /// program passes.
    addresses: [(usize, usize); 2],
}

impl Library {
    /// Returns the conversions of Open MPI, if its bindings were built with an INTEGER of the size of an `int`; None
    /// before `Library::learn_types` was called.
    pub fn fortran(&self) -> Option<Fortran> {
        if self.constants.abi != Abi::OpenMpi || self.constants.fortran_integer_bytes() != Some(size_of::<c_int>()) {
            return None;
        }
        let handle = |name| {
            let found: *mut c_void = self.find_function(name)?;
            // SAFETY: the symbol is MPI's function of this name, with this signature; Open MPI's handles are addresses.
            Some(unsafe { transmute::<*mut c_void, FromFortran>(found) })
        };
        let request = self.find_function(c"PMPI_Request_c2f")?;
        // SAFETY: as above.
        let request = unsafe { transmute::<*mut c_void, ToFortran>(request) };
        let variable = |name| self.find_function(name).map_or(usize::MAX, |address| address as usize);
        Some(Fortran {
            comm: handle(c"PMPI_Comm_f2c")?,
            datatype: handle(c"PMPI_Type_f2c")?,
            op: handle(c"PMPI_Op_f2c")?,
            info: handle(c"PMPI_Info_f2c")?,
            handle: handle(c"PMPI_Request_f2c")?,
            request,
            addresses: [
                (variable(c"mpi_fortran_in_place_"), self.constants.in_place),
                (variable(c"mpi_fortran_bottom_"), 0),
            ],
        })
    }
}

impl Fortran {
    pub fn comm(&self, number: c_int) -> usize {
        // SAFETY: the function accepts any number, and returns a null communicator for an invalid one.
        unsafe { (self.comm)(number) }
    }

    pub fn datatype(&self, number: c_int) -> usize {
        // SAFETY: as above, for datatypes.
        unsafe { (self.datatype)(number) }
    }

    pub fn op(&self, number: c_int) -> usize {
        // SAFETY: as above, for operators.
        unsafe { (self.op)(number) }
    }

    pub fn info(&self, number: c_int) -> usize {
        // SAFETY: as above, for hints.
        unsafe { (self.info)(number) }
    }

    pub fn handle(&self, number: c_int) -> usize {
        // SAFETY: as above, for requests.
        unsafe { (self.handle)(number) }
    }

    pub fn request(&self, handle: usize) -> c_int {
        // SAFETY: the handle is that of a request.
        unsafe { (self.request)(handle) }
    }

    /// Returns the value that a C program passes for `MPI_IN_PLACE` or `MPI_BOTTOM` if Fortran passed one of them;
    /// other addresses are returned unchanged.
    #[inline]
    pub fn buffer(&self, address: usize) -> usize {
        self.addresses.iter().find(|(of, _)| *of == address).map_or(address, |(_, c)| *c)
    }
}
