//! The Fortran names of the functions of this library: `mpif.h`, `use mpi` and `use mpi_f08`.
//!
//! Open MPI's bindings call the `PMPI_` functions of C and so bypass [`crate::exports`]. Programs and the module `mpi`
//! call `mpi_NAME_`, the name that gfortran and most compilers give a subroutine; the module `mpi_f08` calls
//! `ompi_NAME_f`. This library exports both names; each calls the C function of this library with the arguments that
//! the bindings would pass. MPICH's bindings call `MPI_` functions themselves, so with MPICH `mpi_NAME_` only calls the
//! bindings.

use std::{ffi::c_int, sync::OnceLock};

use unisono_mpi::{Abi, Fortran, library};

use crate::{
    comms,
    exports::{
        MPI_Allgather, MPI_Allgather_init, MPI_Allreduce, MPI_Allreduce_init, MPI_Alltoall, MPI_Alltoall_init,
        MPI_Barrier, MPI_Barrier_init, MPI_Bcast, MPI_Bcast_init, MPI_Gather, MPI_Gather_init, MPI_Iallgather,
        MPI_Iallreduce, MPI_Ialltoall, MPI_Ibarrier, MPI_Ibcast, MPI_Igather, MPI_Ireduce, MPI_Ireduce_scatter_block,
        MPI_Iscan, MPI_Iscatter, MPI_Reduce, MPI_Reduce_init, MPI_Reduce_scatter_block, MPI_Reduce_scatter_block_init,
        MPI_Scan, MPI_Scan_init, MPI_Scatter, MPI_Scatter_init, ready, write_report,
    },
    intercept::guarded,
    original::{Original, call_original},
    passed_on::{
        MPI_Alltoallv, MPI_Exscan, MPI_Gatherv, MPI_Iallgatherv, MPI_Ialltoallv, MPI_Ireduce_scatter, MPI_Scatterv,
    },
    persistent::{MPI_Request_free, MPI_Start, MPI_Startall},
    vectors::{MPI_Allgatherv, MPI_Reduce_scatter},
};

/// Returns Open MPI's conversions of arguments; None with other libraries, and before the ranks compared their plans
/// ([`unisono_mpi::Library::fortran`]).
#[inline]
fn conversions() -> Option<&'static Fortran> {
    static FOUND: OnceLock<Fortran> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Some(found);
    }
    let found = guarded(|| library()?.fortran(), None)?;
    Some(FOUND.get_or_init(|| found))
}

#[inline]
fn integer(at: usize) -> c_int {
    // SAFETY: a Fortran program passes the address of an INTEGER, which has as many bytes as an `int`
    // (`Library::fortran`).
    unsafe { std::ptr::with_exposed_provenance::<c_int>(at).read_unaligned() }
}

/// Writes an INTEGER of the program, unless the address is 0, which `mpi_f08` passes for an omitted error code.
#[inline]
fn give(at: usize, number: c_int) {
    if at != 0 {
        // SAFETY: as above.
        unsafe { std::ptr::with_exposed_provenance_mut::<c_int>(at).write_unaligned(number) }
    }
}

