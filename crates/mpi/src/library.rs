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
/// `MPI_Count`.
pub type Count = i64;

/// An error code of MPI, not `MPI_SUCCESS`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failed(pub c_int);

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
            $(pub $name: $type,)*
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
    Op_commutative: unsafe extern "C" fn(OpHandle, *mut c_int) -> c_int, c"PMPI_Op_commutative";
    Pack: unsafe extern "C" fn(usize, c_int, Datatype, usize, c_int, *mut c_int, Comm) -> c_int, c"PMPI_Pack";
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

pub struct Library {
    pub constants: Constants,
    pub functions: Functions,
    scope: Scope,
}

// SAFETY: function addresses and a handle of the loader, none of which is ever changed.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

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
        Ok(size as u32)
    }

    pub fn rank(&self, comm: Comm) -> Outcome<u32> {
        let mut rank = 0;
        // SAFETY: one integer is written.
        check(unsafe { (self.functions.Comm_rank)(comm, &raw mut rank) })?;
        Ok(rank as u32)
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
        Ok(most as u32)
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

    /// MPI can be called: it was initialised, and not ended.
    pub fn is_running(&self) -> bool {
        let (mut initialized, mut finalized) = (0, 0);
        // SAFETY: integers are written; both may be called at any time.
        unsafe {
            (self.functions.Initialized)(&raw mut initialized);
            (self.functions.Finalized)(&raw mut finalized);
        }
        initialized != 0 && finalized == 0
    }

    /// Sums up vectors of `count` elements of a floating-point type over all ranks.
    ///
    /// # Safety
    /// `values` holds so many.
    pub unsafe fn sum_in_place(&self, values: *mut u8, count: usize, datatype: Datatype, comm: Comm) -> Outcome {
        let c = &self.constants;
        // SAFETY: as the caller promises.
        check(unsafe { (self.functions.Allreduce)(c.in_place, values as usize, count as c_int, datatype, c.sum, comm) })
    }

    /// A reduction by the library itself, out of place.
    ///
    /// # Safety
    /// The call's input and output hold what its kind and count say, and do not overlap.
    pub unsafe fn reduce(&self, call: &Call, reduction: &Reduction, comm: Comm) -> Outcome {
        let f = &self.functions;
        let (from, to, count) = (call.input as usize, call.output as usize, call.elements as c_int);
        let (datatype, op) = (reduction.datatype, reduction.op_handle);
        // SAFETY: as the caller promises.
        check(unsafe {
            match call.kind {
                Kind::Reduce => (f.Reduce)(from, to, count, datatype, op, call.root as c_int, comm),
                Kind::ReduceScatter => (f.Reduce_scatter_block)(from, to, count, datatype, op, comm),
                _ => (f.Allreduce)(from, to, count, datatype, op, comm),
            }
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
        let counts: Vec<c_int> = lengths.iter().map(|&n| n as c_int).collect();
        let starts: Vec<c_int> = counts.iter().scan(0, |at, n| Some(std::mem::replace(at, *at + n))).collect();
        let mut all = vec![0u64; lengths.iter().sum::<u64>() as usize];
        let (from, to) = (mine.as_ptr() as usize, all.as_mut_ptr() as usize);
        // SAFETY: the root's vector holds the sum of the lengths it was told.
        check(unsafe {
            (f.Gatherv)(from, length as c_int, word, to, counts.as_ptr(), starts.as_ptr(), word, 0, comm)
        })?;
        if rank != 0 {
            return Ok(Vec::new());
        }
        Ok(starts.iter().zip(&counts).map(|(&at, &n)| all[at as usize..(at + n) as usize].to_vec()).collect())
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
        let (mut lower, mut extent) = (0, 0);
        // SAFETY: two addresses are written.
        check(unsafe { (self.functions.Type_get_extent)(datatype, &raw mut lower, &raw mut extent) })?;
        Ok(extent as usize)
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
        let mut at = 0;
        // SAFETY: as the caller promises.
        check(unsafe {
            (self.functions.Pack)(from, count as c_int, datatype, to as usize, bytes as c_int, &raw mut at, comm)
        })
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
        let mut at = 0;
        // SAFETY: as the caller promises.
        check(unsafe {
            (self.functions.Unpack)(from as usize, bytes as c_int, &raw mut at, to, count as c_int, datatype, comm)
        })
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
        let (mut lower, mut extent) = (0, 0);
        let (mut true_lower, mut true_extent) = (0, 0);
        // SAFETY: four addresses are written.
        unsafe {
            check((self.functions.Type_get_extent)(datatype, &raw mut lower, &raw mut extent))?;
            check((self.functions.Type_get_true_extent)(datatype, &raw mut true_lower, &raw mut true_extent))?;
        }
        let dense = lower == 0 && true_lower == 0 && extent == size as isize && true_extent == extent;
        Ok((size, dense && size > 0))
    }

    #[cold]
    fn layout_asked(&self, datatype: Datatype) -> Outcome<(usize, bool)> {
        let f = &self.functions;
        let (mut size, mut lower, mut extent) = (0, 0, 0);
        let (mut a, mut b, mut c, mut combiner) = (0, 0, 0, 0);
        // SAFETY: integers and addresses are written, each to its own place.
        unsafe {
            check((f.Type_size)(datatype, &raw mut size))?;
            check((f.Type_get_extent)(datatype, &raw mut lower, &raw mut extent))?;
            check((f.Type_get_envelope)(datatype, &raw mut a, &raw mut b, &raw mut c, &raw mut combiner))?;
        }
        let named = combiner == self.constants.combiner_named;
        Ok((size as usize, named && lower == 0 && extent == size as isize))
    }
}

/// # Errors
/// The code, if it is none of success.
#[inline]
pub fn check(code: c_int) -> Outcome {
    if code == 0 { Ok(()) } else { Err(Failed(code)) }
}
