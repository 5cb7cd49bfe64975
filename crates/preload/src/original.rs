//! Finds and calls the functions of the MPI library that the exported functions replace.

use std::{
    ffi::CStr,
    sync::atomic::{AtomicUsize, Ordering},
};

use unisono_mpi::library;

/// The error code if no MPI library is loaded or it lacks the function: `MPI_ERR_OTHER`, or `MPI_ERR_INTERN` of MPICH.
pub const NO_FUNCTION: i32 = 16;
/// The error code `MPI_ERR_COUNT`, if the library has no function for counts beyond an `int`.
pub const COUNT_TOO_LARGE: i32 = 2;

/// A function of the MPI library, looked up by name at its first use.
pub struct Original {
    name: &'static CStr,
    /// 0: not looked up yet; 1: the library has no such function.
    address: AtomicUsize,
}

impl Original {
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicUsize::new(0) }
    }

    #[inline]
    pub fn address(&self) -> Option<usize> {
        match self.address.load(Ordering::Relaxed) {
            0 => self.find(),
            1 => None,
            address => Some(address),
        }
    }

    #[cold]
    fn find(&self) -> Option<usize> {
        let library = library()?;
        // A tool loaded after this library receives the calls that are passed on, as it would without this library.
        let tool = self.name.to_bytes_with_nul().strip_prefix(b"P").filter(|name| name.starts_with(b"MPI_"));
        let tool = tool.and_then(|name| library.find_tool(CStr::from_bytes_with_nul(name).ok()?));
        let address = tool.or_else(|| library.find_function(self.name)).or_else(|| library.find_binding(self.name));
        let address = address.map(|a| a as usize);
        self.address.store(address.unwrap_or(1), Ordering::Relaxed);
        address
    }
}

/// Calls an [`Original`] with machine words. Returns [`NO_FUNCTION`] if the library lacks the function.
macro_rules! call_original {
    ($original:expr, $($argument:expr),*) => {
        match $original.address() {
            Some(address) => {
                // SAFETY: the address is that of the MPI function of this name. Integers and handles of up to 64 bits
                // each take a register or a stack slot, of which the callee reads as much as it declares
                // (`Library::find` refuses platforms on which they do not).
                let function = unsafe {
                    std::mem::transmute::<
                        usize,
                        unsafe extern "C" fn($(call_original!(@word $argument)),*) -> std::ffi::c_int,
                    >(address)
                };
                // SAFETY: the arguments are the program's own, passed on unchanged.
                unsafe { function($($argument),*) }
            }
            None => $crate::original::NO_FUNCTION,
        }
    };
    (@word $argument:expr) => { usize };
}

/// Returns the `PMPI_` name of the MPI library's function that an exported function replaces.
macro_rules! behind {
    ($name:ident) => {
        match std::ffi::CStr::from_bytes_with_nul(concat!("P", stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("a name without zeros"),
        }
    };
}

pub(crate) use {behind, call_original};
