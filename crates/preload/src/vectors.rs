//! Collectives with a count for every rank, which a plan serves where all ranks give about as many bytes.
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
    original::{COUNT_TOO_LARGE, Original, behind, call_original},
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

/// The two forms of a collective with lists of numbers: `int`, and `MPI_Count` and `MPI_Aint` (`_c`). Where a library lacks
/// the second, the first gets lists of its own; `across` says that lists count the ranks of the other group, between two.
macro_rules! two_forms {
    ($name:ident, $name_c:ident, ($($parameter:ident: $type:tt),*), counts($($count:ident),*), lists($($list:ident),*),
     on $comm:ident, across $across:literal, |$wide:ident| $given:expr) => {
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "MPI's")]
        pub extern "C" fn $name($($parameter: two_forms!(@narrow $type)),*) -> c_int {
            static ORIGINAL: Original = Original::new(const { behind!($name) });
            let pass = || call_original!(ORIGINAL, $($parameter as usize),*);
            $(let $count = i64::from($count);)*
            let $wide = false;
            collective(Arguments { comm: $comm, ..$given }, pass)
        }

        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "MPI's")]
        pub extern "C" fn $name_c($($parameter: two_forms!(@wide $type)),*) -> c_int {
            static ORIGINAL: Original = Original::new(const { behind!($name_c) });
            static NARROW: Original = Original::new(const { behind!($name) });
            let pass = || {
                if ORIGINAL.address().is_some() {
                    return call_original!(ORIGINAL, $($parameter as usize),*);
                }
                $(if c_int::try_from($count).is_err() { return COUNT_TOO_LARGE })*
                $(let Some($list) = narrow($list, $comm, $across) else { return COUNT_TOO_LARGE };)*
                // The vectors live until the call has ended.
                $(let $list = $list.as_ptr() as usize;)*
                call_original!(NARROW, $($parameter as usize),*)
            };
            let $wide = true;
            collective(Arguments { comm: $comm, ..$given }, pass)
        }
    };
    (@narrow count) => { c_int };
    (@wide count) => { i64 };
    (@narrow $type:tt) => { $type };
    (@wide $type:tt) => { $type };
}

two_forms! {
    MPI_Allgatherv, MPI_Allgatherv_c,
    (send: usize, n: count, send_type: usize, recv: usize, counts: usize, displs: usize, recv_type: usize, comm: usize),
    counts(n), lists(counts, displs), on comm, across true,
    |wide| gathered(send, n, send_type, recv, vector(counts, Some(displs), wide), recv_type)
}

two_forms! {
    MPI_Reduce_scatter, MPI_Reduce_scatter_c,
    (send: usize, recv: usize, counts: usize, datatype: usize, op: usize, comm: usize),
    counts(), lists(counts), on comm, across false,
    |wide| scattered(send, recv, vector(counts, None, wide), datatype, op)
}
