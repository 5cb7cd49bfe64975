//! Collectives with a count for every rank, which a plan serves if all counts are equal, or differ by no more than
//! `FULL` of [`crate::arguments`] permits.
//!
//! In these calls every rank has the counts of all ranks, so all ranks decide in the same way. Calls in which every
//! rank has only its own counts (`MPI_Alltoallv`), or only the root has them (`MPI_Gatherv`, `MPI_Scatterv`), are left
//! to the library. These calls never make a communicator ready.

use std::ffi::c_int;

use unisono_collective::Kind;

use crate::{
    arguments::Arguments,
    count_types::both_count_types,
    intercept::collective,
    memory::{Numbers, Vector},
    passed_on::Place,
};

fn vector(counts: usize, displs: Option<usize>, wide: bool) -> Option<Vector> {
    let numbers = |address: usize| Numbers { address, wide };
    Some(Vector { counts: numbers(counts), displs: displs.map(numbers) })
}

fn gathered(
    send: usize,
    n: i64,
    send_type: usize,
    recv: usize,
    vector: Option<Vector>,
    recv_type: usize,
    comm: usize,
) -> Arguments {
    let (kind, place) = (Kind::Allgather, Some(Place::MPI_Allgatherv));
    Arguments { send, send_count: n, send_type, recv, recv_type, vector, place, ..Arguments::new(kind, comm) }
}

fn scattered(send: usize, recv: usize, vector: Option<Vector>, datatype: usize, op: usize, comm: usize) -> Arguments {
    let (kind, place) = (Kind::ReduceScatter, Some(Place::MPI_Reduce_scatter));
    Arguments { send, send_type: datatype, recv, recv_type: datatype, op, vector, place, ..Arguments::new(kind, comm) }
}

both_count_types! {
    MPI_Allgatherv, MPI_Allgatherv_c,
    (send: usize, n: count, send_type: usize, recv: usize, counts: usize, displs: usize, recv_type: usize, comm: usize),
    counts(n), lists(counts, displs on comm, across true), collective,
    |wide| gathered(send, n, send_type, recv, vector(counts, Some(displs), wide), recv_type, comm)
}

both_count_types! {
    MPI_Reduce_scatter, MPI_Reduce_scatter_c,
    (send: usize, recv: usize, counts: usize, datatype: usize, op: usize, comm: usize),
    counts(), lists(counts on comm, across false), collective,
    |wide| scattered(send, recv, vector(counts, None, wide), datatype, op, comm)
}
