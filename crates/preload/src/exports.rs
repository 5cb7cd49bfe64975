//! The functions that stand before the library's. Handles and addresses are machine words; an `int` of the caller's is
//! an `int` here, so that what stands above it in its register is not read.

use std::{ffi::c_int, sync::atomic::Ordering};

use unisono_collective::Kind;
use unisono_mpi::{Agreement, library};

use crate::{
    arguments::Arguments,
    begun::begin,
    home,
    intercept::{SERVED, collective, guarded},
    original::{COUNT_TOO_LARGE, NO_FUNCTION, Original, call_original},
    passed::Place,
    report,
    settings::settings,
};

/// The two forms of a collective: counts as `int`, and as `MPI_Count` (`_c`). Not every library has the second; then
/// the first serves, as programs that look functions up by name may call the second because it is here.
macro_rules! two_forms {
    ($name:ident, $name_c:ident, $pmpi:literal, $pmpi_c:literal,
     ($($parameter:ident: $type:tt),*), counts($($count:ident),*), on $comm:ident, $kind:expr, { $($field:ident: $value:expr),* }
     $(, begins $request:ident at $place:ident)?) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($parameter: two_forms!(@narrow $type)),*) -> c_int {
            static ORIGINAL: Original = Original::new($pmpi);
            let pass = || call_original!(ORIGINAL, $($parameter as usize),*);
            $(let $count = i64::from($count);)*
            two_forms!(@call Arguments { $($field: $value,)* ..Arguments::new($kind, $comm) }, pass $(, $request, $place)?)
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $name_c($($parameter: two_forms!(@wide $type)),*) -> c_int {
            static ORIGINAL: Original = Original::new($pmpi_c);
            static NARROW: Original = Original::new($pmpi);
            let pass = || {
                if ORIGINAL.address().is_some() {
                    return call_original!(ORIGINAL, $($parameter as usize),*);
                }
                if [$($count),*].iter().any(|&count| i32::try_from(count).is_err()) {
                    return COUNT_TOO_LARGE;
                }
                call_original!(NARROW, $($parameter as usize),*)
            };
            two_forms!(@call Arguments { $($field: $value,)* ..Arguments::new($kind, $comm) }, pass $(, $request, $place)?)
        }
    };
    (@call $arguments:expr, $pass:expr) => { collective($arguments, $pass) };
    (@call $arguments:expr, $pass:expr, $request:ident, $place:ident) => {
        begin($arguments, $request, Place::$place, $pass)
    };
    (@narrow count) => { c_int };
    (@wide count) => { i64 };
    (@narrow $type:tt) => { $type };
    (@wide $type:tt) => { $type };
}

two_forms! {
    MPI_Allreduce, MPI_Allreduce_c, c"PMPI_Allreduce", c"PMPI_Allreduce_c",
    (send: usize, recv: usize, n: count, datatype: usize, op: usize, comm: usize), counts(n), on comm, Kind::Allreduce,
    { send: send, send_count: n, send_type: datatype, recv: recv, recv_count: n, recv_type: datatype, op: op }
}

two_forms! {
    MPI_Reduce, MPI_Reduce_c, c"PMPI_Reduce", c"PMPI_Reduce_c",
    (send: usize, recv: usize, n: count, datatype: usize, op: usize, root: c_int, comm: usize), counts(n), on comm, Kind::Reduce,
    { send: send, send_count: n, send_type: datatype, recv: recv, recv_count: n, recv_type: datatype, op: op, root: root }
}

two_forms! {
    MPI_Bcast, MPI_Bcast_c, c"PMPI_Bcast", c"PMPI_Bcast_c",
    (buffer: usize, n: count, datatype: usize, root: c_int, comm: usize), counts(n), on comm, Kind::Broadcast,
    { recv: buffer, recv_count: n, recv_type: datatype, root: root }
}

two_forms! {
    MPI_Allgather, MPI_Allgather_c, c"PMPI_Allgather", c"PMPI_Allgather_c",
    (send: usize, n: count, send_type: usize, recv: usize, m: count, recv_type: usize, comm: usize), counts(n, m), on comm,
    Kind::Allgather,
    { send: send, send_count: n, send_type: send_type, recv: recv, recv_count: m, recv_type: recv_type }
}

two_forms! {
    MPI_Alltoall, MPI_Alltoall_c, c"PMPI_Alltoall", c"PMPI_Alltoall_c",
    (send: usize, n: count, send_type: usize, recv: usize, m: count, recv_type: usize, comm: usize), counts(n, m), on comm,
    Kind::Alltoall,
    { send: send, send_count: n, send_type: send_type, recv: recv, recv_count: m, recv_type: recv_type }
}

two_forms! {
    MPI_Reduce_scatter_block, MPI_Reduce_scatter_block_c,
    c"PMPI_Reduce_scatter_block", c"PMPI_Reduce_scatter_block_c",
    (send: usize, recv: usize, n: count, datatype: usize, op: usize, comm: usize), counts(n), on comm, Kind::ReduceScatter,
    { send: send, send_count: n, send_type: datatype, recv: recv, recv_count: n, recv_type: datatype, op: op }
}

