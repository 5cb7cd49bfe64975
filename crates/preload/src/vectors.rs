//! Collectives with a count for every rank, which a plan serves where all ranks give as many bytes.
//!
//! All ranks see the bytes of all, so they agree. Calls in which every rank knows only its own counts (`MPI_Alltoallv`) or
//! only the root does (`MPI_Gatherv`, `MPI_Scatterv`) are the library's. A call never makes a communicator ready.

use std::ffi::c_int;

use unisono_collective::Kind;
use unisono_mpi::library;

use crate::{
    arguments::Arguments,
    intercept::collective,
    memory::{Numbers, Vector},
    original::{COUNT_TOO_LARGE, Original, call_original},
    passed::Place,
};

fn vector(counts: usize, displs: Option<usize>, wide: bool) -> Option<Vector> {
    let numbers = |address: usize| Numbers { address, wide };
    Some(Vector { counts: numbers(counts), displs: displs.map(numbers) })
}

/// The numbers of all ranks as `int`, for a library that has no function for others; with `across`, between two groups
/// those of the other one.
fn narrow(numbers: usize, comm: usize, across: bool) -> Option<Vec<c_int>> {
    static OTHERS: Original = Original::new(c"PMPI_Comm_remote_size");
    let library = library()?;
    let handle = library.constants.handle(comm);
    let mut ranks = library.size(handle).ok()?;
    if across && library.is_inter(handle).ok()? {
        let mut others: c_int = 0;
        if call_original!(OTHERS, comm, &raw mut others as usize) != 0 {
            return None;
        }
        ranks = u32::try_from(others).ok()?;
    }
    let numbers = Numbers { address: numbers, wide: true };
    (0..ranks as usize).map(|rank| c_int::try_from(numbers.at(rank)).ok()).collect()
}

fn gathered(send: usize, n: i64, send_type: usize, recv: usize, vector: Option<Vector>, recv_type: usize) -> Arguments {
    let (kind, place) = (Kind::Allgather, Some(Place::MPI_Allgatherv));
    Arguments { send, send_count: n, send_type, recv, recv_type, vector, place, ..Arguments::new(kind, 0) }
}

fn scattered(send: usize, recv: usize, vector: Option<Vector>, datatype: usize, op: usize) -> Arguments {
    let (kind, place) = (Kind::ReduceScatter, Some(Place::MPI_Reduce_scatter));
    Arguments { send, send_type: datatype, recv, recv_type: datatype, op, vector, place, ..Arguments::new(kind, 0) }
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "MPI's")]
pub extern "C" fn MPI_Allgatherv(
    send: usize,
    n: c_int,
    send_type: usize,
    recv: usize,
    counts: usize,
    displs: usize,
    recv_type: usize,
    comm: usize,
) -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Allgatherv");
    let pass = || call_original!(ORIGINAL, send, n as usize, send_type, recv, counts, displs, recv_type, comm);
    let given = gathered(send, i64::from(n), send_type, recv, vector(counts, Some(displs), false), recv_type);
    collective(Arguments { comm, ..given }, pass)
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "MPI's")]
pub extern "C" fn MPI_Allgatherv_c(
    send: usize,
    n: i64,
    send_type: usize,
    recv: usize,
    counts: usize,
    displs: usize,
    recv_type: usize,
    comm: usize,
) -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Allgatherv_c");
    static NARROW: Original = Original::new(c"PMPI_Allgatherv");
    let pass = || {
        if ORIGINAL.address().is_some() {
            return call_original!(ORIGINAL, send, n as usize, send_type, recv, counts, displs, recv_type, comm);
        }
        let (Ok(n), Some(counts), Some(displs)) =
            (c_int::try_from(n), narrow(counts, comm, true), narrow(displs, comm, true))
        else {
            return COUNT_TOO_LARGE;
        };
        let (counts, displs) = (counts.as_ptr() as usize, displs.as_ptr() as usize);
        call_original!(NARROW, send, n as usize, send_type, recv, counts, displs, recv_type, comm)
    };
    let given = gathered(send, n, send_type, recv, vector(counts, Some(displs), true), recv_type);
    collective(Arguments { comm, ..given }, pass)
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Reduce_scatter(
    send: usize,
    recv: usize,
    counts: usize,
    datatype: usize,
    op: usize,
    comm: usize,
) -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Reduce_scatter");
    let pass = || call_original!(ORIGINAL, send, recv, counts, datatype, op, comm);
    collective(Arguments { comm, ..scattered(send, recv, vector(counts, None, false), datatype, op) }, pass)
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Reduce_scatter_c(
    send: usize,
    recv: usize,
    counts: usize,
    datatype: usize,
    op: usize,
    comm: usize,
) -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Reduce_scatter_c");
    static NARROW: Original = Original::new(c"PMPI_Reduce_scatter");
    let pass = || {
        if ORIGINAL.address().is_some() {
            return call_original!(ORIGINAL, send, recv, counts, datatype, op, comm);
        }
        let Some(counts) = narrow(counts, comm, false) else { return COUNT_TOO_LARGE };
        call_original!(NARROW, send, recv, counts.as_ptr() as usize, datatype, op, comm)
    };
    collective(Arguments { comm, ..scattered(send, recv, vector(counts, None, true), datatype, op) }, pass)
}
