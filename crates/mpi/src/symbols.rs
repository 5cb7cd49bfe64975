//! Looks up functions and objects of the loaded MPI library by name.

use std::ffi::{CStr, c_char, c_int, c_void};

#[repr(C)]
struct DlInfo {
    file: *const c_char,
    base: *mut c_void,
    symbol: *const c_char,
    address: *mut c_void,
}

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dladdr(address: *const c_void, info: *mut DlInfo) -> c_int;
}

const RTLD_NOW: c_int = 2;
/// A handle for `dlsym`: searches the libraries loaded after the one that calls.
const RTLD_NEXT: *mut c_void = std::ptr::without_provenance_mut(usize::MAX);
/// A flag for `dlopen`: opens a library only if the process has loaded it already.
const RTLD_NOLOAD: c_int = 4;

/// The scope of a lookup: the global scope, or one library loaded outside of it, as Python loads extension modules.
pub struct Scope(*mut c_void);

// SAFETY: the handle is never changed or closed, and the loader is thread-safe.
unsafe impl Send for Scope {}
// SAFETY: as above.
unsafe impl Sync for Scope {}

/// The names under which MPI libraries are loaded.
const LIBRARIES: [&CStr; 4] = [c"libmpi_abi.so.1", c"libmpi.so.12", c"libmpich.so.12", c"libmpi.so.40"];
/// The names under which the Fortran bindings of MPI libraries are loaded.
const BINDINGS: [&CStr; 3] = [c"libmpi_mpifh.so.40", c"libmpifort.so.12", c"libmpichfort.so.12"];

impl Scope {
    pub fn with(name: &CStr) -> Option<Self> {
        let global = Scope(std::ptr::null_mut());
        if global.find(name).is_some() {
            return Some(global);
        }
        LIBRARIES.iter().find_map(|library| Self::of(library).filter(|scope| scope.find(name).is_some()))
    }

    /// Returns the scope of one library, if the process has loaded it.
    fn of(library: &CStr) -> Option<Self> {
        // SAFETY: the string ends with a zero; the library is already loaded (NOLOAD), so no foreign code runs.
        let handle = unsafe { dlopen(library.as_ptr(), RTLD_NOW | RTLD_NOLOAD) };
        (!handle.is_null()).then_some(Self(handle))
    }

    /// Returns the address of a function of the Fortran bindings, if the process has loaded them.
    pub fn find_binding(&self, name: &CStr) -> Option<*mut c_void> {
        self.find(name).or_else(|| BINDINGS.iter().find_map(|library| Self::of(library)?.find(name)))
    }

    pub fn find(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: a null handle is RTLD_DEFAULT, any other came from dlopen and is never closed.
        let address = unsafe { dlsym(self.0, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }
}

/// Returns the address of the function of this name in the libraries loaded after this one, if one of them has it.
pub fn find_next(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the handle is the constant for these libraries.
    let address = unsafe { dlsym(RTLD_NEXT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// Returns whether one file contains the code at both addresses.
pub fn share_a_file(a: *const c_void, b: *const c_void) -> bool {
    matches!((info_of(a), info_of(b)), (Some(a), Some(b)) if a.base == b.base)
}

/// Returns the path of the file with the code or data at `address`; empty if unknown.
pub fn file_of(address: *const c_void) -> String {
    let Some(info) = info_of(address).filter(|info| !info.file.is_null()) else { return String::new() };
    // SAFETY: the name belongs to the loader and ends with a zero.
    unsafe { CStr::from_ptr(info.file) }.to_string_lossy().into_owned()
}

fn info_of(address: *const c_void) -> Option<DlInfo> {
    let mut info = DlInfo {
        file: std::ptr::null(),
        base: std::ptr::null_mut(),
        symbol: std::ptr::null(),
        address: std::ptr::null_mut(),
    };
    // SAFETY: dladdr only reads its own tables and fills `info`.
    (unsafe { dladdr(address, &raw mut info) } != 0).then_some(info)
}
