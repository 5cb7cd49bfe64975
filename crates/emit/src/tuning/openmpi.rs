//! Open MPI's `coll/tuned`: ids and names of collectives and algorithms, the size it compares, and its traps.
//!
//! Sources: `ompi_info --param coll tuned --level 9` of Open MPI 5.0.11 (ids and names), its
//! `docs/tuning-apps/collectives/tuned.rst` and `ompi/mca/coll/tuned/coll_tuned_decision_dynamic.c` (sizes).

use unisono_collective::Kind;

use super::region::{Counterpart, Settings, plain};

/// True if Open MPI compares the bytes of all ranks together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Size {
    OfOne,
    OfAll,
    /// It compares nothing of use: 0, or a number without the count.
    None,
}

pub struct Known {
    pub kind: Kind,
    pub id: u32,
    /// The key of the JSON form.
    pub key: &'static str,
    pub size: Size,
}

/// Sorted by id. Our reduce-scatter has equal parts, MPI's `reduce_scatter_block`.
pub const COLLECTIVES: &[Known] = &[
    Known { kind: Kind::Allgather, id: 0, key: "allgather", size: Size::OfAll },
    Known { kind: Kind::Allreduce, id: 2, key: "allreduce", size: Size::OfOne },
    Known { kind: Kind::Alltoall, id: 3, key: "alltoall", size: Size::OfAll },
    Known { kind: Kind::Barrier, id: 6, key: "barrier", size: Size::None },
    Known { kind: Kind::Broadcast, id: 7, key: "bcast", size: Size::OfOne },
    Known { kind: Kind::Gather, id: 9, key: "gather", size: Size::OfAll },
    Known { kind: Kind::Reduce, id: 11, key: "reduce", size: Size::OfOne },
    Known { kind: Kind::ReduceScatter, id: 13, key: "reducescatterblock", size: Size::OfAll },
];

/// Ids by name, for those that have a counterpart here.
pub const IDS: &[(Kind, &str, u32)] = &[
    (Kind::Allgather, "bruck", 2),
    (Kind::Allgather, "neighbor", 5),
    (Kind::Allgather, "recursive_doubling", 3),
    (Kind::Allgather, "ring", 4),
    (Kind::Allreduce, "nonoverlapping", 2),
    (Kind::Allreduce, "rabenseifner", 6),
    (Kind::Allreduce, "recursive_doubling", 3),
    (Kind::Allreduce, "ring", 4),
    (Kind::Alltoall, "linear", 1),
    (Kind::Alltoall, "modified_bruck", 3),
    (Kind::Alltoall, "pairwise", 2),
    (Kind::Barrier, "bruck", 4),
    (Kind::Broadcast, "binomial", 6),
    (Kind::Broadcast, "pipeline", 3),
    (Kind::Broadcast, "scatter_allgather", 8),
    (Kind::Broadcast, "scatter_allgather_ring", 9),
    (Kind::Gather, "binomial", 2),
    (Kind::Gather, "linear", 1),
    (Kind::Reduce, "binomial", 5),
    (Kind::Reduce, "pipeline", 3),
    (Kind::Reduce, "rabenseifner", 7),
    (Kind::ReduceScatter, "recursive_halving", 3),
];

const fn same(kind: Kind, ours: &'static str, theirs: &'static str) -> Counterpart {
    Counterpart { kind, ours, theirs, settings: plain }
}