/// Lists for each function its two names, the bindings' name of the original, the C function, and the conversions of
/// its arguments: `address` of data, `list` of integers, `number`, `datatype`, `op`, `comm`, `info`, `request`.
macro_rules! fortran {
    ($($name:ident $inner:ident $pmpi:literal $c:ident ($($a:ident: $how:ident),*);)*) => {$(
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "MPI's")]
        pub extern "C" fn $name($($a: usize,)* error: usize) {
            static ORIGINAL: Original = Original::new($pmpi);
            let Some(_fortran) = conversions() else {
                guarded(|| call_original!(ORIGINAL, $($a,)* error), 0);
                return;
            };
            #[allow(unused_mut, unused_variables, reason = "of calls that are only begun")]
            let mut handle = 0usize;
            #[allow(unused_variables, reason = "as above")]
            let request_at = &raw mut handle as usize;
            let code = $c($(fortran!(@$how _fortran, $a, request_at)),*);
            $(fortran!(@after $how _fortran, $a, handle);)*
            give(error, code);
        }

        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "MPI's")]
        pub extern "C" fn $inner($($a: usize,)* error: usize) {
            $name($($a,)* error);
        }
    )*};
    (@address $f:ident, $a:ident, $r:ident) => { $f.buffer($a) };
    (@list $f:ident, $a:ident, $r:ident) => { $a };
    (@number $f:ident, $a:ident, $r:ident) => { integer($a) };
    (@word $f:ident, $a:ident, $r:ident) => { integer($a) as usize };
    (@datatype $f:ident, $a:ident, $r:ident) => { $f.datatype(integer($a)) };
    (@op $f:ident, $a:ident, $r:ident) => { $f.op(integer($a)) };
    (@comm $f:ident, $a:ident, $r:ident) => { $f.comm(integer($a)) };
    (@info $f:ident, $a:ident, $r:ident) => { $f.info(integer($a)) };
    (@request $f:ident, $a:ident, $r:ident) => { $r };
    (@after request $f:ident, $a:ident, $handle:ident) => {
        if $handle != 0 {
            give($a, $f.request($handle));
        }
    };
    (@after $how:ident $f:ident, $a:ident, $handle:ident) => {};
}

