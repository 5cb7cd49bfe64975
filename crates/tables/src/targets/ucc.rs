//! UCC score strings, as lines for `ucc.conf` or the environment.
//!
//! ```text
//! UCC_TL_UCP_TUNE=allreduce:0-4096:host:[4]:@knomial#...   coll : first-last bytes : memory : team sizes : algorithm
//! ```
//!
//! A range ends at the size at which the next range starts. This size belongs to the first range in current releases,
//! for which ranges are written, and to the second range in earlier releases (`src/coll_score/ucc_coll_score_map.c`).
//! Algorithms are named, because their ids change between releases. Sizes of an allgather and an alltoall are those of
//! all ranks (`ucc_coll_args_msgsize`).
//!
//! UCC reads a file by `fgets` into a buffer, so it takes the rest of a longer line for another variable
//! (`UCC_INI_MAX_LINE`). It does not join lines: if a variable has two values, it drops the second; of several sections
//! for a team, it uses only one. One unknown name makes the whole string invalid. Source: UCC,
//! `src/coll_score/ucc_coll_score.c`, `src/utils/ini.c`, `ucc_parser.c`, and the tables `ucc_tl_ucp_*_algs`, of
//! releases 1.2.0 to 1.9.0-rc1; UCC itself was not run.

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

/// A release of UCC.
type Release = (u32, u32, u32);

/// `(kind, UCC's name, first release)` of the algorithms that releases of [`LINES`] lack.
const SINCE: &[(Kind, &str, Release)] = &[
    (Kind::Allgather, "bruck", (1, 4, 4)),
    (Kind::Allgather, "neighbor", (1, 3, 0)),
    (Kind::Allreduce, "ring", (1, 8, 0)),
];

/// `(bytes, first release)`: the bytes of the longest line of a file that a release reads whole, ascending.
const LINES: [(usize, Release); 3] = [(199, (1, 2, 0)), (499, (1, 4, 4)), (MOST_BYTES, (1, 9, 0))];
const MOST_BYTES: usize = 8191;

const VARIABLE: &str = "UCC_TL_UCP_TUNE=";

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
    let (mut line, mut radix, mut since) = (VARIABLE.to_owned(), Vec::new(), LINES[0].1);
    for &(kind, name, of_all_ranks) in COLLECTIVES {
        for ranks in view.ranks(kind) {
            let (mut tokens, mut empty) = (Vec::new(), Vec::new());
            for region in view.regions(kind, ranks, any_operator(kind)) {
                let Some((algorithm, settings)) = region.algorithm else { continue };
                let size = |bytes| if of_all_ranks { of_all(bytes, ranks) } else { bytes };
                let (first, last) = (size(region.first.saturating_sub(1)), size(region.last));
                // A range must not be empty: 0 bytes alone cannot be expressed.
                if first >= last {
                    empty.push(format!("{name} on {ranks} ranks, 0 bytes: UCC has no range for it"));
                    continue;
                }
                let last = if last == u64::MAX { "inf".to_owned() } else { last.to_string() };
                tokens.push((algorithm, settings, format!("{name}:{first}-{last}:host:[{ranks}]:@{algorithm}")));
            }
            let bytes: usize = tokens.iter().map(|(_, _, token)| token.len() + 1).sum();
            if line.len() + bytes > MOST_BYTES {
                view.leave_all(kind, ranks, &format!("UCC reads no line of more than {MOST_BYTES} bytes of a file"));
                continue;
            }
            view.left.extend(empty);
            for (algorithm, settings, token) in tokens {
                if line.len() > VARIABLE.len() {
                    line.push('#');
                }
                line.push_str(&token);
                since = since.max(SINCE.iter().find(|s| (s.0, s.1) == (kind, algorithm)).map_or(since, |s| s.2));
                if let Some((_, value)) = settings.first()
                    && let Some((_, _, variable)) = RADIX.iter().find(|r| (r.0, r.1) == (kind, algorithm))
                {
                    radix.push(format!("{variable}={value}"));
                }
            }
        }
    }
    radix.sort_unstable();
    radix.dedup();
    check(&line).map_err(|reason| Unsaid { target: NAME, reason })?;
    let notes = vec![
        "one bad token voids the whole string; UCC_LOG_LEVEL=info prints the map of scores that came of it".to_owned(),
        "Open MPI uses UCC only where coll/ucc is built in and switched on: '--mca coll_ucc_enable 1 --mca \
         coll_ucc_priority 100'"
            .to_owned(),
        "radixes hold for all sizes of an algorithm".to_owned(),
        "written from UCC's source, and not run".to_owned(),
    ];
    let mut export = view.export(&["UCC_CONFIG_FILE=FILE"], notes)?;
    let longest = export.comments().lines().map(str::len).fold(line.len(), usize::max);
    export.notes.push(least_release(since, longest));
    let mut text = String::from("# Scores of UCC's TL/UCP; a ucc.conf that UCC_CONFIG_FILE names, or variables.\n");
    text.push_str(&export.comments());
    text.push_str(&format!("{line}\n"));
    radix.iter().for_each(|r| text.push_str(&format!("{r}\n")));
    Ok(Export { text, ..export })
}

/// Returns the note on the releases that can use the file: those from `names` on, which have all names, and those that
/// read lines of `longest` bytes whole.
fn least_release(names: Release, longest: usize) -> String {
    let (_, reads) = LINES.into_iter().find(|(bytes, _)| longest <= *bytes).unwrap_or(LINES[LINES.len() - 1]);
    let text = |(major, minor, patch): Release| format!("{major}.{minor}.{patch}");
    if reads <= names {
        return format!("its algorithms and lines need UCC {} or newer", text(names));
    }
    let (cut, _) = LINES.into_iter().rfind(|(bytes, _)| longest > *bytes).unwrap_or(LINES[0]);
    format!(
        "as a file it needs UCC {} or newer, because earlier releases cut lines after {cut} bytes; as variables of the \
         environment UCC {} or newer",
        text(reads),
        text(names)
    )
}

/// Reads the line of scores as UCC does from a file.
fn check(line: &str) -> Result<(), String> {
    if line.len() > MOST_BYTES {
        return Err(format!("its line has {} bytes, and UCC reads {MOST_BYTES}", line.len()));
    }
    line.trim_start_matches(VARIABLE).split('#').filter(|token| !token.is_empty()).try_for_each(check_token)
}

/// Reads a token as UCC does: a collective, a range with both ends, a memory type, team sizes, a name.
fn check_token(token: &str) -> Result<(), String> {
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
