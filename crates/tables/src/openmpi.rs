//! Open MPI's `coll/tuned`: ids and names of collectives and algorithms, the bytes that its rules compare, and its
//! pitfalls.
//!
//! Sources: the tables `*_algorithms` of `ompi/mca/coll/tuned/coll_tuned_*_decision.c` of branch v6.0.x (names, and ids
//! which are also those of 4.x and 5.x), and of Open MPI 5.0.11 `docs/tuning-apps/collectives/tuned.rst` and
//! `ompi/mca/coll/tuned/coll_tuned_decision_dynamic.c` (sizes).

use unisono_collective::{DecisionTable, Kind};

use crate::{
    Export,
    region::{Counterpart, Region, Settings, TellsNodes, View, any_operator, of_all, plain, same, with, with_doubling},
};

/// The bytes that Open MPI compares: those of one rank, or of all together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Size {
    OfOne,
    OfAll,
    /// Open MPI compares 0, or a number that does not depend on the count, so sizes have no effect.
    None,
}

pub struct Known {
    pub kind: Kind,
    pub id: u32,
    /// The key in a JSON rules file.
    pub key: &'static str,
    pub size: Size,
}

/// The collectives for which rules are written, sorted by Open MPI's ids. A reduce-scatter here has equal blocks, so it
/// is MPI's `reduce_scatter_block`.
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

/// `(collective, name in Open MPI 6, id)` of Open MPI's algorithms that have a counterpart in Unisono.
pub const IDS: &[(Kind, &str, u32)] = &[
    (Kind::Allgather, "bruck-k-fanout", 2),
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
    (Kind::Gather, "basic_linear", 1),
    (Kind::Gather, "binomial", 2),
    (Kind::Reduce, "binary", 4),
    (Kind::Reduce, "binomial", 5),
    (Kind::Reduce, "linear", 1),
    (Kind::Reduce, "pipeline", 3),
    (Kind::Reduce, "rabenseifner", 7),
    (Kind::ReduceScatter, "recursive_halving", 3),
];

pub const NAMES: &[Counterpart] = &[
    with(Kind::Allgather, "bruck", "bruck-k-fanout", fanout_two),
    with(Kind::Allgather, "neighbor", "neighbor", even),
    same(Kind::Allgather, "recursive-doubling", "recursive_doubling"),
    same(Kind::Allgather, "ring", "ring"),
    same(Kind::Allreduce, "rabenseifner", "rabenseifner"),
    same(Kind::Allreduce, "recursive-doubling", "recursive_doubling"),
    // Open MPI itself chooses the algorithms of the reduce and the broadcast, so a row that states them by parameters
    // has no counterpart.
    same(Kind::Allreduce, "reduce-broadcast", "nonoverlapping"),
    same(Kind::Allreduce, "ring", "ring"),
    same(Kind::Alltoall, "bruck", "modified_bruck"),
    same(Kind::Alltoall, "linear", "linear"),
    same(Kind::Alltoall, "pairwise", "pairwise"),
    same(Kind::Barrier, "dissemination", "bruck"),
    with(Kind::Broadcast, "binary-tree", "binary_tree", by_levels),
    with(Kind::Broadcast, "binomial", "binomial", plain_or_segment),
    with(Kind::Broadcast, "binomial", "knomial", knomial),
    with(Kind::Broadcast, "binomial", "basic_linear", flat),
    with(Kind::Broadcast, "pipelined-chain", "pipeline", segment),
    same(Kind::Broadcast, "scatter-allgather", "scatter_allgather_ring"),
    with(Kind::Broadcast, "scatter-allgather", "scatter_allgather", with_doubling),
    same(Kind::Gather, "binomial", "binomial"),
    same(Kind::Gather, "linear", "basic_linear"),
    with(Kind::Reduce, "binary-tree", "binary", by_levels),
    with(Kind::Reduce, "binomial", "binomial", plain_or_segment),
    with(Kind::Reduce, "binomial", "linear", flat),
    with(Kind::Reduce, "pipelined-chain", "pipeline", segment),
    same(Kind::Reduce, "reduce-scatter-gather", "rabenseifner"),
    same(Kind::ReduceScatter, "recursive-halving", "recursive_halving"),
];

/// Algorithms of Open MPI that change the order of operands, by collective and name, with the words for [`notes`]. A
/// rules file makes Open MPI use them for operators that do not commute, too. In runs of 5.0.11, such results were
/// wrong with these algorithms, and right with all others of [`NAMES`].
const REORDERING: &[(Kind, &str, &str)] = &[
    (Kind::Allreduce, "ring", "MPI_Allreduce under ring"),
    (Kind::Reduce, "binary", "MPI_Reduce under binary"),
    (Kind::Reduce, "binomial", "MPI_Reduce under binomial"),
    (Kind::Reduce, "pipeline", "MPI_Reduce under pipeline"),
];

/// Returns the fan-out of Bruck's algorithm as a setting. Open MPI 6 never ends the algorithm with the default, 0.
fn fanout_two(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    plain(params, ranks).map(|_| vec![("faninout", "2".to_owned())])
}

fn even(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    if !ranks.is_multiple_of(2) {
        return Err("it needs an even number of ranks, and the library takes another one otherwise".to_owned());
    }
    plain(params, ranks)
}

/// Returns the setting of a segment's bytes that `segment=` states. Without parameters, returns no setting, and the
/// vector is not divided.
fn plain_or_segment(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    if params.is_empty() { plain(params, ranks) } else { segment(params, ranks) }
}

/// The default value of `coll_tuned_bcast_algorithm_knomial_radix`, the radix of the knomial tree.
const KNOMIAL_RADIX: u32 = 4;

