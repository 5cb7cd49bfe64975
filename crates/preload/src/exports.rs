//! The MPI functions that this library exports. Handles and addresses are machine words. An `int` of the caller is an
//! `int` here, because the upper half of its register is undefined.

use std::{
    ffi::{CString, c_char, c_int},
    ptr::{null, null_mut},
    sync::atomic::Ordering,
};

use unisono_collective::Kind;
use unisono_mpi::{Agreement, Conditions, Failed, Outcome, library};

use crate::{
    arguments::Arguments,
    begun::begin,
    comms,
    count_types::both_count_types,
    home,
    intercept::{SERVED, collective, guarded},
    original::{NO_FUNCTION, Original, call_original},
    passed_on::Place,
    persistent::prepare,
    program_time, report,
};

/// Exports the blocking, the nonblocking and the persistent function of a collective.
macro_rules! collectives {
    ($($name:ident $name_c:ident, $begins:ident $begins_c:ident, $prepares:ident $prepares_c:ident:
       ($($parameter:ident: $type:tt),*) counts($($count:ident),*) on $comm:ident, $kind:ident { $($field:ident: $value:ident),* };)*) => {$(
        both_count_types! {
            $name, $name_c, ($($parameter: $type),*), counts($($count),*), lists(), collective,
            |_wide| Arguments { $($field: $value,)* ..Arguments::new(Kind::$kind, $comm) }
        }
        both_count_types! {
            $begins, $begins_c, ($($parameter: $type,)* request: usize), counts($($count),*), lists(),
            |arguments, pass| begin(arguments, request, Place::$begins, pass),
            |_wide| Arguments { $($field: $value,)* ..Arguments::new(Kind::$kind, $comm) }
        }
        both_count_types! {
            $prepares, $prepares_c, ($($parameter: $type,)* info: usize, request: usize), counts($($count),*), lists(),
            |arguments, pass| prepare(arguments, request, Place::$prepares, pass),
            |_wide| Arguments { $($field: $value,)* ..Arguments::new(Kind::$kind, $comm) }
        }
    )*};
}

