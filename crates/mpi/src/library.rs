//! The loaded MPI library: functions and constants behind methods with Rust types.

use std::{
    ffi::{c_int, c_void},
    sync::OnceLock,
};

use unisono_collective::Kind;

use crate::{
    abi::{Constants, detect},
    call::{Call, Reduction},
    functions::{Attribute, CopyAttribute, Functions},
    pause::Pause,
    progress::Hook,
    symbols::{Scope, file_of, find_next, share_a_file},
};

pub type Comm = usize;
pub type Datatype = usize;
pub type OpHandle = usize;

/// An error code of MPI other than `MPI_SUCCESS`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failed(pub c_int);

impl Failed {
    /// `MPI_ERR_COUNT` of all supported libraries: a number does not fit an `int`.
    pub const COUNT: Self = Self(2);
    /// `MPI_ERR_OTHER` of Open MPI and of the standard ABI, `MPI_ERR_INTERN` of MPICH: out of memory, or an earlier
    /// failure.
    pub const OTHER: Self = Self(16);
}

/// Converts a number to an `int`, in which MPI counts.
///
/// # Errors
/// Returns [`Failed::COUNT`] if the number does not fit.
#[inline]
pub fn int(number: impl TryInto<c_int>) -> Outcome<c_int> {
    number.try_into().map_err(|_| Failed::COUNT)
}

/// The threads that may call MPI, by the level of its initialisation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ThreadLevel {
    /// The program has only one thread.
    Single,
    /// Only the thread that initialised MPI calls MPI.
    Funneled,
    /// Any thread calls MPI, one thread at a time.
    Serialized,
    Multiple,
}

impl ThreadLevel {
    /// Returns the name of MPI's constant.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "MPI_THREAD_SINGLE",
            Self::Funneled => "MPI_THREAD_FUNNELED",
            Self::Serialized => "MPI_THREAD_SERIALIZED",
            Self::Multiple => "MPI_THREAD_MULTIPLE",
        }
    }
}

pub type Outcome<T = ()> = Result<T, Failed>;

/// The functions of the loaded library.
///
/// Handles (communicators, datatypes, operators) are those that the program received from this library. An invalid
/// handle is an error of the program, which the library may or may not detect, as in a call of MPI itself.
pub struct Library {
    pub constants: Constants,
    pub(crate) functions: Functions,
    pub(crate) hook: Option<Hook>,
    pub(crate) pause: Option<Pause>,
    scope: Scope,
}

/// Returns the loaded MPI library, if any. Calls search again until one is found.
#[inline]
pub fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    if let Some(library) = LIBRARY.get() {
        return Some(library);
    }
    let found = Library::find()?;
    Some(LIBRARY.get_or_init(|| found))
}

impl Library {
    fn find() -> Option<Self> {
        // Handles of 32 bits are read from words of 64 bits, and integers from stack slots. Both work on these
        // platforms only.
        if !cfg!(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")) {
            return None;
        }
        let scope = Scope::with(c"PMPI_Allreduce")?;
        let functions = Functions::find(&scope)?;
        let file = file_of(functions.Allreduce as *const c_void);
        let constants = Constants::new(detect(&scope, &file), &scope)?;
        let hook = Hook::find(constants.abi, &scope);
        let pause = Pause::of(constants.abi);
        Some(Self { constants, functions, hook, pause, scope })
    }

    /// Returns the address of a function, if the MPI library has it.
    pub fn find_function(&self, name: &std::ffi::CStr) -> Option<*mut c_void> {
        self.scope.find(name)
    }

    /// Returns the address of a function of this name in a tool, such as a profiler linked to the program, that the
    /// loader finds between this library and the MPI library; None if there is no such tool.
    pub fn find_tool(&self, name: &std::ffi::CStr) -> Option<*mut c_void> {
        find_next(name).filter(|&function| !share_a_file(function, self.functions.Comm_rank as *const c_void))
    }

    /// Returns the address of a function of the Fortran bindings, if they are loaded.
    pub fn find_binding(&self, name: &std::ffi::CStr) -> Option<*mut c_void> {
        self.scope.find_binding(name)
    }

