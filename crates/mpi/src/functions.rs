//! The functions of an MPI library that this crate calls.

use std::{
    ffi::{c_int, c_void},
    mem::MaybeUninit,
};

use crate::{
    library::{Comm, Datatype, OpHandle},
    symbols::Scope,
};

/// A function that MPI calls when a communicator with the attribute is freed.
pub type Attribute = extern "C" fn(usize, c_int, *mut c_void, *mut c_void) -> c_int;
/// A function that MPI calls when a communicator with the attribute is duplicated.
pub type CopyAttribute = extern "C" fn(usize, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;

/// A function that MPI calls for the status of a complete generalized request.
pub type Query = extern "C" fn(*mut c_void, *mut c_void) -> c_int;
/// A function that MPI calls when a generalized request is freed.
pub type Free = extern "C" fn(*mut c_void) -> c_int;
/// A function that MPI calls when a generalized request is cancelled.
pub type Cancel = extern "C" fn(*mut c_void, c_int) -> c_int;

/// Memory for an `MPI_Status` of any supported library; the largest has 32 bytes. MPI writes a status before it reads
/// it.
#[repr(C, align(8))]
pub struct Status([MaybeUninit<u8>; 64]);

impl Status {
    pub const EMPTY: Self = Self([MaybeUninit::uninit(); 64]);
}

macro_rules! functions {
    (optional { $($extra:ident: $of:ty, $at:literal;)* } $($name:ident: $type:ty, $symbol:literal;)*) => {
        /// The functions of MPI that this crate calls, named without `PMPI_`. Handles are machine words: calls pass
        /// integers of 32 bits and pointers in the same registers.
        #[allow(non_snake_case, reason = "the names of MPI")]
        pub struct Functions {
            $(pub(crate) $name: $type,)*
            $(pub(crate) $extra: Option<$of>,)*
        }

        impl Functions {
            pub fn find(scope: &Scope) -> Option<Self> {
                Some(Self {
                    $($name: {
                        let address = scope.find($symbol)?;
                        // SAFETY: the symbol is MPI's function of this name, with this C signature.
                        unsafe { std::mem::transmute::<*mut c_void, $type>(address) }
                    },)*
                    $($extra: scope.find($at).map(|address| {
                        // SAFETY: as above.
                        unsafe { std::mem::transmute::<*mut c_void, $of>(address) }
                    }),)*
                })
            }
        }
    };
}

functions! {
    optional {
        Type_get_envelope_c: unsafe extern "C" fn(Datatype, *mut i64, *mut i64, *mut i64, *mut i64, *mut c_int) -> c_int, c"PMPI_Type_get_envelope_c";
    }
    Allgather: unsafe extern "C" fn(usize, c_int, Datatype, usize, c_int, Datatype, Comm) -> c_int, c"PMPI_Allgather";
    Allgatherv: unsafe extern "C" fn(usize, c_int, Datatype, usize, *const c_int, *const c_int, Datatype, Comm) -> c_int, c"PMPI_Allgatherv";
    Allreduce: unsafe extern "C" fn(usize, usize, c_int, Datatype, OpHandle, Comm) -> c_int, c"PMPI_Allreduce";
    Alltoall: unsafe extern "C" fn(usize, c_int, Datatype, usize, c_int, Datatype, Comm) -> c_int, c"PMPI_Alltoall";
    Cancel: unsafe extern "C" fn(*mut usize) -> c_int, c"PMPI_Cancel";
    Comm_call_errhandler: unsafe extern "C" fn(Comm, c_int) -> c_int, c"PMPI_Comm_call_errhandler";
    Comm_create_keyval: unsafe extern "C" fn(CopyAttribute, Attribute, *mut c_int, usize) -> c_int, c"PMPI_Comm_create_keyval";
    Comm_dup: unsafe extern "C" fn(Comm, *mut usize) -> c_int, c"PMPI_Comm_dup";
    Comm_free: unsafe extern "C" fn(*mut usize) -> c_int, c"PMPI_Comm_free";
    Comm_get_attr: unsafe extern "C" fn(Comm, c_int, *mut *const c_int, *mut c_int) -> c_int, c"PMPI_Comm_get_attr";
    Comm_get_errhandler: unsafe extern "C" fn(Comm, *mut usize) -> c_int, c"PMPI_Comm_get_errhandler";
    Comm_group: unsafe extern "C" fn(Comm, *mut usize) -> c_int, c"PMPI_Comm_group";
    Comm_rank: unsafe extern "C" fn(Comm, *mut c_int) -> c_int, c"PMPI_Comm_rank";
    Comm_set_attr: unsafe extern "C" fn(Comm, c_int, *mut c_void) -> c_int, c"PMPI_Comm_set_attr";
    Comm_set_errhandler: unsafe extern "C" fn(Comm, usize) -> c_int, c"PMPI_Comm_set_errhandler";
    Comm_size: unsafe extern "C" fn(Comm, *mut c_int) -> c_int, c"PMPI_Comm_size";
    Comm_split_type: unsafe extern "C" fn(Comm, c_int, c_int, usize, *mut usize) -> c_int, c"PMPI_Comm_split_type";
    Comm_test_inter: unsafe extern "C" fn(Comm, *mut c_int) -> c_int, c"PMPI_Comm_test_inter";
    Abort: unsafe extern "C" fn(Comm, c_int) -> c_int, c"PMPI_Abort";
    Finalized: unsafe extern "C" fn(*mut c_int) -> c_int, c"PMPI_Finalized";
    Gatherv: unsafe extern "C" fn(usize, c_int, Datatype, usize, *const c_int, *const c_int, Datatype, c_int, Comm) -> c_int, c"PMPI_Gatherv";
    Gather: unsafe extern "C" fn(usize, c_int, Datatype, usize, c_int, Datatype, c_int, Comm) -> c_int, c"PMPI_Gather";
    Errhandler_free: unsafe extern "C" fn(*mut usize) -> c_int, c"PMPI_Errhandler_free";
    Get_count: unsafe extern "C" fn(*const Status, Datatype, *mut c_int) -> c_int, c"PMPI_Get_count";
    Grequest_complete: unsafe extern "C" fn(usize) -> c_int, c"PMPI_Grequest_complete";
    Grequest_start: unsafe extern "C" fn(Query, Free, Cancel, *mut c_void, *mut usize) -> c_int, c"PMPI_Grequest_start";
    Group_free: unsafe extern "C" fn(*mut usize) -> c_int, c"PMPI_Group_free";
    Group_translate_ranks: unsafe extern "C" fn(usize, c_int, *const c_int, usize, *mut c_int) -> c_int, c"PMPI_Group_translate_ranks";
    Iallgather: unsafe extern "C" fn(usize, c_int, Datatype, usize, c_int, Datatype, Comm, *mut usize) -> c_int, c"PMPI_Iallgather";
    Iallgatherv: unsafe extern "C" fn(usize, c_int, Datatype, usize, *const c_int, *const c_int, Datatype, Comm, *mut usize) -> c_int, c"PMPI_Iallgatherv";
    Iallreduce: unsafe extern "C" fn(usize, usize, c_int, Datatype, OpHandle, Comm, *mut usize) -> c_int, c"PMPI_Iallreduce";
    Ialltoallv: unsafe extern "C" fn(usize, *const c_int, *const c_int, Datatype, usize, *const c_int, *const c_int, Datatype, Comm, *mut usize) -> c_int, c"PMPI_Ialltoallv";
    Ibcast: unsafe extern "C" fn(usize, c_int, Datatype, c_int, Comm, *mut usize) -> c_int, c"PMPI_Ibcast";
    Igatherv: unsafe extern "C" fn(usize, c_int, Datatype, usize, *const c_int, *const c_int, Datatype, c_int, Comm, *mut usize) -> c_int, c"PMPI_Igatherv";
    Initialized: unsafe extern "C" fn(*mut c_int) -> c_int, c"PMPI_Initialized";
    Ireduce: unsafe extern "C" fn(usize, usize, c_int, Datatype, OpHandle, c_int, Comm, *mut usize) -> c_int, c"PMPI_Ireduce";
    Ireduce_scatter: unsafe extern "C" fn(usize, usize, *const c_int, Datatype, OpHandle, Comm, *mut usize) -> c_int, c"PMPI_Ireduce_scatter";
    Ireduce_scatter_block: unsafe extern "C" fn(usize, usize, c_int, Datatype, OpHandle, Comm, *mut usize) -> c_int, c"PMPI_Ireduce_scatter_block";
    Irecv: unsafe extern "C" fn(usize, c_int, Datatype, c_int, c_int, Comm, *mut usize) -> c_int, c"PMPI_Irecv";
    Iscatterv: unsafe extern "C" fn(usize, *const c_int, *const c_int, Datatype, usize, c_int, Datatype, c_int, Comm, *mut usize) -> c_int, c"PMPI_Iscatterv";
    Isend: unsafe extern "C" fn(usize, c_int, Datatype, c_int, c_int, Comm, *mut usize) -> c_int, c"PMPI_Isend";
    Is_thread_main: unsafe extern "C" fn(*mut c_int) -> c_int, c"PMPI_Is_thread_main";
    Op_commutative: unsafe extern "C" fn(OpHandle, *mut c_int) -> c_int, c"PMPI_Op_commutative";
    Pack: unsafe extern "C" fn(usize, c_int, Datatype, usize, c_int, *mut c_int, Comm) -> c_int, c"PMPI_Pack";
    Query_thread: unsafe extern "C" fn(*mut c_int) -> c_int, c"PMPI_Query_thread";
    Recv_init: unsafe extern "C" fn(usize, c_int, Datatype, c_int, c_int, Comm, *mut usize) -> c_int, c"PMPI_Recv_init";
    Reduce: unsafe extern "C" fn(usize, usize, c_int, Datatype, OpHandle, c_int, Comm) -> c_int, c"PMPI_Reduce";
    Reduce_scatter: unsafe extern "C" fn(usize, usize, *const c_int, Datatype, OpHandle, Comm) -> c_int, c"PMPI_Reduce_scatter";
    Reduce_scatter_block: unsafe extern "C" fn(usize, usize, c_int, Datatype, OpHandle, Comm) -> c_int, c"PMPI_Reduce_scatter_block";
    Reduce_local: unsafe extern "C" fn(usize, usize, c_int, Datatype, OpHandle) -> c_int, c"PMPI_Reduce_local";
    Request_free: unsafe extern "C" fn(*mut usize) -> c_int, c"PMPI_Request_free";
    Scan: unsafe extern "C" fn(usize, usize, c_int, Datatype, OpHandle, Comm) -> c_int, c"PMPI_Scan";
    Scatter: unsafe extern "C" fn(usize, c_int, Datatype, usize, c_int, Datatype, c_int, Comm) -> c_int, c"PMPI_Scatter";
    Start: unsafe extern "C" fn(*mut usize) -> c_int, c"PMPI_Start";
    Status_set_cancelled: unsafe extern "C" fn(*mut c_void, c_int) -> c_int, c"PMPI_Status_set_cancelled";
    Status_set_elements: unsafe extern "C" fn(*mut c_void, Datatype, c_int) -> c_int, c"PMPI_Status_set_elements";
    Test: unsafe extern "C" fn(*mut usize, *mut c_int, *mut Status) -> c_int, c"PMPI_Test";
    Type_dup: unsafe extern "C" fn(Datatype, *mut usize) -> c_int, c"PMPI_Type_dup";
    Type_free: unsafe extern "C" fn(*mut usize) -> c_int, c"PMPI_Type_free";
    Type_get_envelope: unsafe extern "C" fn(Datatype, *mut c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int, c"PMPI_Type_get_envelope";
    Type_get_extent: unsafe extern "C" fn(Datatype, *mut isize, *mut isize) -> c_int, c"PMPI_Type_get_extent";
    Type_get_true_extent: unsafe extern "C" fn(Datatype, *mut isize, *mut isize) -> c_int, c"PMPI_Type_get_true_extent";
    Type_size: unsafe extern "C" fn(Datatype, *mut c_int) -> c_int, c"PMPI_Type_size";
    Unpack: unsafe extern "C" fn(usize, c_int, *mut c_int, usize, c_int, Datatype, Comm) -> c_int, c"PMPI_Unpack";
    Wait: unsafe extern "C" fn(*mut usize, *mut Status) -> c_int, c"PMPI_Wait";
}
