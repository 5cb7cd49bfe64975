//! Collectives that this library counts and lets the MPI library make. A plan may serve the functions in braces, which
//! other modules export ([`crate::begun`], [`crate::persistent`], [`crate::vectors`]).
//!
//! Of the `_c` functions, this module exports only those without lists of counts: if a library lacks such a function,
//! the `int` function can be called instead.

use std::{
    ffi::c_int,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    intercept::guarded,
    original::{COUNT_TOO_LARGE, NO_FUNCTION, Original, call_original},
};

macro_rules! passed {
    ({$($elsewhere:ident)*} $($name:ident $pmpi:literal ($($a:ident),*);)*) => {
        /// The names of the functions, in the order of the counts.
        pub const NAMES: &[&str] = &[$(stringify!($elsewhere),)* $(stringify!($name)),*];
        static COUNTS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];

        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "places of the functions of MPI")]
        #[derive(Clone, Copy, Debug)]
        pub enum Place { $($elsewhere,)* $($name),* }

        $(
            #[unsafe(no_mangle)]
            #[allow(clippy::too_many_arguments, reason = "MPI's")]
            pub extern "C" fn $name($($a: usize),*) -> c_int {
                static ORIGINAL: Original = Original::new($pmpi);
                count(Place::$name);
                guarded(|| call_original!(ORIGINAL, $($a),*), NO_FUNCTION)
            }
        )*
    };
}

/// Exports `_c` functions, counted as the `int` function, which is called if the library lacks the `_c` function.
macro_rules! passed_wide {
    ($($name:ident $pmpi:literal $narrow:literal as $place:ident ($($a:ident),*) counts($($count:ident),*);)*) => {$(
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "MPI's")]
        pub extern "C" fn $name($($a: usize),*) -> c_int {
            static ORIGINAL: Original = Original::new($pmpi);
            static NARROW: Original = Original::new($narrow);
            count(Place::$place);
            let pass = || {
                if ORIGINAL.address().is_some() {
                    return call_original!(ORIGINAL, $($a),*);
                }
                if [$($count),*].iter().any(|&count: &usize| i32::try_from(count.cast_signed()).is_err()) {
                    return COUNT_TOO_LARGE;
                }
                call_original!(NARROW, $($a),*)
            };
            guarded(pass, NO_FUNCTION)
        }
    )*};
}

passed! {
    { MPI_Iallgather MPI_Iallreduce MPI_Ialltoall MPI_Ibarrier MPI_Ibcast MPI_Igather MPI_Ireduce
      MPI_Ireduce_scatter_block MPI_Iscan MPI_Iscatter MPI_Allgatherv MPI_Reduce_scatter MPI_Start MPI_Startall
      MPI_Allgather_init MPI_Allreduce_init MPI_Alltoall_init MPI_Barrier_init MPI_Bcast_init MPI_Gather_init
      MPI_Reduce_init MPI_Reduce_scatter_block_init MPI_Scan_init MPI_Scatter_init }
    MPI_Alltoallv c"PMPI_Alltoallv" (a, b, c, d, e, f, g, h, i);
    MPI_Alltoallw c"PMPI_Alltoallw" (a, b, c, d, e, f, g, h, i);
    MPI_Exscan c"PMPI_Exscan" (a, b, c, d, e, f);
    MPI_Gatherv c"PMPI_Gatherv" (a, b, c, d, e, f, g, h, i);
    MPI_Iallgatherv c"PMPI_Iallgatherv" (a, b, c, d, e, f, g, h, i);
    MPI_Ialltoallv c"PMPI_Ialltoallv" (a, b, c, d, e, f, g, h, i, j);
    MPI_Ireduce_scatter c"PMPI_Ireduce_scatter" (a, b, c, d, e, f, g);
    MPI_Scatterv c"PMPI_Scatterv" (a, b, c, d, e, f, g, h, i);
    MPI_Neighbor_allgather c"PMPI_Neighbor_allgather" (a, b, c, d, e, f, g);
    MPI_Neighbor_allgatherv c"PMPI_Neighbor_allgatherv" (a, b, c, d, e, f, g, h);
    MPI_Neighbor_alltoall c"PMPI_Neighbor_alltoall" (a, b, c, d, e, f, g);
    MPI_Neighbor_alltoallv c"PMPI_Neighbor_alltoallv" (a, b, c, d, e, f, g, h, i);
    MPI_Neighbor_alltoallw c"PMPI_Neighbor_alltoallw" (a, b, c, d, e, f, g, h, i);
    MPI_Ineighbor_allgather c"PMPI_Ineighbor_allgather" (a, b, c, d, e, f, g, h);
    MPI_Ineighbor_allgatherv c"PMPI_Ineighbor_allgatherv" (a, b, c, d, e, f, g, h, i);
    MPI_Ineighbor_alltoall c"PMPI_Ineighbor_alltoall" (a, b, c, d, e, f, g, h);
    MPI_Ineighbor_alltoallv c"PMPI_Ineighbor_alltoallv" (a, b, c, d, e, f, g, h, i, j);
    MPI_Ineighbor_alltoallw c"PMPI_Ineighbor_alltoallw" (a, b, c, d, e, f, g, h, i, j);
}

passed_wide! {
    MPI_Exscan_c c"PMPI_Exscan_c" c"PMPI_Exscan" as MPI_Exscan (a, b, c, d, e, f) counts(c);
    MPI_Neighbor_allgather_c c"PMPI_Neighbor_allgather_c" c"PMPI_Neighbor_allgather" as MPI_Neighbor_allgather
        (a, b, c, d, e, f, g) counts(b, e);
    MPI_Neighbor_alltoall_c c"PMPI_Neighbor_alltoall_c" c"PMPI_Neighbor_alltoall" as MPI_Neighbor_alltoall
        (a, b, c, d, e, f, g) counts(b, e);
}

/// Counts a call that the library makes.
pub fn count(place: Place) {
    COUNTS[place as usize].fetch_add(1, Ordering::Relaxed);
}

pub fn counts() -> impl Iterator<Item = u64> {
    COUNTS.iter().map(|count| count.load(Ordering::Relaxed))
}