    pub fn size(&self, comm: Comm) -> Outcome<u32> {
        let mut size = 0;
        // SAFETY: one integer is written.
        check(unsafe { (self.functions.Comm_size)(comm, &raw mut size) })?;
        u32::try_from(size).map_err(|_| Failed::OTHER)
    }

    pub fn rank(&self, comm: Comm) -> Outcome<u32> {
        let mut rank = 0;
        // SAFETY: one integer is written.
        check(unsafe { (self.functions.Comm_rank)(comm, &raw mut rank) })?;
        u32::try_from(rank).map_err(|_| Failed::OTHER)
    }

    pub fn is_inter(&self, comm: Comm) -> Outcome<bool> {
        let mut inter = 0;
        // SAFETY: one integer is written.
        check(unsafe { (self.functions.Comm_test_inter)(comm, &raw mut inter) })?;
        Ok(inter != 0)
    }

    /// Returns the smallest and the largest of the ranks' values, in one call.
    pub fn bounds(&self, value: u64, comm: Comm) -> Outcome<(u64, u64)> {
        // The minimum is computed as the complement of the maximum of the complements, so that one call suffices.
        let mine = [value, !value];
        let mut largest = [0u64; 2];
        let (c, f) = (&self.constants, &self.functions);
        let (from, to) = (mine.as_ptr() as usize, largest.as_mut_ptr() as usize);
        // SAFETY: two elements of 64 bits on each side.
        check(unsafe { (f.Allreduce)(from, to, 2, c.uint64, c.max, comm) })?;
        Ok((!largest[1], largest[0]))
    }

    pub fn largest_tag(&self) -> c_int {
        let (mut value, mut found) = (std::ptr::null::<c_int>(), 0);
        let (world, key) = (self.constants.comm_world, self.constants.tag_ub);
        // SAFETY: an address and an integer are written.
        let code = unsafe { (self.functions.Comm_get_attr)(world, key, &raw mut value, &raw mut found) };
        if code != 0 || found == 0 || value.is_null() {
            // The smallest limit that MPI permits.
            return 32767;
        }
        // SAFETY: MPI returned the address of an integer that stays valid until MPI ends.
        unsafe { value.read() }
    }

    /// Makes a communicator of the ranks that share this rank's node. All ranks of `comm` call this.
    pub(crate) fn node(&self, comm: Comm) -> Outcome<Comm> {
        let c = &self.constants;
        let mut node = 0usize;
        // SAFETY: one handle is written, of 32 or 64 bits; the word was 0 before.
        check(unsafe { (self.functions.Comm_split_type)(comm, c.type_shared, 0, c.info_null, &raw mut node) })?;
        Ok(node)
    }

    /// Returns the largest number of ranks of a communicator that share a node. All ranks of the communicator call
    /// this.
    pub fn per_node(&self, comm: Comm) -> Outcome<u32> {
        let node = self.node(comm)?;
        let here = self.size(node)?;
        self.free(node)?;
        let (_, most) = self.bounds(u64::from(here), comm)?;
        u32::try_from(most).map_err(|_| Failed::OTHER)
    }

    /// Returns whether an operator's operands may be swapped, as the program declared.
    pub fn commutes(&self, op: OpHandle) -> Outcome<bool> {
        let mut commutes = 0;
        // SAFETY: one integer is written.
        check(unsafe { (self.functions.Op_commutative)(op, &raw mut commutes) })?;
        Ok(commutes != 0)
    }

    pub fn create_keyval(&self, copy: CopyAttribute, delete: Attribute) -> Outcome<c_int> {
        let mut keyval = 0;
        // SAFETY: two functions with the signatures that MPI calls, and an integer that is written.
        check(unsafe { (self.functions.Comm_create_keyval)(copy, delete, &raw mut keyval, 0) })?;
        Ok(keyval)
    }

    /// Sets an attribute of a communicator to a null pointer.
    pub fn set_attribute(&self, comm: Comm, keyval: c_int) -> Outcome {
        // SAFETY: the value is never read.
        check(unsafe { (self.functions.Comm_set_attr)(comm, keyval, std::ptr::null_mut()) })
    }

    pub fn abort(&self, comm: Comm, code: c_int) {
        // SAFETY: no memory is passed; the function does not return if MPI works.
        unsafe { (self.functions.Abort)(comm, code) };
    }