fn knomial(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    let (radix, others) = apart("radix", params);
    match radix.as_deref() {
        Some(radix) if radix == KNOMIAL_RADIX.to_string() => plain_or_segment(&others, ranks),
        _ => Err(format!("the library's knomial tree has the radix {KNOMIAL_RADIX}")),
    }
}

/// Parameters of the library's algorithms that differ from the defaults of Unisono's algorithms, as `(name, value)`.
pub const PARAMS: &[(&str, &str)] = &[("order", "levels")];

/// Accepts a binary tree with `order=levels`, as in the library, and returns the setting of a segment's bytes, by
/// default [`DEFAULT_SEGMENT`].
fn by_levels(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    let (order, others) = apart("order", params);
    match order.as_deref() {
        Some("levels") => segment(&others, ranks),
        _ => Err("the library's binary tree has order=levels".to_owned()),
    }
}

/// Accepts a tree whose radix is at least the number of ranks, in which the root sends to all other ranks itself.
fn flat(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    let (radix, others) = apart("radix", params);
    if radix.and_then(|radix| radix.parse::<u32>().ok()).is_none_or(|radix| radix < ranks) {
        return Err(format!("the library's linear algorithm has the radix {ranks}, the number of ranks"));
    }
    plain(&others, ranks)
}

/// Returns the value of the parameter `name`, if it is stated, and the other parameters.
fn apart(name: &str, params: &[(String, String)]) -> (Option<String>, Vec<(String, String)>) {
    let (own, others): (Vec<_>, Vec<_>) = params.iter().cloned().partition(|param| param.0 == name);
    (own.into_iter().next().map(|param| param.1), others)
}

/// The bytes of a segment of `pipelined-chain` and `binary-tree` without the parameter `segment`.
pub const DEFAULT_SEGMENT: u32 = 8192;

/// Returns the setting of a segment's bytes, by default [`DEFAULT_SEGMENT`].
fn segment(params: &[(String, String)], _: u32) -> Result<Settings, String> {
    match params {
        [(name, value)] if name == "segment" => match value.parse::<u32>() {
            Ok(bytes) if bytes > 0 => Ok(vec![("segment", bytes.to_string())]),
            _ => Err(format!("its parameter segment={value} is no number of bytes")),
        },
        // The default must be stated, because 0 bytes mean the whole vector in Open MPI.
        [] => Ok(vec![("segment", DEFAULT_SEGMENT.to_string())]),
        [(name, value), ..] => Err(format!("its parameter {name}={value} cannot be expressed")),
    }
}

pub fn id(kind: Kind, name: &str) -> Option<u32> {
    IDS.iter().find(|(k, n, _)| *k == kind && *n == name).map(|(_, _, id)| *id)
}

/// Returns the bytes that Open MPI compares for a call of `bytes` bytes as decision tables count them; `bytes` if Open
/// MPI compares no size.
pub fn bytes(known: &Known, bytes: u64, ranks: u32) -> u64 {
    if known.size == Size::OfAll { of_all(bytes, ranks) } else { bytes }
}

/// The options of `mpiexec` with which `coll/tuned` loads a file.
pub const LOAD: &[&str] = &["--mca coll_tuned_use_dynamic_rules 1", "--mca coll_tuned_dynamic_rules_filename FILE"];

pub fn view<'a>(target: &'static str, table: &DecisionTable, tells_nodes: TellsNodes) -> View<'a> {
    View::new(target, table, NAMES, false, tells_nodes, None, COLLECTIVES.iter().map(|known| known.kind))
}

/// Returns `(ranks, regions)` of a collective: the library's own choice for `least` ranks, then the regions of each
/// larger number of ranks at which the rules change. A communicator uses the rules of the largest listed number of
/// ranks that is not larger than its own. So for each number P of ranks in the table, the library's own choice is
/// listed for P + 1 ranks, unless the table has rows for P + 1 ranks.
pub fn by_size(view: &mut View<'_>, known: &Known, least: u32) -> Vec<(u32, Vec<Region>)> {
    let own = || vec![Region { first: 0, last: u64::MAX, algorithm: None }];
    let mut sizes = vec![(least, own())];
    let counts = view.ranks(known.kind);
    for &ranks in counts.iter().filter(|&&ranks| ranks > least) {
        let mut regions = view.regions(known.kind, ranks, any_operator(known.kind));
        // If Open MPI compares no size, only the first rule has an effect.
        regions.truncate(if known.size == Size::None { 1 } else { regions.len() });
        sizes.push((ranks, regions));
        // If the count is the largest that a file can state, no row follows it.
        let after = ranks.checked_add(1).filter(|after| !counts.contains(after));
        sizes.extend(after.map(|after| (after, own())));
    }
    sizes
}

/// Returns the comments at the head of a rules file: the options that load it, its notes and the rows of `left`.
pub fn head(title: &str, export: &Export) -> String {
    format!("# {title}. Load them with\n#   mpiexec {} ...\n{}", export.load.join(" "), export.comments())
}

/// Returns notes for users of a rules file or a JSON file that contains the algorithms `used`. `reports` completes the
/// sentence on a file that Open MPI cannot read.
pub fn notes(used: &[(Kind, &'static str)], reports: &str) -> Vec<String> {
    let mut notes = vec![
        "on several nodes coll/han comes before coll/tuned and takes no notice of this file: add \
         '--mca coll_han_priority 0', or the file of openmpi-han"
            .to_owned(),
        format!("coll/tuned ignores a file that it cannot read, and {reports}"),
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
