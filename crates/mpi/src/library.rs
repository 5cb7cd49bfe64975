//! The functions of the MPI library that the process has loaded.

use std::{
    ffi::{c_int, c_void},
    sync::OnceLock,
};

use unisono_collective::Kind;

use crate::{
    abi::{Constants, detect},
    call::{Call, Reduction},
    symbols::{Scope, file_of},
};

pub type Comm = usize;
pub type Datatype = usize;
pub type OpHandle = usize;

/// An error code of MPI, not `MPI_SUCCESS`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failed(pub c_int);

impl Failed {
    /// `MPI_ERR_COUNT` of every library at hand: a number does not fit an `int`.
    pub const COUNT: Self = Self(2);
    /// `MPI_ERR_OTHER` of Open MPI and of the standard ABI, `MPI_ERR_INTERN` of MPICH: no memory, or an earlier failure.
    pub const OTHER: Self = Self(16);
}

/// The number as an `int`, as MPI counts.
///
/// # Errors
/// [`Failed::COUNT`]: it does not fit.
#[inline]
pub fn int(number: impl TryInto<c_int>) -> Outcome<c_int> {
    number.try_into().map_err(|_| Failed::COUNT)
}

/// The threads that may call MPI, as it was initialised.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ThreadLevel {
    /// The program has one thread.
    Single,
    /// The thread that initialised MPI.
    Funneled,
    /// Any thread, one at a time.
    Serialized,
    Multiple,
}

