//! Exports each function of MPI in two versions: with counts as `int`, and as `MPI_Count` (suffix `_c`).

use std::ffi::c_int;

use unisono_mpi::library;

use crate::{
    memory::Numbers,
    original::{Original, call_original},
};

/// Converts a list with an `MPI_Count` for each rank to `int`, for a library without the `_c` function; None if a
/// number does not fit. With `across` on an intercommunicator, the list is for the ranks of the remote group.
pub fn narrow(numbers: usize, comm: usize, across: bool) -> Option<Vec<c_int>> {
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

/// Exports both versions of a function. If the MPI library lacks the `_c` function, its `int` function is called
/// instead, with lists converted to `int`; programs that look functions up by name may find the `_c` function here
/// although the library lacks it. With `across`, lists have a number for each rank of the remote group of an
/// intercommunicator.
macro_rules! both_count_types {
    ($name:ident, $name_c:ident, ($($parameter:ident: $type:tt),*), counts($($count:ident),*),
     lists($($($list:ident),+ on $comm:ident, across $across:literal)?), $serve:expr, |$wide:ident| $arguments:expr) => {
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "MPI's")]
        pub extern "C" fn $name($($parameter: $crate::count_types::both_count_types!(@narrow $type)),*) -> c_int {
            use $crate::original::{Original, behind, call_original};
            static ORIGINAL: Original = Original::new(const { behind!($name) });
            let pass = || call_original!(ORIGINAL, $($parameter as usize),*);
            $(let $count = i64::from($count);)*
            let $wide = false;
            $serve($arguments, pass)
        }

        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "MPI's")]
        pub extern "C" fn $name_c($($parameter: $crate::count_types::both_count_types!(@wide $type)),*) -> c_int {
            use $crate::original::{COUNT_TOO_LARGE, Original, behind, call_original};
            static ORIGINAL: Original = Original::new(const { behind!($name_c) });
            static NARROW: Original = Original::new(const { behind!($name) });
            let pass = || {
                if ORIGINAL.address().is_some() {
                    return call_original!(ORIGINAL, $($parameter as usize),*);
                }
                $(if c_int::try_from($count).is_err() { return COUNT_TOO_LARGE })*
                $($(let Some($list) = $crate::count_types::narrow($list, $comm, $across) else { return COUNT_TOO_LARGE };)+
                // The lists stay valid until the call has ended.
                $(let $list = $list.as_ptr() as usize;)+)?
                call_original!(NARROW, $($parameter as usize),*)
            };
            let $wide = true;
            $serve($arguments, pass)
        }
    };
    (@narrow count) => { c_int };
    (@wide count) => { i64 };
    (@narrow $type:tt) => { $type };
    (@wide $type:tt) => { $type };
}

pub(crate) use both_count_types;