pub const NAMES: &[Counterpart] = &[
    same(Kind::Allgather, "bruck", "bruck"),
    Counterpart { kind: Kind::Allgather, ours: "neighbor", theirs: "neighbor", settings: even },
    same(Kind::Allgather, "recursive-doubling", "recursive_doubling"),
    same(Kind::Allgather, "ring", "ring"),
    same(Kind::Allreduce, "rabenseifner", "rabenseifner"),
    same(Kind::Allreduce, "recursive-doubling", "recursive_doubling"),
    // A reduce and a broadcast that Open MPI chooses; so only without parameters that name them.
    same(Kind::Allreduce, "reduce-broadcast", "nonoverlapping"),
    same(Kind::Allreduce, "ring", "ring"),
    same(Kind::Alltoall, "bruck", "modified_bruck"),
    same(Kind::Alltoall, "linear", "linear"),
    same(Kind::Alltoall, "pairwise", "pairwise"),
    Counterpart { kind: Kind::Barrier, ours: "dissemination", theirs: "bruck", settings: one_way },
    same(Kind::Broadcast, "binomial", "binomial"),
    Counterpart { kind: Kind::Broadcast, ours: "pipelined-chain", theirs: "pipeline", settings: segment },
    same(Kind::Broadcast, "scatter-allgather", "scatter_allgather_ring"),
    same(Kind::Gather, "binomial", "binomial"),
    same(Kind::Gather, "linear", "linear"),
    same(Kind::Reduce, "binomial", "binomial"),
    Counterpart { kind: Kind::Reduce, ours: "pipelined-chain", theirs: "pipeline", settings: segment },
    same(Kind::Reduce, "reduce-scatter-gather", "rabenseifner"),
    same(Kind::ReduceScatter, "recursive-halving", "recursive_halving"),
];

/// Algorithms that take operands out of their order: a rules file forces them on operators that do not commute too.
/// Seen with 5.0.11: wrong results of `MPI_Allreduce` under `ring`, right ones under all others of [`NAMES`].
const REORDERING: &[(Kind, &str)] = &[(Kind::Allreduce, "ring")];

fn even(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    if !ranks.is_multiple_of(2) {
        return Err("it needs an even number of ranks, and the library takes another one otherwise".to_owned());
    }
    plain(params, ranks)
}

fn one_way(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    plain(&params.iter().filter(|p| **p != ("ways".to_owned(), "1".to_owned())).cloned().collect::<Vec<_>>(), ranks)
}

/// Bytes of a segment of `pipelined-chain` if its parameter is not given.
pub const DEFAULT_SEGMENT: u32 = 8192;

/// The length of a segment in bytes.
fn segment(params: &[(String, String)], _: u32) -> Result<Settings, String> {
    match params {
        [(name, value)] if name == "segment" => match value.parse::<u32>() {
            Ok(bytes) if bytes > 0 => Ok(vec![("segment", bytes.to_string())]),
            _ => Err(format!("its parameter segment={value} is no number of bytes")),
        },
        // There a segment of 0 bytes is the whole vector.
        [] => Ok(vec![("segment", DEFAULT_SEGMENT.to_string())]),
        [(name, value), ..] => Err(format!("its parameter {name}={value} cannot be expressed")),
    }
}

pub fn id(kind: Kind, name: &str) -> Option<u32> {
    IDS.iter().find(|(k, n, _)| *k == kind && *n == name).map(|(_, _, id)| *id)
}

/// Bytes as Open MPI counts them, for a size of the table.
pub fn bytes(known: &Known, bytes: u64, ranks: u32) -> u64 {
    if known.size == Size::OfAll { super::region::of_all(bytes, ranks) } else { bytes }
}

/// Returns notes for users of either form.
pub fn notes(used: &[(Kind, &'static str)]) -> Vec<String> {
    let mut notes = vec![
        "on several nodes coll/han comes before coll/tuned and takes no notice of this file: add \
         '--mca coll_han_priority 0', or the file of openmpi-han"
            .to_owned(),
        "coll/tuned ignores a file that it cannot read, and reports this only with '--mca coll_base_verbose 1'"
            .to_owned(),
    ];
    if used.iter().any(|u| REORDERING.contains(u)) {
        notes.push(
            "rules hold for all operators, and with ring an MPI_Allreduce whose operator does not commute gives wrong \
             results (seen with Open MPI 5.0.11): load this file for programs without such operators"
                .to_owned(),
        );
    }
    notes
}