impl ThreadLevel {
    /// The name of MPI's constant.
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

/// Called when a communicator with the attribute is freed.
pub type Attribute = extern "C" fn(usize, c_int, *mut c_void, *mut c_void) -> c_int;
/// Called when a communicator with the attribute is duplicated.
pub type CopyAttribute = extern "C" fn(usize, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;

macro_rules! functions {
    ($($name:ident: $type:ty, $symbol:literal;)*) => {
        /// The functions that are called, each `PMPI_` and its name. Handles are machine words: integers of 32 bits and
        /// pointers travel in the same registers.
        #[allow(non_snake_case, reason = "the names of MPI")]
        pub struct Functions {
            $(pub(crate) $name: $type,)*
        }

        impl Functions {
            fn find(scope: &Scope) -> Option<Self> {
                Some(Self {
                    $($name: {
                        let address = scope.find($symbol)?;
                        // SAFETY: the symbol is MPI's function of that name, whose C signature the type states.
                        unsafe { std::mem::transmute::<*mut c_void, $type>(address) }
                    },)*
                })
            }
        }
    };
}

functions! {
    Allreduce: unsafe extern "C" fn(usize, usize, c_int, Datatype, OpHandle, Comm) -> c_int, c"PMPI_Allreduce";
    Comm_call_errhandler: unsafe extern "C" fn(Comm, c_int) -> c_int, c"PMPI_Comm_call_errhandler";
    Comm_create_keyval: unsafe extern "C" fn(CopyAttribute, Attribute, *mut c_int, usize) -> c_int, c"PMPI_Comm_create_keyval";
    Comm_dup: unsafe extern "C" fn(Comm, *mut usize) -> c_int, c"PMPI_Comm_dup";
    Comm_free: unsafe extern "C" fn(*mut usize) -> c_int, c"PMPI_Comm_free";
    Comm_rank: unsafe extern "C" fn(Comm, *mut c_int) -> c_int, c"PMPI_Comm_rank";
    Comm_set_attr: unsafe extern "C" fn(Comm, c_int, *mut c_void) -> c_int, c"PMPI_Comm_set_attr";
    Comm_size: unsafe extern "C" fn(Comm, *mut c_int) -> c_int, c"PMPI_Comm_size";
    Comm_split_type: unsafe extern "C" fn(Comm, c_int, c_int, usize, *mut usize) -> c_int, c"PMPI_Comm_split_type";
    Comm_test_inter: unsafe extern "C" fn(Comm, *mut c_int) -> c_int, c"PMPI_Comm_test_inter";
    Abort: unsafe extern "C" fn(Comm, c_int) -> c_int, c"PMPI_Abort";
    Finalized: unsafe extern "C" fn(*mut c_int) -> c_int, c"PMPI_Finalized";
    Gatherv: unsafe extern "C" fn(usize, c_int, Datatype, usize, *const c_int, *const c_int, Datatype, c_int, Comm) -> c_int, c"PMPI_Gatherv";
    Gather: unsafe extern "C" fn(usize, c_int, Datatype, usize, c_int, Datatype, c_int, Comm) -> c_int, c"PMPI_Gather";
    Initialized: unsafe extern "C" fn(*mut c_int) -> c_int, c"PMPI_Initialized";
    Irecv: unsafe extern "C" fn(usize, c_int, Datatype, c_int, c_int, Comm, *mut usize) -> c_int, c"PMPI_Irecv";
    Isend: unsafe extern "C" fn(usize, c_int, Datatype, c_int, c_int, Comm, *mut usize) -> c_int, c"PMPI_Isend";
    Is_thread_main: unsafe extern "C" fn(*mut c_int) -> c_int, c"PMPI_Is_thread_main";
    Op_commutative: unsafe extern "C" fn(OpHandle, *mut c_int) -> c_int, c"PMPI_Op_commutative";
    Pack: unsafe extern "C" fn(usize, c_int, Datatype, usize, c_int, *mut c_int, Comm) -> c_int, c"PMPI_Pack";
    Query_thread: unsafe extern "C" fn(*mut c_int) -> c_int, c"PMPI_Query_thread";
    Reduce: unsafe extern "C" fn(usize, usize, c_int, Datatype, OpHandle, c_int, Comm) -> c_int, c"PMPI_Reduce";
    Reduce_scatter_block: unsafe extern "C" fn(usize, usize, c_int, Datatype, OpHandle, Comm) -> c_int, c"PMPI_Reduce_scatter_block";
    Reduce_local: unsafe extern "C" fn(usize, usize, c_int, Datatype, OpHandle) -> c_int, c"PMPI_Reduce_local";
    Test: unsafe extern "C" fn(*mut usize, *mut c_int, usize) -> c_int, c"PMPI_Test";
    Type_get_envelope: unsafe extern "C" fn(Datatype, *mut c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int, c"PMPI_Type_get_envelope";
    Type_get_extent: unsafe extern "C" fn(Datatype, *mut isize, *mut isize) -> c_int, c"PMPI_Type_get_extent";
    Type_get_true_extent: unsafe extern "C" fn(Datatype, *mut isize, *mut isize) -> c_int, c"PMPI_Type_get_true_extent";
    Type_size: unsafe extern "C" fn(Datatype, *mut c_int) -> c_int, c"PMPI_Type_size";
    Unpack: unsafe extern "C" fn(usize, c_int, *mut c_int, usize, c_int, Datatype, Comm) -> c_int, c"PMPI_Unpack";
    Wait: unsafe extern "C" fn(*mut usize, usize) -> c_int, c"PMPI_Wait";
}

/// The functions of the loaded library.
///
/// Handles (communicators, datatypes, operators) are those that the program has from this library, as in a call of MPI
/// itself: a number that is none is the program's error, which the library finds or not.
pub struct Library {
    pub constants: Constants,
    pub(crate) functions: Functions,
    scope: Scope,
}

/// The loaded MPI library, looked for until there is one.
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
        // Handles of 32 bits are read from words of 64, and integers from slots of the stack, as these platforms have it.
        if !cfg!(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")) {
            return None;
        }
        let scope = Scope::with(c"PMPI_Allreduce")?;
        let functions = Functions::find(&scope)?;
        let file = file_of(functions.Allreduce as *const c_void);
        let constants = Constants::new(detect(&scope, &file), &scope)?;
        Some(Self { constants, functions, scope })
    }

    /// The address of a function that not every library has.
    pub fn find_function(&self, name: &std::ffi::CStr) -> Option<*mut c_void> {
        self.scope.find(name)
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

    /// The smallest and the largest of the ranks' values, in one call.
    pub fn bounds(&self, value: u64, comm: Comm) -> Outcome<(u64, u64)> {
        // The complement's largest is the smallest's complement.
        let mine = [value, !value];
        let mut largest = [0u64; 2];
        let (c, f) = (&self.constants, &self.functions);
        let (from, to) = (mine.as_ptr() as usize, largest.as_mut_ptr() as usize);
        // SAFETY: two elements of 64 bits on each side.
        check(unsafe { (f.Allreduce)(from, to, 2, c.uint64, c.max, comm) })?;
        Ok((!largest[1], largest[0]))
    }

    /// The most ranks of a communicator that share a node; all its ranks call this.
    pub fn per_node(&self, comm: Comm) -> Outcome<u32> {
        let c = &self.constants;
        let mut node = 0usize;
        // SAFETY: one handle is written, of 32 or 64 bits; the word was 0 before.
        check(unsafe { (self.functions.Comm_split_type)(comm, c.type_shared, 0, c.info_null, &raw mut node) })?;
        let here = self.size(node)?;
        self.free(node)?;
        let (_, most) = self.bounds(u64::from(here), comm)?;
        u32::try_from(most).map_err(|_| Failed::OTHER)
    }

    /// Whether an operator's operands may be swapped, as the program said when it made it.
    pub fn commutes(&self, op: OpHandle) -> Outcome<bool> {
        let mut commutes = 0;
        // SAFETY: one integer is written.
        check(unsafe { (self.functions.Op_commutative)(op, &raw mut commutes) })?;
        Ok(commutes != 0)
    }

    pub fn create_keyval(&self, copy: CopyAttribute, delete: Attribute) -> Outcome<c_int> {
        let mut keyval = 0;
        // SAFETY: two functions of the signatures that MPI calls, and an integer that is written.
        check(unsafe { (self.functions.Comm_create_keyval)(copy, delete, &raw mut keyval, 0) })?;
        Ok(keyval)
    }

    /// Puts an empty attribute on a communicator.
    pub fn set_attribute(&self, comm: Comm, keyval: c_int) -> Outcome {
        // SAFETY: the value is never read.
        check(unsafe { (self.functions.Comm_set_attr)(comm, keyval, std::ptr::null_mut()) })
    }

    pub fn abort(&self, comm: Comm, code: c_int) {
        // SAFETY: it does not return where MPI works.
        unsafe { (self.functions.Abort)(comm, code) };
    }

    /// Has the program's error handler decide on an error that was found here: by default it ends the program.
    pub fn call_error_handler(&self, comm: Comm, Failed(code): Failed) {
        // SAFETY: it runs the handler that the program or MPI put on the communicator, as MPI does.
        unsafe { (self.functions.Comm_call_errhandler)(comm, code) };
    }

    /// MPI can be called: it was initialised, and not ended.
    pub fn is_running(&self) -> bool {
        let (mut initialized, mut finalized) = (0, 0);
        // SAFETY: one integer is written; this may be called at any time.
        unsafe { (self.functions.Initialized)(&raw mut initialized) };
        // SAFETY: as above.
        unsafe { (self.functions.Finalized)(&raw mut finalized) };
        initialized != 0 && finalized == 0
    }

    /// What MPI grants the threads of the program.
    ///
    /// # Errors
    /// MPI is not running.
    pub fn thread_level(&self) -> Outcome<ThreadLevel> {
        let mut level = 0;
        // SAFETY: one integer is written.
        check(unsafe { (self.functions.Query_thread)(&raw mut level) })?;
        // The constants are those of every library at hand: 0 to 3, and multiples of 1024 in the standard ABI.
        Ok(match if level >= 1024 { level / 1024 } else { level } {
            3 => ThreadLevel::Multiple,
            2 => ThreadLevel::Serialized,
            1 => ThreadLevel::Funneled,
            _ => ThreadLevel::Single,
        })
    }

    /// Whether the calling thread is the one that initialised MPI.
    ///
    /// # Errors
    /// MPI is not running.
    pub fn is_main_thread(&self) -> Outcome<bool> {
        let mut is_main = 0;
        // SAFETY: one integer is written.
        check(unsafe { (self.functions.Is_thread_main)(&raw mut is_main) })?;
        Ok(is_main != 0)
    }

    /// Sums up vectors of `count` elements of a floating-point type over all ranks.
    ///
    /// # Safety
    /// `values` holds so many.
    pub unsafe fn sum_in_place(&self, values: *mut u8, count: usize, datatype: Datatype, comm: Comm) -> Outcome {
        let (c, count) = (&self.constants, int(count)?);
        // SAFETY: as the caller promises.
        check(unsafe { (self.functions.Allreduce)(c.in_place, values as usize, count, datatype, c.sum, comm) })
    }

    /// A reduction by the library itself, out of place.
    ///
    /// # Safety
    /// The call's input and output hold what its kind and count say, and do not overlap.
    pub unsafe fn reduce(&self, call: &Call, reduction: &Reduction, comm: Comm) -> Outcome {
        let f = &self.functions;
        let (from, to, count) = (call.input as usize, call.output as usize, int(call.elements)?);
        let (datatype, op, root) = (reduction.datatype, reduction.op_handle, int(call.root)?);
        check(match call.kind {
            // SAFETY: as the caller promises.
            Kind::Reduce => unsafe { (f.Reduce)(from, to, count, datatype, op, root, comm) },
            // SAFETY: as the caller promises.
            Kind::ReduceScatter => unsafe { (f.Reduce_scatter_block)(from, to, count, datatype, op, comm) },
            // SAFETY: as the caller promises.
            _ => unsafe { (f.Allreduce)(from, to, count, datatype, op, comm) },
        })
    }

    /// All ranks' words, on rank 0 of the communicator; elsewhere nothing.
    pub fn gather(&self, mine: &[u64], comm: Comm) -> Outcome<Vec<Vec<u64>>> {
        let (ranks, rank) = (self.size(comm)? as usize, self.rank(comm)?);
        let (f, word) = (&self.functions, self.constants.uint64);
        let length = mine.len() as u64;
        let mut lengths = vec![0u64; ranks];
        let (from, to) = (&raw const length as usize, lengths.as_mut_ptr() as usize);
        // SAFETY: one word of each rank.
        check(unsafe { (f.Gather)(from, 1, word, to, 1, word, 0, comm) })?;
        let (mut counts, mut starts, mut end) = (Vec::with_capacity(ranks), Vec::with_capacity(ranks), 0u64);
        for &length in &lengths {
            starts.push(int(end)?);
            counts.push(int(length)?);
            end += length;
        }
        let mut all = vec![0u64; usize::try_from(end).map_err(|_| Failed::COUNT)?];
        let (from, to, length) = (mine.as_ptr() as usize, all.as_mut_ptr() as usize, int(length)?);
        // SAFETY: the root's vector holds the sum of the lengths that the ranks gave it.
        check(unsafe { (f.Gatherv)(from, length, word, to, counts.as_ptr(), starts.as_ptr(), word, 0, comm) })?;
        if rank != 0 {
            return Ok(Vec::new());
        }
        let mut rest = all.as_slice();
        Ok(lengths
            .iter()
            .map_while(|&n| {
                let (own, others) = rest.split_at_checked(usize::try_from(n).ok()?)?;
                rest = others;
                Some(own.to_vec())
            })
            .collect())
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

    /// Bytes from one element to the next.
    pub fn extent(&self, datatype: Datatype) -> Outcome<usize> {
        if let Some(element) = self.constants.element(datatype) {
            return Ok(element.bytes);
        }
        let (_, extent) = self.bounds_of(datatype)?;
        // A negative one goes backwards in memory, as sums of addresses that wrap do.
        Ok(extent.cast_unsigned())
    }

    /// Copies elements without their gaps.
    ///
    /// # Safety
    /// `from` holds `count` elements, `to` their bytes.
    pub unsafe fn pack(
        &self,
        from: usize,
        count: usize,
        datatype: Datatype,
        to: *mut u8,
        bytes: usize,
        comm: Comm,
    ) -> Outcome {
        let (mut at, count, bytes) = (0, int(count)?, int(bytes)?);
        // SAFETY: as the caller promises.
        check(unsafe { (self.functions.Pack)(from, count, datatype, to as usize, bytes, &raw mut at, comm) })
    }

    /// Copies bytes to elements with gaps.
    ///
    /// # Safety
    /// `to` holds `count` elements, `from` their bytes.
    pub unsafe fn unpack(
        &self,
        from: *const u8,
        bytes: usize,
        to: usize,
        count: usize,
        datatype: Datatype,
        comm: Comm,
    ) -> Outcome {
        let (mut at, count, bytes) = (0, int(count)?, int(bytes)?);
        // SAFETY: as the caller promises.
        check(unsafe { (self.functions.Unpack)(from as usize, bytes, &raw mut at, to, count, datatype, comm) })
    }

    /// Bytes of one element, and whether elements lie one after the other in the order of their signature.
    #[inline]
    pub fn layout(&self, datatype: Datatype) -> Outcome<(usize, bool)> {
        match self.constants.element(datatype) {
            Some(element) => Ok((element.bytes, true)),
            None => self.layout_asked(datatype),
        }
    }

    /// As [`Library::layout`], for a datatype that every rank of the call names: then it may be the program's own too.
    pub fn layout_of_all(&self, datatype: Datatype) -> Outcome<(usize, bool)> {
        let (size, plain) = self.layout(datatype)?;
        if plain {
            return Ok((size, true));
        }
        let (lower, extent) = self.bounds_of(datatype)?;
        let (mut true_lower, mut true_extent) = (0, 0);
        // SAFETY: two addresses are written.
        check(unsafe { (self.functions.Type_get_true_extent)(datatype, &raw mut true_lower, &raw mut true_extent) })?;
        let dense = lower == 0 && true_lower == 0 && usize::try_from(extent) == Ok(size) && true_extent == extent;
        Ok((size, dense && size > 0))
    }

    #[cold]
    fn layout_asked(&self, datatype: Datatype) -> Outcome<(usize, bool)> {
        let mut size = 0;
        // SAFETY: one integer is written.
        check(unsafe { (self.functions.Type_size)(datatype, &raw mut size) })?;
        // MPI_UNDEFINED, which is negative: more bytes than an `int` holds. No call of so many is served.
        let Ok(size) = usize::try_from(size) else { return Ok((usize::MAX, false)) };
        let (lower, extent) = self.bounds_of(datatype)?;
        let (mut a, mut b, mut c, mut combiner) = (0, 0, 0, 0);
        // SAFETY: four integers are written, each to its own place.
        check(unsafe {
            (self.functions.Type_get_envelope)(datatype, &raw mut a, &raw mut b, &raw mut c, &raw mut combiner)
        })?;
        let named = combiner == self.constants.combiner_named;
        Ok((size, named && lower == 0 && usize::try_from(extent) == Ok(size)))
    }

    /// The lower bound and the extent of a datatype.
    fn bounds_of(&self, datatype: Datatype) -> Outcome<(isize, isize)> {
        let (mut lower, mut extent) = (0, 0);
        // SAFETY: two addresses are written.
        check(unsafe { (self.functions.Type_get_extent)(datatype, &raw mut lower, &raw mut extent) })?;
        Ok((lower, extent))
    }
}

/// # Errors
/// The code, if it is none of success.
#[inline]
pub fn check(code: c_int) -> Outcome {
    if code == 0 { Ok(()) } else { Err(Failed(code)) }
}
