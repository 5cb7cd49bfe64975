//! Open MPI's `coll/tuned`: ids and names of collectives and algorithms, the size it compares, and its traps.
//!
//! Sources: `ompi_info --param coll tuned --level 9` of Open MPI 5.0.11 (ids and names), its
//! `docs/tuning-apps/collectives/tuned.rst` and `ompi/mca/coll/tuned/coll_tuned_decision_dynamic.c` (sizes).

use unisono_collective::{DecisionTable, Kind};

use crate::{
    Export,
    region::{Counterpart, Region, Settings, TellsNodes, View, any_operator, of_all, plain, same, with},
};

/// True if Open MPI compares the bytes of all ranks together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Size {
    OfOne,
    OfAll,
    /// Open MPI compares no useful number: 0, or a number without the count.
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
    (Kind::Broadcast, "basic_linear", 1),
    (Kind::Broadcast, "binary_tree", 5),
    (Kind::Broadcast, "binomial", 6),
    (Kind::Broadcast, "knomial", 7),
    (Kind::Broadcast, "pipeline", 3),
    (Kind::Broadcast, "scatter_allgather", 8),
    (Kind::Broadcast, "scatter_allgather_ring", 9),
    (Kind::Gather, "binomial", 2),
    (Kind::Gather, "linear", 1),
    (Kind::Reduce, "binary", 4),
    (Kind::Reduce, "binomial", 5),
    (Kind::Reduce, "linear", 1),
    (Kind::Reduce, "pipeline", 3),
    (Kind::Reduce, "rabenseifner", 7),
    (Kind::ReduceScatter, "recursive_halving", 3),
];

pub const NAMES: &[Counterpart] = &[
    same(Kind::Allgather, "bruck", "bruck"),
    with(Kind::Allgather, "neighbor", "neighbor", even),
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
    with(Kind::Barrier, "dissemination", "bruck", one_way),
    with(Kind::Broadcast, "binary-tree", "binary_tree", by_levels),
    with(Kind::Broadcast, "binomial", "binomial", plain_or_segment),
    with(Kind::Broadcast, "binomial", "knomial", knomial),
    with(Kind::Broadcast, "binomial", "basic_linear", flat),
    with(Kind::Broadcast, "pipelined-chain", "pipeline", segment),
    same(Kind::Broadcast, "scatter-allgather", "scatter_allgather_ring"),
    same(Kind::Gather, "binomial", "binomial"),
    same(Kind::Gather, "linear", "linear"),
    with(Kind::Reduce, "binary-tree", "binary", by_levels),
    with(Kind::Reduce, "binomial", "binomial", plain_or_segment),
    with(Kind::Reduce, "binomial", "linear", flat),
    with(Kind::Reduce, "pipelined-chain", "pipeline", segment),
    same(Kind::Reduce, "reduce-scatter-gather", "rabenseifner"),
    same(Kind::ReduceScatter, "recursive-halving", "recursive_halving"),
];

/// Algorithms that take operands out of their order: a rules file forces them on operators that do not commute too.
/// Seen with 5.0.11: wrong results under these, right ones under all others of [`NAMES`].
const REORDERING: &[(Kind, &str, &str)] = &[
    (Kind::Allreduce, "ring", "MPI_Allreduce under ring"),
    (Kind::Reduce, "binary", "MPI_Reduce under binary"),
    (Kind::Reduce, "binomial", "MPI_Reduce under binomial"),
    (Kind::Reduce, "pipeline", "MPI_Reduce under pipeline"),
];

fn even(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    if !ranks.is_multiple_of(2) {
        return Err("it needs an even number of ranks, and the library takes another one otherwise".to_owned());
    }
    plain(params, ranks)
}

fn one_way(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    plain(&params.iter().filter(|p| **p != ("ways".to_owned(), "1".to_owned())).cloned().collect::<Vec<_>>(), ranks)
}

/// Nothing, or the length of a segment; without it the vector is whole.
fn plain_or_segment(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    if params.is_empty() { plain(params, ranks) } else { segment(params, ranks) }
}