    /// Calls the error handler of the communicator for an error that this crate found. MPI's default handler ends the
    /// program.
    pub fn call_error_handler(&self, comm: Comm, Failed(code): Failed) {
        // SAFETY: this runs the handler that the program or MPI set on the communicator, as MPI does.
        unsafe { (self.functions.Comm_call_errhandler)(comm, code) };
    }

    /// Returns whether MPI can be called: it was initialised and has not ended.
    pub fn is_running(&self) -> bool {
        let (mut initialized, mut finalized) = (0, 0);
        // SAFETY: one integer is written; this may be called at any time.
        unsafe { (self.functions.Initialized)(&raw mut initialized) };
        // SAFETY: as above.
        unsafe { (self.functions.Finalized)(&raw mut finalized) };
        initialized != 0 && finalized == 0
    }

    /// Returns the thread level of MPI.
    ///
    /// # Errors
    /// Returns an error if MPI is not running.
    pub fn thread_level(&self) -> Outcome<ThreadLevel> {
        let mut level = 0;
        // SAFETY: one integer is written.
        check(unsafe { (self.functions.Query_thread)(&raw mut level) })?;
        // The constants of all supported libraries: 0 to 3, and their multiples of 1024 in the standard ABI.
        Ok(match if level >= 1024 { level / 1024 } else { level } {
            3 => ThreadLevel::Multiple,
            2 => ThreadLevel::Serialized,
            1 => ThreadLevel::Funneled,
            _ => ThreadLevel::Single,
        })
    }

    /// Returns whether the calling thread initialised MPI.
    ///
    /// # Errors
    /// Returns an error if MPI is not running.
    pub fn is_main_thread(&self) -> Outcome<bool> {
        let mut is_main = 0;
        // SAFETY: one integer is written.
        check(unsafe { (self.functions.Is_thread_main)(&raw mut is_main) })?;
        Ok(is_main != 0)
    }

    /// Sums vectors of `count` elements of a floating-point type over all ranks.
    ///
    /// # Safety
    /// `values` must hold `count` elements.
    pub unsafe fn sum_in_place(&self, values: *mut u8, count: usize, datatype: Datatype, comm: Comm) -> Outcome {
        let (c, count) = (&self.constants, int(count)?);
        // SAFETY: as the caller guarantees.
        check(unsafe { (self.functions.Allreduce)(c.in_place, values as usize, count, datatype, c.sum, comm) })
    }

    /// Calls the library's own function for a reduction, out of place.
    ///
    /// # Safety
    /// The call's input and output must have the sizes of its kind and count, and must not overlap.
    pub unsafe fn reduce(&self, call: &Call, reduction: &Reduction, comm: Comm) -> Outcome {
        let f = &self.functions;
        let (from, to, count) = (call.input as usize, call.output as usize, int(call.elements)?);
        let (datatype, op, root) = (reduction.datatype, reduction.op_handle, int(call.root)?);
        check(match call.kind {
            // SAFETY: as the caller guarantees.
            Kind::Reduce => unsafe { (f.Reduce)(from, to, count, datatype, op, root, comm) },
            // SAFETY: as the caller guarantees.
            Kind::ReduceScatter => unsafe { (f.Reduce_scatter_block)(from, to, count, datatype, op, comm) },
            // SAFETY: as the caller guarantees.
            Kind::Scan => unsafe { (f.Scan)(from, to, count, datatype, op, comm) },
            // SAFETY: as the caller guarantees.
            _ => unsafe { (f.Allreduce)(from, to, count, datatype, op, comm) },
        })
    }

    pub fn dup(&self, comm: Comm) -> Outcome<Comm> {
        let mut new = 0usize;
        // SAFETY: one handle is written, of 32 or 64 bits; the word was 0 before.
        check(unsafe { (self.functions.Comm_dup)(comm, &raw mut new) })?;
        Ok(new)
    }

    pub fn free(&self, comm: Comm) -> Outcome {
        let mut comm = comm;
        // SAFETY: one handle is read and written.
        check(unsafe { (self.functions.Comm_free)(&raw mut comm) })
    }
}

/// # Errors
/// Returns the code as an error unless it is `MPI_SUCCESS`.
#[inline]
pub fn check(code: c_int) -> Outcome {
    if code == 0 { Ok(()) } else { Err(Failed(code)) }
}