#[rustfmt::skip]
collectives! {
    MPI_Allreduce MPI_Allreduce_c, MPI_Iallreduce MPI_Iallreduce_c, MPI_Allreduce_init MPI_Allreduce_init_c:
        (send: usize, recv: usize, n: count, datatype: usize, op: usize, comm: usize) counts(n) on comm, Allreduce
        { send: send, send_count: n, send_type: datatype, recv: recv, recv_count: n, recv_type: datatype, op: op };
    MPI_Reduce MPI_Reduce_c, MPI_Ireduce MPI_Ireduce_c, MPI_Reduce_init MPI_Reduce_init_c:
        (send: usize, recv: usize, n: count, datatype: usize, op: usize, root: c_int, comm: usize) counts(n) on comm, Reduce
        { send: send, send_count: n, send_type: datatype, recv: recv, recv_count: n, recv_type: datatype, op: op, root: root };
    MPI_Bcast MPI_Bcast_c, MPI_Ibcast MPI_Ibcast_c, MPI_Bcast_init MPI_Bcast_init_c:
        (buffer: usize, n: count, datatype: usize, root: c_int, comm: usize) counts(n) on comm, Broadcast
        { recv: buffer, recv_count: n, recv_type: datatype, root: root };
    MPI_Allgather MPI_Allgather_c, MPI_Iallgather MPI_Iallgather_c, MPI_Allgather_init MPI_Allgather_init_c:
        (send: usize, n: count, send_type: usize, recv: usize, m: count, recv_type: usize, comm: usize) counts(n, m) on comm,
        Allgather
        { send: send, send_count: n, send_type: send_type, recv: recv, recv_count: m, recv_type: recv_type };
    MPI_Alltoall MPI_Alltoall_c, MPI_Ialltoall MPI_Ialltoall_c, MPI_Alltoall_init MPI_Alltoall_init_c:
        (send: usize, n: count, send_type: usize, recv: usize, m: count, recv_type: usize, comm: usize) counts(n, m) on comm,
        Alltoall
        { send: send, send_count: n, send_type: send_type, recv: recv, recv_count: m, recv_type: recv_type };
    MPI_Gather MPI_Gather_c, MPI_Igather MPI_Igather_c, MPI_Gather_init MPI_Gather_init_c:
        (send: usize, n: count, send_type: usize, recv: usize, m: count, recv_type: usize, root: c_int, comm: usize)
        counts(n, m) on comm, Gather
        { send: send, send_count: n, send_type: send_type, recv: recv, recv_count: m, recv_type: recv_type, root: root };
    MPI_Scatter MPI_Scatter_c, MPI_Iscatter MPI_Iscatter_c, MPI_Scatter_init MPI_Scatter_init_c:
        (send: usize, n: count, send_type: usize, recv: usize, m: count, recv_type: usize, root: c_int, comm: usize)
        counts(n, m) on comm, Scatter
        { send: send, send_count: n, send_type: send_type, recv: recv, recv_count: m, recv_type: recv_type, root: root };
    MPI_Scan MPI_Scan_c, MPI_Iscan MPI_Iscan_c, MPI_Scan_init MPI_Scan_init_c:
        (send: usize, recv: usize, n: count, datatype: usize, op: usize, comm: usize) counts(n) on comm, Scan
        { send: send, send_count: n, send_type: datatype, recv: recv, recv_count: n, recv_type: datatype, op: op };
    MPI_Reduce_scatter_block MPI_Reduce_scatter_block_c, MPI_Ireduce_scatter_block MPI_Ireduce_scatter_block_c,
    MPI_Reduce_scatter_block_init MPI_Reduce_scatter_block_init_c:
        (send: usize, recv: usize, n: count, datatype: usize, op: usize, comm: usize) counts(n) on comm, ReduceScatter
        { send: send, send_count: n, send_type: datatype, recv: recv, recv_count: n, recv_type: datatype, op: op };
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Barrier(comm: usize) -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Barrier");
    collective(Arguments::new(Kind::Barrier, comm), || call_original!(ORIGINAL, comm))
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Ibarrier(comm: usize, request: usize) -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Ibarrier");
    let pass = || call_original!(ORIGINAL, comm, request);
    begin(Arguments::new(Kind::Barrier, comm), request, Place::MPI_Ibarrier, pass)
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Barrier_init(comm: usize, info: usize, request: usize) -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Barrier_init");
    let pass = || call_original!(ORIGINAL, comm, info, request);
    prepare(Arguments::new(Kind::Barrier, comm), request, Place::MPI_Barrier_init, pass)
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Comm_free(comm: usize) -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Comm_free");
    free_comm(comm, || call_original!(ORIGINAL, comm))
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Comm_disconnect(comm: usize) -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Comm_disconnect");
    free_comm(comm, || call_original!(ORIGINAL, comm))
}

/// Frees the communicator whose handle is at address `at` of the program.
fn free_comm(at: usize, original: impl Fn() -> c_int) -> c_int {
    let freed = || {
        let library = library().filter(|_| at != 0 && home::settled().is_some())?;
        // SAFETY: the program passes the address of a communicator, as in a call of MPI.
        Some(comms::free(unsafe { library.handle_at(at) }, &original))
    };
    guarded(|| freed().unwrap_or_else(&original), NO_FUNCTION)
}

/// Compares the plans of the ranks of `comm`, so that plans may serve later calls within `comm`. All its ranks call
/// this, in programs that load this library after MPI was initialised. Returns 1 if all have the same plan, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_settle(comm: usize) -> c_int {
    let settle = || {
        let library = library()?;
        Some(home::settle(library, library.constants.handle(comm))?.agreement() == Agreement::Planned)
    };
    c_int::from(guarded(settle, None) == Some(true))
}

/// Writes the conditions under which the ranks of `comm` wait, in the text form of [`Conditions`], to at most `room`
/// bytes including a final zero. All ranks of `comm` call this. Returns 1 if the text fits, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_conditions(comm: usize, text: *mut c_char, room: usize) -> c_int {
    let write = || {
        let library = library()?;
        let found = Conditions::of(library, library.constants.handle(comm)).ok()?.to_string();
        let bytes = CString::new(found).ok()?.into_bytes_with_nul();
        if bytes.len() > room || text.is_null() {
            return None;
        }
        // SAFETY: the caller provides room for this number of bytes.
        unsafe { text.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) };
        Some(())
    };
    c_int::from(guarded(write, None).is_some())
}