#[rustfmt::skip]
fortran! {
    mpi_allgather_ ompi_allgather_f c"pmpi_allgather_" MPI_Allgather
        (a: address, b: number, c: datatype, d: address, e: number, f: datatype, g: comm);
    mpi_allgatherv_ ompi_allgatherv_f c"pmpi_allgatherv_" MPI_Allgatherv
        (a: address, b: number, c: datatype, d: address, e: list, f: list, g: datatype, h: comm);
    mpi_allreduce_ ompi_allreduce_f c"pmpi_allreduce_" MPI_Allreduce
        (a: address, b: address, c: number, d: datatype, e: op, f: comm);
    mpi_alltoall_ ompi_alltoall_f c"pmpi_alltoall_" MPI_Alltoall
        (a: address, b: number, c: datatype, d: address, e: number, f: datatype, g: comm);
    mpi_alltoallv_ ompi_alltoallv_f c"pmpi_alltoallv_" MPI_Alltoallv
        (a: address, b: list, c: list, d: datatype, e: address, f: list, g: list, h: datatype, i: comm);
    mpi_barrier_ ompi_barrier_f c"pmpi_barrier_" MPI_Barrier (a: comm);
    mpi_bcast_ ompi_bcast_f c"pmpi_bcast_" MPI_Bcast (a: address, b: number, c: datatype, d: number, e: comm);
    mpi_exscan_ ompi_exscan_f c"pmpi_exscan_" MPI_Exscan
        (a: address, b: address, c: word, d: datatype, e: op, f: comm);
    mpi_gather_ ompi_gather_f c"pmpi_gather_" MPI_Gather
        (a: address, b: number, c: datatype, d: address, e: number, f: datatype, g: number, h: comm);
    mpi_gatherv_ ompi_gatherv_f c"pmpi_gatherv_" MPI_Gatherv
        (a: address, b: word, c: datatype, d: address, e: list, f: list, g: datatype, h: word, i: comm);
    mpi_iallgather_ ompi_iallgather_f c"pmpi_iallgather_" MPI_Iallgather
        (a: address, b: number, c: datatype, d: address, e: number, f: datatype, g: comm, h: request);
    mpi_iallgatherv_ ompi_iallgatherv_f c"pmpi_iallgatherv_" MPI_Iallgatherv
        (a: address, b: word, c: datatype, d: address, e: list, f: list, g: datatype, h: comm, i: request);
    mpi_iallreduce_ ompi_iallreduce_f c"pmpi_iallreduce_" MPI_Iallreduce
        (a: address, b: address, c: number, d: datatype, e: op, f: comm, g: request);
    mpi_ialltoall_ ompi_ialltoall_f c"pmpi_ialltoall_" MPI_Ialltoall
        (a: address, b: number, c: datatype, d: address, e: number, f: datatype, g: comm, h: request);
    mpi_ialltoallv_ ompi_ialltoallv_f c"pmpi_ialltoallv_" MPI_Ialltoallv
        (a: address, b: list, c: list, d: datatype, e: address, f: list, g: list, h: datatype, i: comm, j: request);
    mpi_ibarrier_ ompi_ibarrier_f c"pmpi_ibarrier_" MPI_Ibarrier (a: comm, b: request);
    mpi_ibcast_ ompi_ibcast_f c"pmpi_ibcast_" MPI_Ibcast
        (a: address, b: number, c: datatype, d: number, e: comm, f: request);
    mpi_igather_ ompi_igather_f c"pmpi_igather_" MPI_Igather
        (a: address, b: number, c: datatype, d: address, e: number, f: datatype, g: number, h: comm, i: request);
    mpi_ireduce_ ompi_ireduce_f c"pmpi_ireduce_" MPI_Ireduce
        (a: address, b: address, c: number, d: datatype, e: op, f: number, g: comm, h: request);
    mpi_ireduce_scatter_ ompi_ireduce_scatter_f c"pmpi_ireduce_scatter_" MPI_Ireduce_scatter
        (a: address, b: address, c: list, d: datatype, e: op, f: comm, g: request);
    mpi_ireduce_scatter_block_ ompi_ireduce_scatter_block_f c"pmpi_ireduce_scatter_block_" MPI_Ireduce_scatter_block
        (a: address, b: address, c: number, d: datatype, e: op, f: comm, g: request);
    mpi_iscan_ ompi_iscan_f c"pmpi_iscan_" MPI_Iscan
        (a: address, b: address, c: number, d: datatype, e: op, f: comm, g: request);
    mpi_iscatter_ ompi_iscatter_f c"pmpi_iscatter_" MPI_Iscatter
        (a: address, b: number, c: datatype, d: address, e: number, f: datatype, g: number, h: comm, i: request);
    mpi_reduce_ ompi_reduce_f c"pmpi_reduce_" MPI_Reduce
        (a: address, b: address, c: number, d: datatype, e: op, f: number, g: comm);
    mpi_reduce_scatter_ ompi_reduce_scatter_f c"pmpi_reduce_scatter_" MPI_Reduce_scatter
        (a: address, b: address, c: list, d: datatype, e: op, f: comm);
    mpi_reduce_scatter_block_ ompi_reduce_scatter_block_f c"pmpi_reduce_scatter_block_" MPI_Reduce_scatter_block
        (a: address, b: address, c: number, d: datatype, e: op, f: comm);
    mpi_scan_ ompi_scan_f c"pmpi_scan_" MPI_Scan (a: address, b: address, c: number, d: datatype, e: op, f: comm);
    mpi_scatter_ ompi_scatter_f c"pmpi_scatter_" MPI_Scatter
        (a: address, b: number, c: datatype, d: address, e: number, f: datatype, g: number, h: comm);
    mpi_scatterv_ ompi_scatterv_f c"pmpi_scatterv_" MPI_Scatterv
        (a: address, b: list, c: list, d: datatype, e: address, f: word, g: datatype, h: word, i: comm);
}