two_forms! {
    MPI_Iallreduce, MPI_Iallreduce_c, c"PMPI_Iallreduce", c"PMPI_Iallreduce_c",
    (send: usize, recv: usize, n: count, datatype: usize, op: usize, comm: usize, request: usize), counts(n), on comm,
    Kind::Allreduce,
    { send: send, send_count: n, send_type: datatype, recv: recv, recv_count: n, recv_type: datatype, op: op },
    begins request at MPI_Iallreduce
}

two_forms! {
    MPI_Ireduce, MPI_Ireduce_c, c"PMPI_Ireduce", c"PMPI_Ireduce_c",
    (send: usize, recv: usize, n: count, datatype: usize, op: usize, root: c_int, comm: usize, request: usize), counts(n),
    on comm, Kind::Reduce,
    { send: send, send_count: n, send_type: datatype, recv: recv, recv_count: n, recv_type: datatype, op: op, root: root },
    begins request at MPI_Ireduce
}

two_forms! {
    MPI_Ibcast, MPI_Ibcast_c, c"PMPI_Ibcast", c"PMPI_Ibcast_c",
    (buffer: usize, n: count, datatype: usize, root: c_int, comm: usize, request: usize), counts(n), on comm, Kind::Broadcast,
    { recv: buffer, recv_count: n, recv_type: datatype, root: root },
    begins request at MPI_Ibcast
}

two_forms! {
    MPI_Iallgather, MPI_Iallgather_c, c"PMPI_Iallgather", c"PMPI_Iallgather_c",
    (send: usize, n: count, send_type: usize, recv: usize, m: count, recv_type: usize, comm: usize, request: usize),
    counts(n, m), on comm, Kind::Allgather,
    { send: send, send_count: n, send_type: send_type, recv: recv, recv_count: m, recv_type: recv_type },
    begins request at MPI_Iallgather
}

two_forms! {
    MPI_Ialltoall, MPI_Ialltoall_c, c"PMPI_Ialltoall", c"PMPI_Ialltoall_c",
    (send: usize, n: count, send_type: usize, recv: usize, m: count, recv_type: usize, comm: usize, request: usize),
    counts(n, m), on comm, Kind::Alltoall,
    { send: send, send_count: n, send_type: send_type, recv: recv, recv_count: m, recv_type: recv_type },
    begins request at MPI_Ialltoall
}

two_forms! {
    MPI_Ireduce_scatter_block, MPI_Ireduce_scatter_block_c,
    c"PMPI_Ireduce_scatter_block", c"PMPI_Ireduce_scatter_block_c",
    (send: usize, recv: usize, n: count, datatype: usize, op: usize, comm: usize, request: usize), counts(n), on comm,
    Kind::ReduceScatter,
    { send: send, send_count: n, send_type: datatype, recv: recv, recv_count: n, recv_type: datatype, op: op },
    begins request at MPI_Ireduce_scatter_block
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Ibarrier(comm: usize, request: usize) -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Ibarrier");
    let pass = || call_original!(ORIGINAL, comm, request);
    begin(Arguments::new(Kind::Barrier, comm), request, Place::MPI_Ibarrier, pass)
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Barrier(comm: usize) -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Barrier");
    collective(Arguments::new(Kind::Barrier, comm), || call_original!(ORIGINAL, comm))
}

/// Serves the communicators within `comm` from now on; all its ranks call this. For programs that load this library after
/// MPI was initialised. Returns whether all of them have the same plan.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_settle(comm: usize) -> c_int {
    let settle = || {
        let library = library().filter(|_| !settings().off)?;
        Some(home::settle(library, library.constants.handle(comm))?.agreement() == Agreement::Planned)
    };
    c_int::from(guarded(settle, None) == Some(true))
}

/// How many calls were planned so far: for programs that want to know whether their plan has an effect.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_served() -> u64 {
    SERVED.load(Ordering::Relaxed)
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Init(argc: usize, argv: usize) -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Init");
    let code = guarded(|| call_original!(ORIGINAL, argc, argv), NO_FUNCTION);
    ready(code);
    code
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Init_thread(argc: usize, argv: usize, required: c_int, provided: usize) -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Init_thread");
    let code = guarded(|| call_original!(ORIGINAL, argc, argv, required as usize, provided), NO_FUNCTION);
    ready(code);
    code
}

/// Reads the plan and compares it with the other ranks' while nothing is timed yet.
fn ready(code: c_int) {
    let settle = || {
        if !settings().off
            && code == 0
            && let Some(library) = library()
        {
            home::settle(library, library.constants.comm_world);
        }
    };
    guarded(settle, ());
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Finalize() -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Finalize");
    let report = || {
        if !settings().off
            && let Some(library) = library().filter(|library| library.is_running())
            && let Some(home) = home::settled()
        {
            report::finish(library, home);
        }
    };
    guarded(report, ());
    guarded(|| call_original!(ORIGINAL,), NO_FUNCTION)
}
