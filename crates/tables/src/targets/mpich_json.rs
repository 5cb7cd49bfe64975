//! MPICH's complete selection table, with the rows of a decision table added.
//!
//! Each row becomes conditions before the library's own choice for the collective on an intracommunicator:
//! `comm_size<=P-1`, `comm_size<=P`, sizes, and operators that commute, if the library distinguishes them. The library
//! runs some algorithms only under a condition (a built-in operator, or a count of at least the largest power of two up
//! to P). The row repeats this condition, because the library would otherwise fall back to another algorithm without a
//! message. `comm_size<N` is avoided, because some releases read it as `<=`.
//!
//! Source: MPICH, `src/mpi/coll/src/csel.c`, `src/mpi/coll/coll_algorithms.txt`, `coll_csel.h` for the meaning of
//! sizes; the names were compared with those inside libmpi.so of MPICH 5.0.2.

use unisono_collective::{DecisionTable, Kind, OperatorClass};

use crate::{
    Export, LibraryTable, Tuning, Unsaid,
    mpich_table::Tree,
    region::{Counterpart, Region, Settings, View, any_operator, no_nodes, of_all, plain, same, with, with_doubling},
};

const NAME: &str = "mpich-json";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    /// `avg_msg_size`: bytes of one rank.
    OfOne,
    /// `total_msg_size`: bytes of all ranks.
    OfAll,
    /// The library compares no size for this collective, or a number that ignores the bytes of an element.
    None,
}

/// `(kind, MPICH's name, the size that conditions compare)` of the library's collectives, sorted by name.
const COLLECTIVES: &[(Kind, &str, Size)] = &[
    (Kind::Allgather, "allgather", Size::OfAll),
    (Kind::Allreduce, "allreduce", Size::OfOne),
    (Kind::Alltoall, "alltoall", Size::OfOne),
    (Kind::Barrier, "barrier", Size::None),
    (Kind::Broadcast, "bcast", Size::OfOne),
    (Kind::Gather, "gather", Size::None),
    (Kind::Reduce, "reduce", Size::OfOne),
    (Kind::ReduceScatter, "reduce_scatter_block", Size::OfAll),
    (Kind::Scan, "scan", Size::None),
    (Kind::Scatter, "scatter", Size::None),
];

const NAMES: &[Counterpart] = &[
    same(Kind::Allgather, "bruck", "MPIR_Allgather_intra_brucks"),
    with(Kind::Allgather, "recursive-doubling", "MPIR_Allgather_intra_recursive_doubling", power_of_two),
    with(Kind::Allgather, "recursive-doubling", "MPIR_Allgather_intra_recexch_doubling", pairs),
    with(Kind::Allgather, "recursive-exchange", "MPIR_Allgather_intra_recexch_doubling", doubling),
    with(Kind::Allgather, "recursive-exchange", "MPIR_Allgather_intra_recexch_halving", halving),
    same(Kind::Allgather, "ring", "MPIR_Allgather_intra_ring"),
    same(Kind::Allreduce, "rabenseifner", "MPIR_Allreduce_intra_reduce_scatter_allgather"),
    same(Kind::Allreduce, "recursive-doubling", "MPIR_Allreduce_intra_recursive_doubling"),
    with(Kind::Allreduce, "recursive-multiplying", "MPIR_Allreduce_intra_recursive_multiplying", factor),
    same(Kind::Allreduce, "ring", "MPIR_Allreduce_intra_ring"),
    same(Kind::Alltoall, "bruck", "MPIR_Alltoall_intra_brucks"),
    same(Kind::Alltoall, "linear", "MPIR_Alltoall_intra_scattered"),
    same(Kind::Alltoall, "pairwise", "MPIR_Alltoall_intra_pairwise"),
    with(Kind::Barrier, "dissemination", "MPIR_Barrier_intra_k_dissemination", ways),
    same(Kind::Broadcast, "binomial", "MPIR_Bcast_intra_binomial"),
    same(Kind::Broadcast, "scatter-allgather", "MPIR_Bcast_intra_scatter_ring_allgather"),
    with(Kind::Broadcast, "scatter-allgather", "MPIR_Bcast_intra_scatter_recursive_doubling_allgather", with_doubling),
    same(Kind::Gather, "binomial", "MPIR_Gather_intra_binomial"),
    same(Kind::Reduce, "binomial", "MPIR_Reduce_intra_binomial"),
    same(Kind::Reduce, "reduce-scatter-gather", "MPIR_Reduce_intra_reduce_scatter_gather"),
    same(Kind::ReduceScatter, "pairwise", "MPIR_Reduce_scatter_block_intra_pairwise"),
    same(Kind::ReduceScatter, "recursive-halving", "MPIR_Reduce_scatter_block_intra_recursive_halving"),
    same(Kind::Scan, "recursive-doubling", "MPIR_Scan_intra_recursive_doubling"),
    same(Kind::Scatter, "binomial", "MPIR_Scatter_intra_binomial"),
];