/// Returns the number of planned calls that this process has begun. The number shows a program whether its plan is
/// used.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_served() -> u64 {
    SERVED.load(Ordering::Relaxed)
}

/// The tag of the empty messages of [`unisono_report_to_root`] and [`unisono_wait_for_root`], which separate two timed
/// calls.
const TURN: c_int = 7;

/// Sends an empty message from every other rank of the communicator to rank 0, which waits for all.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_report_to_root(comm: usize) -> c_int {
    guarded(|| take_turn(comm, false).map_or_else(|Failed(code)| code, |()| 0), NO_FUNCTION)
}

/// Sends an empty message from rank 0 to every other rank of the communicator; each waits for it.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_wait_for_root(comm: usize) -> c_int {
    guarded(|| take_turn(comm, true).map_or_else(|Failed(code)| code, |()| 0), NO_FUNCTION)
}

fn take_turn(comm: usize, from_root: bool) -> Outcome {
    let library = library().ok_or(Failed::OTHER)?;
    let comm = library.constants.handle(comm);
    let (ranks, rank) = (library.size(comm)?, library.rank(comm)?);
    let others = if rank == 0 { 1..ranks } else { 0..1 };
    let sends = (rank == 0) == from_root;
    let begun = others.map(|other| match sends {
        // SAFETY: the message has no bytes.
        true => unsafe { library.begin_send(null(), 0, other, TURN, comm) },
        // SAFETY: as above.
        false => unsafe { library.begin_receive(null_mut(), 0, other, TURN, comm) },
    });
    for mut message in begun.collect::<Outcome<Vec<_>>>()? {
        while !library.is_over(&mut message)? {}
    }
    Ok(())
}

/// Calls a function with up to nine arguments `calls` times, or until a call fails, and returns the last error code.
/// Programs use this function to time a collective without the overhead of their own language between two calls. If
/// `between` is not 0, the function at this address is called with `comm` after each call.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "those of MPI's collectives")]
pub extern "C" fn unisono_repeat(
    function: usize,
    calls: u64,
    between: usize,
    comm: usize,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
    g: usize,
    h: usize,
    i: usize,
) -> c_int {
    type Words = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize, usize, usize) -> c_int;
    if function == 0 {
        return NO_FUNCTION;
    }
    // SAFETY: the caller passes the addresses of functions of MPI; a `between` of 0 becomes `None`. Integers and
    // handles each take one register or stack slot, of which a function reads as many as it declares.
    let [function, between] = [function, between].map(|of| unsafe { std::mem::transmute::<usize, Option<Words>>(of) });
    let made = [(function, [a, b, c, d, e, f, g, h, i]), (between, [comm, 0, 0, 0, 0, 0, 0, 0, 0])];
    for _ in 0..calls {
        for (function, [a, b, c, d, e, f, g, h, i]) in made {
            // SAFETY: as above; the arguments are those of a call of MPI.
            let code = function.map_or(0, |function| unsafe { function(a, b, c, d, e, f, g, h, i) });
            if code != 0 {
                return code;
            }
        }
    }
    0
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

/// Compares the plans of all ranks when MPI was initialised with error code `code`, before the program times anything.
pub fn ready(code: c_int) {
    let settle = || {
        if code == 0
            && let Some(library) = library()
        {
            home::settle(library, library.constants.comm_world);
            home::complain_if_alone(library);
        }
    };
    guarded(settle, ());
    if code == 0 {
        guarded(program_time::begin, ());
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Finalize() -> c_int {
    static ORIGINAL: Original = Original::new(c"PMPI_Finalize");
    guarded(write_report, ());
    guarded(|| call_original!(ORIGINAL,), NO_FUNCTION)
}

/// Writes the report and the program's time while MPI still runs.
pub fn write_report() {
    program_time::end();
    if let Some(library) = library().filter(|library| library.is_running())
        && let Some(home) = home::settled()
    {
        report::finish(library, home);
    }
}
