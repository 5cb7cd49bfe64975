//! Collectives that no plan serves: passed on as they came, and counted.
//!
//! Of the forms with `MPI_Count` only those are here whose counts are numbers, not vectors: these can be handed to the
//! other form where a library has no such function.

use std::{
    ffi::c_int,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    intercept::guarded,
    original::{COUNT_TOO_LARGE, NO_FUNCTION, Original, call_original},
};

macro_rules! passed {
    ($($name:ident $pmpi:literal ($($a:ident),*);)*) => {
        /// The order of the counts.
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];
        static COUNTS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];

        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "places of the functions of MPI")]
        enum Place { $($name),* }

        $(
            #[unsafe(no_mangle)]
            #[allow(clippy::too_many_arguments, reason = "MPI's")]
            pub extern "C" fn $name($($a: usize),*) -> c_int {
                static ORIGINAL: Original = Original::new($pmpi);
                COUNTS[Place::$name as usize].fetch_add(1, Ordering::Relaxed);
                guarded(|| call_original!(ORIGINAL, $($a),*), NO_FUNCTION)
            }
        )*
    };
}

/// Forms with `MPI_Count`, counted as the plain form they may fall back to.
macro_rules! passed_wide {
    ($($name:ident $pmpi:literal $narrow:literal as $place:ident ($($a:ident),*) counts($($count:ident),*);)*) => {$(
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "MPI's")]
        pub extern "C" fn $name($($a: usize),*) -> c_int {
            static ORIGINAL: Original = Original::new($pmpi);
            static NARROW: Original = Original::new($narrow);
            COUNTS[Place::$place as usize].fetch_add(1, Ordering::Relaxed);
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
    MPI_Allgatherv c"PMPI_Allgatherv" (a, b, c, d, e, f, g, h);
    MPI_Alltoallv c"PMPI_Alltoallv" (a, b, c, d, e, f, g, h, i);
    MPI_Alltoallw c"PMPI_Alltoallw" (a, b, c, d, e, f, g, h, i);
    MPI_Exscan c"PMPI_Exscan" (a, b, c, d, e, f);
    MPI_Gather c"PMPI_Gather" (a, b, c, d, e, f, g, h);
    MPI_Gatherv c"PMPI_Gatherv" (a, b, c, d, e, f, g, h, i);
    MPI_Iallgather c"PMPI_Iallgather" (a, b, c, d, e, f, g, h);
    MPI_Iallgatherv c"PMPI_Iallgatherv" (a, b, c, d, e, f, g, h, i);
    MPI_Iallreduce c"PMPI_Iallreduce" (a, b, c, d, e, f, g);
    MPI_Ialltoall c"PMPI_Ialltoall" (a, b, c, d, e, f, g, h);
    MPI_Ialltoallv c"PMPI_Ialltoallv" (a, b, c, d, e, f, g, h, i, j);
    MPI_Ibarrier c"PMPI_Ibarrier" (a, b);
    MPI_Ibcast c"PMPI_Ibcast" (a, b, c, d, e, f);
    MPI_Igather c"PMPI_Igather" (a, b, c, d, e, f, g, h, i);
    MPI_Ireduce c"PMPI_Ireduce" (a, b, c, d, e, f, g, h);
    MPI_Ireduce_scatter c"PMPI_Ireduce_scatter" (a, b, c, d, e, f, g);
    MPI_Ireduce_scatter_block c"PMPI_Ireduce_scatter_block" (a, b, c, d, e, f, g);
    MPI_Iscatter c"PMPI_Iscatter" (a, b, c, d, e, f, g, h, i);
    MPI_Reduce_scatter c"PMPI_Reduce_scatter" (a, b, c, d, e, f);
    MPI_Scan c"PMPI_Scan" (a, b, c, d, e, f);
    MPI_Scatter c"PMPI_Scatter" (a, b, c, d, e, f, g, h);
    MPI_Scatterv c"PMPI_Scatterv" (a, b, c, d, e, f, g, h, i);
    MPI_Start c"PMPI_Start" (a);
    MPI_Startall c"PMPI_Startall" (a, b);
}

passed_wide! {
    MPI_Exscan_c c"PMPI_Exscan_c" c"PMPI_Exscan" as MPI_Exscan (a, b, c, d, e, f) counts(c);
    MPI_Gather_c c"PMPI_Gather_c" c"PMPI_Gather" as MPI_Gather (a, b, c, d, e, f, g, h) counts(b, e);
    MPI_Iallgather_c c"PMPI_Iallgather_c" c"PMPI_Iallgather" as MPI_Iallgather (a, b, c, d, e, f, g, h) counts(b, e);
    MPI_Iallreduce_c c"PMPI_Iallreduce_c" c"PMPI_Iallreduce" as MPI_Iallreduce (a, b, c, d, e, f, g) counts(c);
    MPI_Ialltoall_c c"PMPI_Ialltoall_c" c"PMPI_Ialltoall" as MPI_Ialltoall (a, b, c, d, e, f, g, h) counts(b, e);
    MPI_Ibcast_c c"PMPI_Ibcast_c" c"PMPI_Ibcast" as MPI_Ibcast (a, b, c, d, e, f) counts(b);
    MPI_Ireduce_c c"PMPI_Ireduce_c" c"PMPI_Ireduce" as MPI_Ireduce (a, b, c, d, e, f, g, h) counts(c);
    MPI_Scan_c c"PMPI_Scan_c" c"PMPI_Scan" as MPI_Scan (a, b, c, d, e, f) counts(c);
    MPI_Scatter_c c"PMPI_Scatter_c" c"PMPI_Scatter" as MPI_Scatter (a, b, c, d, e, f, g, h) counts(b, e);
}

pub fn counts() -> impl Iterator<Item = u64> {
    COUNTS.iter().map(|count| count.load(Ordering::Relaxed))
}