/// Algorithms that the library runs only for built-in operators and counts of elements of at least the largest power of
/// two up to P.
const NEED_COUNT: &[&str] =
    &["MPIR_Allreduce_intra_reduce_scatter_allgather", "MPIR_Reduce_intra_reduce_scatter_gather"];

fn power_of_two(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    if !ranks.is_power_of_two() {
        return Err("the library runs it on powers of two only, and another one otherwise".to_owned());
    }
    plain(params, ranks)
}

/// Returns the settings of recursive doubling on a number of ranks that is not a power of two: the library's exchange
/// with k=2.
fn pairs(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    plain(params, ranks).map(|_| exchange(2))
}

fn doubling(params: &[(String, String)], _: u32) -> Result<Settings, String> {
    radix(params, "doubling")
}

fn halving(params: &[(String, String)], _: u32) -> Result<Settings, String> {
    radix(params, "halving")
}

/// Translates `radix=K` (by default 2) to the library's `k=K`, if the parameter `order=` (by default `doubling`) equals
/// `order`.
fn radix(params: &[(String, String)], order: &str) -> Result<Settings, String> {
    let mut k = Some(2);
    let mut given = "doubling";
    for (name, value) in params {
        match name.as_str() {
            "radix" => k = value.parse().ok().filter(|&k: &u32| k > 1),
            "order" => given = value,
            _ => return Err(format!("its parameter {name}={value} cannot be expressed")),
        }
    }
    match k {
        Some(k) if given == order => Ok(exchange(k)),
        _ => Err(format!("its parameters {params:?} cannot be expressed")),
    }
}

/// Returns the two settings of a recursive exchange, because a table must state both.
fn exchange(k: u32) -> Settings {
    vec![("k", k.to_string()), ("single_phase_recv", "0".to_owned())]
}

/// Translates `schedule=aK,aK,...`, in which all factors are K and their product is the number of ranks, to the
/// library's `k=K`.
fn factor(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    let [(name, value)] = params else { return Err("its schedule= is not stated".to_owned()) };
    if name != "schedule" {
        return Err(format!("its parameter {name}={value} cannot be expressed"));
    }
    let factors: Option<Vec<u32>> =
        value.split(',').map(|f| f.trim().strip_prefix('a').and_then(|k| k.parse().ok())).collect();
    let uniform = factors.filter(|f| f.iter().all(|k| *k == f[0] && *k > 1));
    let power = uniform.filter(|f| f.iter().try_fold(1u32, |p, &k| p.checked_mul(k)) == Some(ranks));
    match power {
        Some(f) => Ok(vec![("k", f[0].to_string())]),
        None => Err(format!("schedule={value} is not one factor whose power is {ranks}, as the library's k= takes it")),
    }
}