#[rustfmt::skip]
fortran! {
    mpi_allgather_init_ ompi_allgather_init_f c"pmpi_allgather_init_" MPI_Allgather_init
        (a: address, b: number, c: datatype, d: address, e: number, f: datatype, g: comm, h: info, i: request);
    mpi_allreduce_init_ ompi_allreduce_init_f c"pmpi_allreduce_init_" MPI_Allreduce_init
        (a: address, b: address, c: number, d: datatype, e: op, f: comm, g: info, h: request);
    mpi_alltoall_init_ ompi_alltoall_init_f c"pmpi_alltoall_init_" MPI_Alltoall_init
        (a: address, b: number, c: datatype, d: address, e: number, f: datatype, g: comm, h: info, i: request);
    mpi_barrier_init_ ompi_barrier_init_f c"pmpi_barrier_init_" MPI_Barrier_init (a: comm, b: info, c: request);
    mpi_bcast_init_ ompi_bcast_init_f c"pmpi_bcast_init_" MPI_Bcast_init
        (a: address, b: number, c: datatype, d: number, e: comm, f: info, g: request);
    mpi_gather_init_ ompi_gather_init_f c"pmpi_gather_init_" MPI_Gather_init
        (a: address, b: number, c: datatype, d: address, e: number, f: datatype, g: number, h: comm, i: info, j: request);
    mpi_reduce_init_ ompi_reduce_init_f c"pmpi_reduce_init_" MPI_Reduce_init
        (a: address, b: address, c: number, d: datatype, e: op, f: number, g: comm, h: info, i: request);
    mpi_reduce_scatter_block_init_ ompi_reduce_scatter_block_init_f c"pmpi_reduce_scatter_block_init_"
        MPI_Reduce_scatter_block_init
        (a: address, b: address, c: number, d: datatype, e: op, f: comm, g: info, h: request);
    mpi_scan_init_ ompi_scan_init_f c"pmpi_scan_init_" MPI_Scan_init
        (a: address, b: address, c: number, d: datatype, e: op, f: comm, g: info, h: request);
    mpi_scatter_init_ ompi_scatter_init_f c"pmpi_scatter_init_" MPI_Scatter_init
        (a: address, b: number, c: datatype, d: address, e: number, f: datatype, g: number, h: comm, i: info, j: request);
}

/// Exports subroutines that take one existing request, or an array of `count` requests.
macro_rules! on_requests {
    ($($name:ident $inner:ident $pmpi:literal ($requests:ident $(of $count:ident)?) $c:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($count: usize,)? $requests: usize, error: usize) {
            static ORIGINAL: Original = Original::new($pmpi);
            let Some(fortran) = conversions() else {
                guarded(|| call_original!(ORIGINAL, $($count,)? $requests, error), 0);
                return;
            };
            #[allow(unused_variables, reason = "of one request")]
            let count = 1;
            $(let count = integer($count);)?
            let at = |k: usize| $requests + k * size_of::<c_int>();
            let number = usize::try_from(count).unwrap_or(0);
            let mut handles: Vec<usize> = (0..number).map(|k| fortran.handle(integer(at(k)))).collect();
            let code = on_requests!(@call $c, handles, $($count, count)?);
            handles.iter().enumerate().for_each(|(k, &handle)| give(at(k), fortran.request(handle)));
            give(error, code);
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $inner($($count: usize,)? $requests: usize, error: usize) {
            $name($($count,)? $requests, error);
        }
    )*};
    (@call $c:ident, $handles:ident,) => { $c($handles.as_mut_ptr() as usize) };
    (@call $c:ident, $handles:ident, $given:ident, $count:ident) => { $c($count, $handles.as_mut_ptr() as usize) };
}

on_requests! {
    mpi_start_ ompi_start_f c"pmpi_start_" (request) MPI_Start;
    mpi_startall_ ompi_startall_f c"pmpi_startall_" (requests of count) MPI_Startall;
    mpi_request_free_ ompi_request_free_f c"pmpi_request_free_" (request) MPI_Request_free;
}

/// Calls the bindings' own subroutine, which may have another name in MPICH's `mpi_f08`.
macro_rules! call_binding {
    ($pmpi:literal $(or $pmpir:literal)?, $($a:expr),*) => {{
        static NAMES: [Original; 2] = [Original::new(call_binding!(@first $($pmpir,)? $pmpi)), Original::new($pmpi)];
        let binding = guarded(|| NAMES.iter().find(|name| name.address().is_some()), None).unwrap_or(&NAMES[0]);
        guarded(|| call_original!(binding, $($a),*), 0);
    }};
    (@first $name:literal $(, $others:literal)*) => { $name };
}