/// The radix of `coll_tuned_bcast_algorithm_knomial_radix` unless the user sets another one, and perhaps a segment.
const KNOMIAL_RADIX: u32 = 4;

fn knomial(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    let (radix, others) = apart("radix", params);
    match radix.as_deref() {
        Some(radix) if radix == KNOMIAL_RADIX.to_string() => plain_or_segment(&others, ranks),
        _ => Err(format!("the library's knomial tree has the radix {KNOMIAL_RADIX}")),
    }
}

/// The parameters that the library's algorithms have where Unisono's have others by default.
pub const PARAMS: &[(&str, &str)] = &[("order", "levels")];

/// A tree in the order of the library, and perhaps a segment.
fn by_levels(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    let (order, others) = apart("order", params);
    match order.as_deref() {
        Some("levels") => segment(&others, ranks),
        _ => Err("the library's binary tree has order=levels".to_owned()),
    }
}

/// A tree in which the root reaches all others itself.
fn flat(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    let (radix, others) = apart("radix", params);
    if radix.and_then(|radix| radix.parse::<u32>().ok()).is_none_or(|radix| radix < ranks) {
        return Err(format!("the library's linear algorithm has the radix {ranks}, the number of ranks"));
    }
    plain(&others, ranks)
}

/// Returns the value of a parameter, and the other parameters.
fn apart(name: &str, params: &[(String, String)]) -> (Option<String>, Vec<(String, String)>) {
    let (own, others): (Vec<_>, Vec<_>) = params.iter().cloned().partition(|param| param.0 == name);
    (own.into_iter().next().map(|param| param.1), others)
}

/// Bytes of a segment of `pipelined-chain` and `binary-tree` if its parameter is not given.
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
    if known.size == Size::OfAll { of_all(bytes, ranks) } else { bytes }
}

/// The options of `mpiexec` with which `coll/tuned` loads a file.
pub const LOAD: &[&str] = &["--mca coll_tuned_use_dynamic_rules 1", "--mca coll_tuned_dynamic_rules_filename FILE"];

/// A table under the names of `coll/tuned`.
pub fn view<'a>(target: &'static str, table: &DecisionTable, tells_nodes: TellsNodes) -> View<'a> {
    View::new(target, table, NAMES, false, tells_nodes, None, COLLECTIVES.iter().map(|known| known.kind))
}

/// The regions of a collective by the size of the communicator, from `least` on. The rules of the largest size up to
/// its own count for a communicator, so the library's own choice, which is a region without an algorithm, stands before
/// and behind every rank count of the table.
pub fn by_size(view: &mut View<'_>, known: &Known, least: u32) -> Vec<(u32, Vec<Region>)> {
    let own = || vec![Region { first: 0, last: u64::MAX, algorithm: None }];
    let mut sizes = vec![(least, own())];
    let counts = view.ranks(known.kind);
    for &ranks in counts.iter().filter(|&&ranks| ranks > least) {
        let mut regions = view.regions(known.kind, ranks, any_operator(known.kind));
        // Without a size to compare only the first rule counts.
        regions.truncate(if known.size == Size::None { 1 } else { regions.len() });
        sizes.push((ranks, regions));
        // More ranks than the last count that a file can name need no row.
        let after = ranks.checked_add(1).filter(|after| !counts.contains(after));
        sizes.extend(after.map(|after| (after, own())));
    }
    sizes
}

/// The head of a text of rules: how to load it, its notes and the rows that are left.
pub fn head(title: &str, export: &Export) -> String {
    format!("# {title}. Load them with\n#   mpiexec {} ...\n{}", export.load.join(" "), export.comments())
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
    let wrong: Vec<&str> =
        REORDERING.iter().filter(|(k, n, _)| used.contains(&(*k, *n))).map(|(_, _, of)| *of).collect();
    if !wrong.is_empty() {
        notes.push(format!(
            "rules hold for all operators, and an operator that does not commute gives wrong results in {}, and in \
             calls that contain it (seen with Open MPI 5.0.11): load this file for programs without such operators",
            wrong.join(", ")
        ));
    }
    notes
}