/// Translates `ways`, the messages of a rank in one round (1 to 1023, by default 1), to the library's `k = ways + 1`.
fn ways(params: &[(String, String)], _: u32) -> Result<Settings, String> {
    let ways = match params {
        [] => Some(1),
        [(name, value)] if name == "ways" => value.parse::<u32>().ok().filter(|w| (1..1024).contains(w)),
        _ => None,
    };
    let say = || format!("its parameters {params:?} cannot be expressed");
    ways.map(|w| vec![("k", (w + 1).to_string())]).ok_or_else(say)
}

/// The largest threshold, because the library reads thresholds as a C `int`.
const MOST: u64 = i32::MAX as u64;

pub const TUNING: Tuning = Tuning {
    name: NAME,
    summary: "MPICH's complete selection table with these rows in it",
    reference: "MPICH, csel.c and coll_algorithms.txt; docs/export.md",
    needs_table: true,
    write,
    ..Tuning::PLAIN
};

fn write(table: &DecisionTable, library: Option<&LibraryTable>) -> Result<Export, Unsaid> {
    let refuse = |reason: String| Unsaid { target: NAME, reason };
    let library = library.ok_or_else(|| refuse("the library's complete table is missing".to_owned()))?;
    let mut view = View::new(NAME, table, NAMES, true, no_nodes, Some(&library.algorithms), Kind::ALL.iter().copied());
    let mut tree = library.tree.clone();
    let mut devices = Vec::new();
    for &(kind, name, size) in COLLECTIVES {
        let counts = view.ranks(kind);
        if counts.is_empty() {
            continue;
        }
        let intra = tree.find_mut(&format!("collective={name}")).and_then(|t| t.find_mut("comm_type=intra"));
        let intra = intra.ok_or_else(|| refuse(format!("the table has no comm_type=intra for {name}")))?;
        let own = intra.clone();
        let mut sizes: Vec<(String, Tree)> = Vec::new();
        for ranks in counts {
            let Some(chosen) = on_ranks(&mut view, (kind, size), ranks, &own) else { continue };
            if ranks > 1 && sizes.last().is_none_or(|(key, _)| *key != format!("comm_size<={}", ranks - 1)) {
                sizes.push((format!("comm_size<={}", ranks - 1), own.clone()));
            }
            sizes.push((format!("comm_size<={ranks}"), chosen));
        }
        if !sizes.is_empty() {
            sizes.push(("comm_size=any".to_owned(), own));
            *intra = Tree(sizes);
            devices.push(format!("MPIR_CVAR_{}_DEVICE_COLLECTIVE=0", name.to_uppercase()));
        }
    }
    check(&tree, library).map_err(refuse)?;
    let notes = vec![
        "on one node the device's own collectives come before this table from the fifth call on; the variables \
         ..._DEVICE_COLLECTIVE=0 switch them off, or MPIR_CVAR_DEVICE_COLLECTIVES=none all at once"
            .to_owned(),
        "the table is that of the library it was taken from: make the file again after an update of MPICH".to_owned(),
        "MPIR_CVAR_COLLECTIVE_FALLBACK=error ends a program where a choice cannot run, which else goes unsaid"
            .to_owned(),
    ];
    let mut export = view.export(&["MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=FILE"], notes)?;
    export.load.extend(devices);
    if table.rows().iter().any(|r| r.last_bytes != u64::MAX && of_all(r.last_bytes, r.ranks) > MOST) {
        export.notes.push(format!("MPICH reads sizes up to {MOST} bytes: larger thresholds are that"));
    }
    Ok(Export { text: tree.print(), ..export })
}

