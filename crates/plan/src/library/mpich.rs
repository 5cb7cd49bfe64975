//! MPICH's own choice: its general table of algorithms.
//!
//! Source: MPICH 5.0.1, `maint/tuning/coll/mpir/generic.json`; `avg_msg_size` is the bytes of one block,
//! `total_msg_size` the bytes of all blocks.

use unisono_collective::{Collective, Kind};

use super::mpi::{MpiLibrary, Run};

pub const MPICH: MpiLibrary = MpiLibrary {
    name: "mpich",
    title: "MPICH",
    version: "MPICH 5.0.1, generic.json",
    note: "MPIR_CVAR_DEVICE_COLLECTIVES=none makes it the choice on every node; without it ranks of one node use their \
           shared memory from the fifth call on, and nodes of several ranks reduce among themselves first",
    chosen,
    run,
};

fn chosen(c: &Collective) -> Option<&'static str> {
    let (bytes, all) = (c.bytes(), c.bytes().saturating_mul(u64::from(c.ranks)));
    let is_power = c.ranks.is_power_of_two();
    // An operator that does not commute is treated as user-defined; for such operators the table does not halve
    // vectors.
    let halves = c.operator.commutative() && c.count() >= u64::from(1_u32 << c.ranks.ilog2());
    Some(match c.kind {
        Kind::Allgather => match (is_power, all) {
            (true, ..524_288) => "recursive_doubling",
            (false, ..81_920) => "brucks",
            _ => "ring",
        },
        Kind::Allreduce if bytes > 8 && halves => "reduce_scatter_allgather",
        Kind::Allreduce => "recursive_doubling",
        Kind::Alltoall => match (c.ranks, bytes) {
            (8.., ..=256) => "brucks",
            (_, ..=32_768) => "scattered",
            _ => "pairwise",
        },
        Kind::Barrier => "k_dissemination",
        Kind::Broadcast => match (c.ranks, is_power, bytes) {
            (..8, ..) | (_, _, ..=12_288) => "binomial",
            (_, true, ..=524_288) => "scatter_recursive_doubling_allgather",
            _ => "scatter_ring_allgather",
        },
        Kind::Gather | Kind::Scatter => "binomial",
        Kind::Reduce if bytes > 2048 && halves => "reduce_scatter_gather",
        Kind::Reduce => "binomial",
        Kind::ReduceScatter => match (c.operator.commutative(), is_power, all) {
            (true, _, ..524_288) => "recursive_halving",
            (true, ..) => "pairwise",
            (false, true, _) => "noncommutative",
            (false, ..) => "recursive_doubling",
        },
        Kind::Scan => "recursive_doubling",
        Kind::Message => return None,
    })
}

/// Returns an algorithm of Unisono that is equivalent to an algorithm of MPICH.
fn run(c: &Collective, name: &str) -> Option<Run> {
    Some(match (c.kind, name) {
        (Kind::Allgather, "brucks") | (Kind::Alltoall, "brucks") => Run::of("bruck"),
        (Kind::Allgather, "ring") => Run::of("ring"),
        (Kind::Allgather | Kind::Allreduce | Kind::Scan, "recursive_doubling") => Run::of("recursive-doubling"),
        (Kind::Allreduce, "reduce_scatter_allgather") => Run::of("rabenseifner"),
        (Kind::Alltoall, "scattered") => Run::of("linear"),
        (Kind::Alltoall | Kind::ReduceScatter, "pairwise") => Run::of("pairwise"),
        (Kind::Barrier, "k_dissemination") => Run::of("dissemination"),
        (Kind::Broadcast, "scatter_recursive_doubling_allgather") => {
            Run::of("scatter-allgather").with("allgather", "recursive-doubling")
        }
        (Kind::Broadcast, "scatter_ring_allgather") => Run::of("scatter-allgather"),
        (Kind::Reduce, "reduce_scatter_gather") => Run::of("reduce-scatter-gather"),
        (Kind::ReduceScatter, "recursive_halving") => Run::of("recursive-halving"),
        (_, "binomial") => Run::of("binomial"),
        _ => return None,
    })
}
