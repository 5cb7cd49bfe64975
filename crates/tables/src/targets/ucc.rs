//! UCC score strings, as lines for `ucc.conf` or the environment.
//!
//! ```text
//! UCC_TL_UCP_TUNE=allreduce:0-4096:host:[4]:@knomial#...   coll : first-last bytes : memory : team sizes : algorithm
//! ```
//!
//! A range ends at the start of the next range. That size belongs to the first range in current releases, for which
//! ranges are written, and to the second in earlier ones (`src/coll_score/ucc_coll_score_map.c`). Algorithms are named,
//! because their ids change between releases. Sizes of an allgather and an alltoall are those of all ranks
//! (`ucc_coll_args_msgsize`).
//! Source: UCC, `src/coll_score/ucc_coll_score.c` and the tables `ucc_tl_ucp_*_algs`; UCC itself was not run.

use unisono_collective::{DecisionTable, Kind};

use crate::{
    Export, LibraryTable, Tuning, Unsaid,
    region::{Counterpart, Settings, View, any_operator, no_nodes, of_all, plain, same, with},
};

const NAME: &str = "ucc";

/// `(kind, UCC's name, true if UCC compares the bytes of all ranks)`, sorted by name.
const COLLECTIVES: &[(Kind, &str, bool)] = &[
    (Kind::Allgather, "allgather", true),
    (Kind::Allreduce, "allreduce", false),
    (Kind::Alltoall, "alltoall", true),
    (Kind::Broadcast, "bcast", false),
    (Kind::Reduce, "reduce", false),
    (Kind::ReduceScatter, "reduce_scatter", false),
];

/// Returns the counterpart of an algorithm with radix 2, which a variable of [`RADIX`] sets.
const fn binary(kind: Kind, ours: &'static str, theirs: &'static str) -> Counterpart {
    with(kind, ours, theirs, radix_two)
}

const NAMES: &[Counterpart] = &[
    same(Kind::Allgather, "bruck", "bruck"),
    same(Kind::Allgather, "neighbor", "neighbor"),
    same(Kind::Allgather, "ring", "ring"),
    binary(Kind::Allreduce, "rabenseifner", "sra_knomial"),
    binary(Kind::Allreduce, "recursive-doubling", "knomial"),
    same(Kind::Allreduce, "ring", "ring"),
    same(Kind::Alltoall, "bruck", "bruck"),
    same(Kind::Alltoall, "pairwise", "pairwise"),
    binary(Kind::Broadcast, "binomial", "knomial"),
    binary(Kind::Reduce, "binomial", "knomial"),
    same(Kind::ReduceScatter, "ring", "ring"),
];

/// `(kind, UCC's name, the environment variable that sets the radix)` of the algorithms with a radix.
const RADIX: &[(Kind, &str, &str)] = &[
    (Kind::Allreduce, "knomial", "UCC_TL_UCP_ALLREDUCE_KN_RADIX"),
    (Kind::Allreduce, "sra_knomial", "UCC_TL_UCP_ALLREDUCE_SRA_KN_RADIX"),
    (Kind::Broadcast, "knomial", "UCC_TL_UCP_BCAST_KN_RADIX"),
    (Kind::Reduce, "knomial", "UCC_TL_UCP_REDUCE_KN_RADIX"),
];

fn radix_two(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    plain(params, ranks).map(|_| vec![("radix", "2".to_owned())])
}

pub const TUNING: Tuning = Tuning {
    name: NAME,
    summary: "score strings of UCC's TL/UCP for host memory",
    reference: "UCC, ucc_coll_score.c; docs/export.md",
    write,
    ..Tuning::PLAIN
};

fn write(table: &DecisionTable, _: Option<&LibraryTable>) -> Result<Export, Unsaid> {
    let mut view = View::new(NAME, table, NAMES, false, no_nodes, None, COLLECTIVES.iter().map(|c| c.0));
    let (mut tokens, mut radix) = (Vec::new(), Vec::new());
    for &(kind, name, of_all_ranks) in COLLECTIVES {
        for ranks in view.ranks(kind) {
            for region in view.regions(kind, ranks, any_operator(kind)) {
                let Some((algorithm, settings)) = &region.algorithm else { continue };
                let size = |bytes| if of_all_ranks { of_all(bytes, ranks) } else { bytes };
                let (first, last) = (size(region.first.saturating_sub(1)), size(region.last));
                // A range must not be empty: 0 bytes alone cannot be expressed.
                if first >= last {
                    view.left.push(format!("{name} on {ranks} ranks, 0 bytes: UCC has no range for it"));
                    continue;
                }
                let last = if last == u64::MAX { "inf".to_owned() } else { last.to_string() };
                tokens.push(format!("{name}:{first}-{last}:host:[{ranks}]:@{algorithm}"));
                if let Some((_, value)) = settings.first()
                    && let Some((_, _, variable)) = RADIX.iter().find(|r| (r.0, r.1) == (kind, *algorithm))
                {
                    radix.push(format!("{variable}={value}"));
                }
            }
        }
    }
    radix.sort_unstable();
    radix.dedup();
    tokens.iter().try_for_each(|t| check(t)).map_err(|reason| Unsaid { target: NAME, reason })?;
    let notes = vec![
        "one bad token voids the whole string; UCC_LOG_LEVEL=info prints the map of scores that came of it".to_owned(),
        "Open MPI uses UCC only where coll/ucc is built in and switched on: '--mca coll_ucc_enable 1 --mca \
         coll_ucc_priority 100'"
            .to_owned(),
        "radixes hold for all sizes of an algorithm".to_owned(),
        "written from UCC's source, and not run".to_owned(),
    ];
    let export = view.export(&["UCC_CONFIG_FILE=FILE"], notes)?;
    let mut text = String::from("# Scores of UCC's TL/UCP; a ucc.conf that UCC_CONFIG_FILE names, or variables.\n");
    text.push_str(&export.comments());
    text.push_str(&format!("UCC_TL_UCP_TUNE={}\n", tokens.join("#")));
    radix.iter().for_each(|r| text.push_str(&format!("{r}\n")));
    Ok(Export { text, ..export })
}

/// Reads a token as UCC does: a collective, a range with both ends, a memory type, team sizes, a name.
fn check(token: &str) -> Result<(), String> {
    let parts: Vec<&str> = token.split(':').collect();
    let wrong = |what: &str| Err(format!("the token '{token}' has a wrong {what}"));
    let [coll, range, memory, team, algorithm] = parts[..] else { return wrong("number of parts") };
    let Some((kind, _, _)) = COLLECTIVES.iter().find(|c| c.1 == coll) else { return wrong("collective") };
    let ends =
        range.split_once('-').map(|(a, b)| (a.parse::<u64>(), if b == "inf" { Ok(u64::MAX) } else { b.parse() }));
    let Some((Ok(first), Ok(last))) = ends else { return wrong("range") };
    if first >= last {
        return wrong("range");
    }
    if memory != "host" {
        return wrong("memory type");
    }
    if team.strip_prefix('[').and_then(|t| t.strip_suffix(']')).is_none_or(|t| t.parse::<u32>().is_err()) {
        return wrong("team size");
    }
    let known = algorithm.strip_prefix('@').is_some_and(|a| NAMES.iter().any(|n| n.kind == *kind && n.theirs == a));
    if known { Ok(()) } else { wrong("algorithm") }
}