/// Exports subroutines that initialise MPI. They call the bindings' own subroutines, which also initialise the Fortran
/// interface.
macro_rules! begin {
    ($($name:ident $pmpi:literal $(or $pmpir:literal)? ($($a:ident),*);)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($a: usize),*) {
            call_binding!($pmpi $(or $pmpir)?, $($a),*);
            // If initialization failed, MPI does not run, and plans are not compared.
            let runs = guarded(|| library().is_some_and(unisono_mpi::Library::is_running), false);
            ready(if runs { 0 } else { 1 });
        }
    )*};
}

begin! {
    mpi_init_ c"pmpi_init_" (error);
    ompi_init_f c"pmpi_init_" (error);
    mpi_init_f08_ c"pmpi_init_f08_" or c"pmpir_init_f08_" (error);
    mpi_init_thread_ c"pmpi_init_thread_" (required, provided, error);
    ompi_init_thread_f c"pmpi_init_thread_" (required, provided, error);
    mpi_init_thread_f08_ c"pmpi_init_thread_f08_" or c"pmpir_init_thread_f08_" (required, provided, error);
}

/// Exports subroutines that free a communicator. They call the bindings' own subroutines; MPICH's then call the C
/// function of this library.
macro_rules! free {
    ($($name:ident $inner:ident $pmpi:literal;)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(comm: usize, error: usize) {
            let free = || {
                call_binding!($pmpi, comm, error);
                0
            };
            match conversions() {
                Some(fortran) => guarded(|| comms::free(fortran.comm(integer(comm)), free), 0),
                None => free(),
            };
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $inner(comm: usize, error: usize) {
            $name(comm, error);
        }
    )*};
}

free! {
    mpi_comm_free_ ompi_comm_free_f c"pmpi_comm_free_";
    mpi_comm_disconnect_ ompi_comm_disconnect_f c"pmpi_comm_disconnect_";
}

/// Exports subroutines that end MPI. `reports` is false where the bindings call the C function of this library, which
/// writes the report.
macro_rules! end {
    ($($name:ident $pmpi:literal $(or $pmpir:literal)? reports $reports:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(error: usize) {
            if $reports {
                guarded(write_report, ());
            }
            call_binding!($pmpi $(or $pmpir)?, error);
        }
    )*};
}

end! {
    mpi_finalize_ c"pmpi_finalize_" reports conversions().is_some();
    ompi_finalize_f c"pmpi_finalize_" reports conversions().is_some();
    mpi_finalize_f08_ c"pmpi_finalize_f08_" or c"pmpir_finalize_f08_" reports is_mpich();
}

/// Returns whether the library is MPICH, whose Fortran handles equal its C handles.
fn is_mpich() -> bool {
    guarded(|| library().is_some_and(|library| library.constants.abi == Abi::Mpich), false)
}

fn handle(at: usize) -> usize {
    integer(at).cast_unsigned() as usize
}

/// Serves barriers of MPICH's `mpi_f08`, which calls the `PMPI_` function of C because a barrier has no data.
#[unsafe(no_mangle)]
pub extern "C" fn mpi_barrier_f08_(comm: usize, error: usize) {
    if is_mpich() {
        give(error, MPI_Barrier(handle(comm)));
    } else {
        call_binding!(c"pmpi_barrier_f08_" or c"pmpir_barrier_f08_", comm, error);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn mpi_ibarrier_f08_(comm: usize, request: usize, error: usize) {
    if is_mpich() {
        // A request of MPICH has as many bytes in Fortran as in C.
        give(error, MPI_Ibarrier(handle(comm), request));
    } else {
        call_binding!(c"pmpi_ibarrier_f08_" or c"pmpir_ibarrier_f08_", comm, request, error);
    }
}