/// Returns the conditions and algorithms for a number of ranks. Calls without a row get `own`, the library's own
/// choice. Returns `None` if no call has a row.
fn on_ranks(view: &mut View<'_>, (kind, size): (Kind, Size), ranks: u32, own: &Tree) -> Option<Tree> {
    let tells = matches!(kind, Kind::Allreduce | Kind::Reduce | Kind::ReduceScatter);
    if tells {
        let mut of = |class| by_size(&view.regions(kind, ranks, class), size, ranks, own);
        let (commutes, ordered) = (of(OperatorClass::Commutative), of(OperatorClass::Ordered));
        if commutes.is_none() && ordered.is_none() {
            return None;
        }
        return Some(Tree(vec![
            ("is_commutative=yes".to_owned(), commutes.unwrap_or_else(|| own.clone())),
            ("is_commutative=no".to_owned(), ordered.unwrap_or_else(|| own.clone())),
        ]));
    }
    let regions = view.regions(kind, ranks, any_operator(kind));
    if size == Size::None && kind != Kind::Barrier && regions.len() > 1 {
        view.leave_all(
            kind,
            ranks,
            "the library does not distinguish sizes of this collective; one row must serve them all",
        );
        return None;
    }
    let chosen = by_size(&regions, size, ranks, own)?;
    Some(match kind {
        Kind::Alltoall => {
            Tree(vec![("is_sendbuf_inplace=yes".to_owned(), own.clone()), ("is_sendbuf_inplace=no".to_owned(), chosen)])
        }
        _ => chosen,
    })
}

fn by_size(regions: &[Region], size: Size, ranks: u32, own: &Tree) -> Option<Tree> {
    let leaf = |r: &Region| match &r.algorithm {
        None => own.clone(),
        Some((name, settings)) if NEED_COUNT.contains(name) => Tree(vec![
            (
                "is_op_built_in=yes".to_owned(),
                Tree(vec![
                    ("count<pow2".to_owned(), own.clone()),
                    ("count=any".to_owned(), Tree::algorithm(name, settings)),
                ]),
            ),
            ("is_op_built_in=no".to_owned(), own.clone()),
        ]),
        Some((name, settings)) => Tree::algorithm(name, settings),
    };
    regions.iter().find(|r| r.algorithm.is_some())?;
    if size == Size::None {
        // A barrier has 0 bytes, and the caller makes sure that other collectives have one region.
        return regions.first().filter(|r| r.algorithm.is_some()).map(leaf);
    }
    let key = if size == Size::OfAll { "total_msg_size" } else { "avg_msg_size" };
    let mut conditions: Vec<(String, Tree)> = Vec::new();
    for (n, region) in regions.iter().enumerate() {
        let last = if size == Size::OfAll { of_all(region.last, ranks) } else { region.last };
        let is_last = n + 1 == regions.len();
        let condition = if is_last { format!("{key}=any") } else { format!("{key}<={}", last.min(MOST)) };
        // Thresholds are cut off at the largest size that the library reads, so regions beyond it have equal
        // conditions. Of these regions only the first is written. The last region of all has the condition `any`.
        if conditions.last().is_some_and(|(k, _)| *k == condition) {
            continue;
        }
        conditions.push((condition, leaf(region)));
    }
    Some(Tree(conditions))
}

/// Checks that the library has every algorithm of the table, that every branch ends in an algorithm, and that no
/// collective is missing.
fn check(tree: &Tree, library: &LibraryTable) -> Result<(), String> {
    let mut named = std::collections::BTreeSet::new();
    tree.names(&mut named);
    if let Some(unknown) = named.iter().find(|n| !library.algorithms.contains(*n)) {
        return Err(format!("this library has no algorithm {unknown}"));
    }
    for (collective, _) in &library.tree.0 {
        if tree.find(collective).is_none() {
            return Err(format!("{collective} is missing"));
        }
    }
    tree.0.iter().try_for_each(|(collective, node)| ends(node).map_err(|what| format!("{collective}: {what}")))
}

fn ends(node: &Tree) -> Result<(), String> {
    let is_algorithm = |key: &str| key.starts_with("algorithm=");
    match &node.0[..] {
        [] => Err("a condition leads to nothing".to_owned()),
        [(key, _)] if is_algorithm(key) => Ok(()),
        all if all.iter().any(|(key, _)| is_algorithm(key)) => Err("an algorithm stands among conditions".to_owned()),
        all => all.iter().try_for_each(|(_, node)| ends(node)),
    }
}
