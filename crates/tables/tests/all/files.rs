//! Tests of decision tables for other libraries: a look-up in each file by its library's rules must find the choice of
//! the table.

use proptest::prelude::*;
use serde_json::Value;
use unisono_algorithms::ALGORITHMS;
use unisono_collective::{Choice, DecisionTable, Kind, OperatorClass, Row};
use unisono_tables::{Export, LibraryTable, TUNINGS};

/// A substitute for MPICH's own table.
const LIBRARY: &str = r#"{
  "collective=bcast": {"comm_type=intra": {"comm_size<8": {"algorithm=MPIR_Bcast_own": {}}, "comm_size=any": {"algorithm=MPIR_Bcast_own": {}}}, "comm_type=inter": {"algorithm=MPIR_Bcast_inter": {}}},
  "collective=allreduce": {"comm_type=intra": {"algorithm=MPIR_own": {}}, "comm_type=inter": {"algorithm=MPIR_Allreduce_inter": {}}},
  "collective=allgather": {"comm_type=intra": {"algorithm=MPIR_own": {}}},
  "collective=gather": {"comm_type=intra": {"algorithm=MPIR_own": {}}},
  "collective=barrier": {"comm_type=intra": {"algorithm=MPIR_own": {}}},
  "collective=alltoall": {"comm_type=intra": {"algorithm=MPIR_own": {}}},
  "collective=iallreduce": {"algorithm=MPIR_Allreduce_intra_ring": {}},
  "collective=neighbor_allgather": {"x=1": {"algorithm=MPIR_Allreduce_intra_recursive_doubling": {}}, "x=2": {"algorithm=MPIR_Allreduce_intra_reduce_scatter_allgather": {}},
    "x=3": {"algorithm=MPIR_Allgather_intra_ring": {}}, "x=4": {"algorithm=MPIR_Allgather_intra_brucks": {}}, "x=5": {"algorithm=MPIR_Allreduce_intra_recursive_multiplying": {}},
    "x=6": {"algorithm=MPIR_Gather_intra_binomial": {}}, "x=7": {"algorithm=MPIR_Barrier_intra_k_dissemination": {}}, "x=8": {"algorithm=MPIR_Alltoall_intra_pairwise": {}}, "x=9": {"algorithm=MPIR_Allgather_intra_recursive_doubling": {}},
    "x=10": {"algorithm=MPIR_Allgather_intra_recexch_doubling": {"k=2": {}}}, "x=11": {"algorithm=MPIR_Allgather_intra_recexch_halving": {"k=2": {}}}}
}"#;

fn row(kind: Kind, ranks: u32, first_bytes: u64, last_bytes: u64, algorithm: &str) -> Row {
    let class = if kind.reduces() && kind != Kind::Barrier { OperatorClass::Commutative } else { OperatorClass::None };
    let mut words = algorithm.split(' ');
    let name = words.next().unwrap().to_owned();
    let params = words.map(|w| w.split_once('=').unwrap()).map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    let choice = if name == "library" { Choice::Library } else { Choice::Algorithm { name, params } };
    Row { kind, ranks, per_node: None, class, first_bytes, last_bytes, choice }
}

fn table(rows: Vec<Row>) -> DecisionTable {
    DecisionTable::new(rows).unwrap()
}

fn write(target: &str, table: &DecisionTable) -> Result<Export, String> {
    let library = LibraryTable::read(LIBRARY.as_bytes()).unwrap();
    (TUNINGS.iter().find(|t| t.name == target).unwrap().write)(table, Some(&library)).map_err(|e| e.to_string())
}

/// Returns the library's name of an algorithm; an empty name is the library's own choice.
fn theirs(target: &str, kind: Kind, ranks: u32, ours: &str) -> &'static str {
    match (target, kind, ours) {
        ("openmpi-rules", Kind::Allreduce, "ring") => "4",
        ("openmpi-rules", Kind::Allreduce, "recursive-doubling") => "3",
        ("openmpi-rules", Kind::Allreduce, "rabenseifner") => "6",
        ("openmpi-rules", Kind::Allgather, "ring") => "4",
        ("openmpi-rules", Kind::Allgather, "bruck") => "2",
        ("openmpi-rules", Kind::Allgather, "recursive-doubling") => "3",
        ("openmpi-han", kind, ours) => match theirs("openmpi-rules", kind, ranks, ours) {
            "" => "",
            _ => "tuned",
        },
        ("openmpi-json", _, "recursive-doubling") => "recursive_doubling",
        ("openmpi-json" | "ucc" | "nccl-tuner-csv" | "ncclx-csv", _, "ring") => "ring",
        ("openmpi-json", Kind::Allreduce, "rabenseifner") => "rabenseifner",
        ("openmpi-json", Kind::Allgather, "bruck") => "bruck-k-fanout",
        ("ucc", Kind::Allgather, "bruck") => "bruck",
        ("mpich-json", Kind::Allreduce, "ring") => "MPIR_Allreduce_intra_ring",
        ("mpich-json", Kind::Allreduce, "recursive-doubling") => "MPIR_Allreduce_intra_recursive_doubling",
        ("mpich-json", Kind::Allreduce, "rabenseifner") => "MPIR_Allreduce_intra_reduce_scatter_allgather",
        ("mpich-json", Kind::Allgather, "ring") => "MPIR_Allgather_intra_ring",
        ("mpich-json", Kind::Allgather, "recursive-doubling") if ranks.is_power_of_two() => {
            "MPIR_Allgather_intra_recursive_doubling"
        }
        ("mpich-json", Kind::Allgather, "recursive-doubling") => "MPIR_Allgather_intra_recexch_doubling",
        ("mpich-json", Kind::Allgather, "bruck") => "MPIR_Allgather_intra_brucks",
        ("ucc", Kind::Allreduce, "recursive-doubling") => "knomial",
        ("ucc", Kind::Allreduce, "rabenseifner") => "sra_knomial",
        _ => "",
    }
}

/// Returns the choice of a library for `bytes` bytes of one rank, by the library's own look-up rules.
fn look_up(target: &str, text: &str, kind: Kind, ranks: u32, bytes: u64) -> String {
    let all = bytes * u64::from(ranks);
    let of_all = kind == Kind::Allgather;
    match target {
        // The rules that apply are those of the largest COMM_SIZE that does not exceed the communicator's size or, if
        // all do, the first ones. Among these, the rule for the largest message up to the call's size applies.
        "openmpi-rules" => {
            let clean: String = text.lines().map(|l| l.split('#').next().unwrap().to_owned() + " ").collect();
            let mut numbers = clean.split_whitespace().map(|n| n.parse::<u64>().unwrap());
            let mut next = move || numbers.next().unwrap();
            let mut found = 0;
            for _ in 0..next() {
                let (coll, mut best) = (next(), None);
                for n in 0..next() {
                    let size = next();
                    let rules: Vec<[u64; 4]> = (0..next()).map(|_| [next(), next(), next(), next()]).collect();
                    if n == 0 || size <= u64::from(ranks) {
                        best = Some(rules);
                    }
                }
                if coll == (if of_all { 0 } else { 2 }) {
                    let size = if of_all { all } else { bytes };
                    found = best.unwrap().iter().rev().find(|r| r[0] <= size).unwrap()[1];
                }
            }
            if found == 0 { String::new() } else { found.to_string() }
        }
        // The rules are as in `openmpi-rules`, of one level, with the bytes of one rank.
        "openmpi-han" => {
            let lines = text.lines().filter(|l| !l.starts_with('#'));
            let mut words = lines.flat_map(str::split_whitespace);
            let mut next = move || words.next().unwrap();
            let number = |word: &str| word.parse::<u64>().unwrap();
            let mut found = "han";
            for _ in 0..number(next()) {
                let coll = number(next());
                assert_eq!([next(), next()], ["1", "2"]);
                let mut best = None;
                for n in 0..number(next()) {
                    let size = number(next());
                    assert_eq!(n == 0, size == 1);
                    let rules: Vec<_> = (0..number(next())).map(|_| (number(next()), next())).collect();
                    assert_eq!(rules[0].0, 0);
                    if size <= u64::from(ranks) {
                        best = Some(rules);
                    }
                }
                if coll == (if of_all { 0 } else { 2 }) {
                    found = best.unwrap().iter().rev().find(|r| r.0 <= bytes).unwrap().1;
                }
            }
            if found == "han" { String::new() } else { found.to_owned() }
        }
        "openmpi-json" => {
            let file: Value = serde_json::from_str(text).unwrap();
            let size = if of_all { all } else { bytes };
            let within = |v: &Value, low: &str, high: &str, n: u64| {
                v[low].as_u64().unwrap_or(0) <= n && v[high].as_u64().is_none_or(|h| n <= h)
            };
            let communicators = file["collectives"][kind.name()].as_array().cloned().unwrap_or_default();
            let comm = communicators.iter().find(|c| within(c, "comm_size_min", "comm_size_max", u64::from(ranks)));
            let rules = comm.map(|c| c["rules"].as_array().unwrap().clone()).unwrap_or_default();
            let rule = rules.iter().find(|r| within(r, "msg_size_min", "msg_size_max", size));
            rule.map_or(String::new(), |r| r["alg"].as_str().unwrap().to_owned())
        }
        "mpich-json" => {
            let file = LibraryTable::read(text.as_bytes()).unwrap().tree;
            let mut node = file.find(&format!("collective={kind}")).unwrap().find("comm_type=intra").unwrap().clone();
            loop {
                let holds = |key: &str| {
                    let number = |prefix: &str| key.strip_prefix(prefix).map(|n| n.parse::<u64>().unwrap());
                    let within = |prefix: &str, n: u64| number(prefix).is_some_and(|most| n <= most);
                    key.ends_with("=any")
                        || within("comm_size<=", ranks.into())
                        || within("avg_msg_size<=", bytes)
                        || within("total_msg_size<=", all)
                        || key == "is_commutative=yes"
                        || key == "is_op_built_in=yes"
                };
                let (key, next) = match node.0.iter().find(|(k, _)| k.starts_with("algorithm=") || holds(k)) {
                    Some(found) => found.clone(),
                    None => panic!("{kind} {ranks} {bytes}: no condition holds in {text}"),
                };
                if let Some(name) = key.strip_prefix("algorithm=") {
                    return if name.ends_with("own") { String::new() } else { name.to_owned() };
                }
                node = next;
            }
        }
        "ucc" => {
            let tune = text.lines().find_map(|l| l.strip_prefix("UCC_TL_UCP_TUNE=")).unwrap();
            let size = if of_all { all } else { bytes };
            let token = tune.split('#').find(|t| {
                let p: Vec<&str> = t.split(':').collect();
                let (a, b) = p[1].split_once('-').unwrap();
                let first: u64 = a.parse().unwrap();
                let last = if b == "inf" { u64::MAX } else { b.parse().unwrap() };
                // If two ranges meet at a size, the size belongs to the earlier range, even if the file lacks that
                // range.
                let after = if first == 0 { size >= first } else { size > first };
                p[0] == kind.name() && p[3] == format!("[{ranks}]") && after && size <= last
            });
            token.map_or(String::new(), |t| t.split('@').nth(1).unwrap().to_owned())
        }
        // NCCLX compares the bytes of all ranks divided by the number of ranks.
        "ncclx-csv" => {
            let size = (if of_all { all } else { bytes }) / u64::from(ranks);
            let within = |range: &str, n: u64| {
                let Some(inner) = range.strip_prefix('[') else { return range == "*" || range.parse() == Ok(n) };
                let (low, high) = inner.trim_end_matches([']', ')']).split_once(',').unwrap();
                low.parse::<u64>().unwrap() <= n && (high.is_empty() || n <= high.parse::<u64>().unwrap())
            };
            let rules = text.lines().filter(|l| !l.starts_with('#')).map(|l| {
                // Files have no ranges of nodes, so brackets belong to sizes.
                let (name, rest) = l.split_once(',').unwrap();
                let end = rest.find([']', ')']).map_or_else(|| rest.find(',').unwrap(), |end| end + 1);
                (name, &rest[..end], rest[end + 1..].split(',').collect::<Vec<_>>())
            });
            let mut on_one_node = rules.filter(|(name, bytes, f)| {
                *name == kind.name() && within(bytes, size) && within(f[3], 1) && within(f[4], ranks.into())
            });
            on_one_node.next().map_or(String::new(), |(_, _, f)| f[0].to_owned())
        }
        _ => {
            let size = if of_all { all } else { bytes };
            let line =
                text.lines().filter(|l| !l.starts_with('#')).map(|l| l.split(',').collect::<Vec<_>>()).find(|f| {
                    let n = |at: usize| f[at].parse::<u64>().unwrap();
                    f[0] == kind.name() && n(1) <= size && size <= n(2) && n(7) == u64::from(ranks)
                });
            line.map_or(String::new(), |f| f[3].to_owned())
        }
    }
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let names = prop_oneof![
        Just("ring"),
        Just("recursive-doubling"),
        Just("rabenseifner"),
        Just("bruck"),
        Just("library"),
        Just("elimination")
    ];
    let cell = (
        any::<bool>(),
        prop::sample::select(vec![2u32, 3, 4, 5, 8, 9, 16]),
        prop::collection::vec((1u64..5000, names, any::<bool>()), 1..4),
    );
    prop::collection::vec(cell, 1..6).prop_map(|cells| {
        let mut rows = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for (is_allgather, ranks, pieces) in cells {
            let kind = if is_allgather { Kind::Allgather } else { Kind::Allreduce };
            if !seen.insert((is_allgather, ranks)) {
                continue;
            }
            let (mut at, count) = (0, pieces.len());
            for (n, (len, name, is_gap)) in pieces.into_iter().enumerate() {
                let last = if n + 1 == count && len % 2 == 0 { u64::MAX } else { at + len };
                if !is_gap {
                    rows.push(row(kind, ranks, at, last, name));
                }
                at = last.saturating_add(1);
            }
        }
        rows
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::soak::cases(300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_file_chooses_what_the_table_says(rows in rows()) {
        let table = table(rows);
        for target in TUNINGS {
            let Ok(export) = write(target.name, &table) else { continue };
            let mut ends: Vec<u64> = table.rows().iter().flat_map(|r| [r.first_bytes, r.last_bytes]).collect();
            ends.extend([0, 1, 1 << 20]);
            for kind in [Kind::Allreduce, Kind::Allgather] {
                for ranks in 1..=18 {
                    for bytes in ends.iter().flat_map(|&b| [b.saturating_sub(1), b, b.saturating_add(1)]).filter(|&b| b < 1 << 30) {
                        // UCC's ranges share their ends, so size 0 has no range of its own.
                        if target.name == "ucc" && bytes == 0 {
                            continue;
                        }
                        let class = if kind == Kind::Allreduce { OperatorClass::Commutative } else { OperatorClass::None };
                        // The bounds of a rule of NCCLX are multiples of the number of ranks, so the choice is that for
                        // the bytes rounded down.
                        let is_divided = target.name == "ncclx-csv" && kind == Kind::Allreduce;
                        let meant = if is_divided { bytes - bytes % u64::from(ranks) } else { bytes };
                        let choice = table.find(kind, ranks, None, meant, class).map(|at| &table.rows()[at].choice);
                        let expected = match choice {
                            Some(Choice::Algorithm { name, .. }) => theirs(target.name, kind, ranks, name),
                            _ => "",
                        };
                        let found = look_up(target.name, &export.text, kind, ranks, bytes);
                        prop_assert_eq!(found, expected, "{} {} {} ranks {} bytes\n{}", target.name, kind, ranks, bytes, export.text);
                    }
                }
            }
        }
    }
}

/// `(key, names by id)`: the algorithms of each collective in Open MPI's branch v6.0.x, from the tables `*_algorithms`
/// of `ompi/mca/coll/tuned/coll_tuned_*_decision.c`.
const OPEN_MPI_6: [(&str, &[&str]); 8] = [
    (
        "allgather",
        &[
            "ignore",
            "linear",
            "bruck-k-fanout",
            "recursive_doubling",
            "ring",
            "neighbor",
            "two_proc",
            "sparbit",
            "direct-messaging",
        ],
    ),
    (
        "allreduce",
        &[
            "ignore",
            "basic_linear",
            "nonoverlapping",
            "recursive_doubling",
            "ring",
            "segmented_ring",
            "rabenseifner",
            "allgather_reduce",
        ],
    ),
    ("alltoall", &["ignore", "linear", "pairwise", "modified_bruck", "linear_sync", "two_proc"]),
    ("barrier", &["ignore", "linear", "double_ring", "recursive_doubling", "bruck", "two_proc", "tree"]),
    (
        "bcast",
        &[
            "ignore",
            "basic_linear",
            "chain",
            "pipeline",
            "split_binary_tree",
            "binary_tree",
            "binomial",
            "knomial",
            "scatter_allgather",
            "scatter_allgather_ring",
        ],
    ),
    ("gather", &["ignore", "basic_linear", "binomial", "linear_sync"]),
    (
        "reduce",
        &["ignore", "linear", "chain", "pipeline", "binary", "binomial", "in-order_binary", "rabenseifner", "knomial"],
    ),
    ("reducescatterblock", &["ignore", "basic_linear", "recursive_doubling", "recursive_halving", "butterfly"]),
];

/// Open MPI 6 ignores a rule with a name that it does not have. The number of each algorithm in `openmpi-rules` is the
/// index of its name in `openmpi-json`, and both files state the same parameters.
#[test]
fn names_are_those_of_open_mpi_6() {
    let mut found = std::collections::BTreeSet::new();
    for (algorithm, ranks) in ALGORITHMS.iter().flat_map(|one| [4, 8].map(|ranks| (one, ranks))) {
        let info = algorithm.info();
        let params = ["", " radix=4", " radix=8", " order=levels", " segment=512", " allgather=recursive-doubling"];
        for (&kind, params) in info.collectives.iter().flat_map(|kind| params.map(|params| (kind, params))) {
            let one = table(vec![row(kind, ranks, 0, u64::MAX, &format!("{}{params}", info.name))]);
            let (Ok(rules), json) = (write("openmpi-rules", &one), write("openmpi-json", &one)) else { continue };
            let json: Value = serde_json::from_str(&json.unwrap().text).unwrap();
            let (key, sizes) = json["collectives"].as_object().unwrap().iter().next().unwrap();
            let rule = &sizes[0]["rules"][0];
            let name = rule["alg"].as_str().unwrap();
            let number = |name: &str| rule[name].as_u64().unwrap_or(0);
            let (_, names) = OPEN_MPI_6.iter().find(|(of, _)| of == key).unwrap();
            let id = names.iter().position(|known| *known == name);
            let id = id.unwrap_or_else(|| panic!("{key} has no algorithm {name}"));
            let line = format!("\n{ranks} 1\n0 {id} {} {}\n", number("faninout"), number("seg_size"));
            assert!(rules.text.contains(&line), "{line} is not in {}", rules.text);
            // The loop of k_bruck never ends with the default fan-out, 0 (`coll_base_allgather.c`).
            assert!(name != "bruck-k-fanout" || number("faninout") == 2);
            found.insert((key.clone(), name.to_owned()));
        }
    }
    assert!(found.len() > 20 && OPEN_MPI_6.iter().all(|(key, _)| found.iter().any(|(of, _)| of == key)), "{found:?}");
}

type Names = &'static [(Kind, &'static str)];

/// `(release, bytes of a line, names)`: releases of UCC, the longest line of a file that each reads whole
/// (`src/utils/ini.h`), and the names of an allgather and an allreduce that it adds (`ucc_tl_ucp_*_algs`).
const UCC: [(&str, usize, Names); 5] = [
    ("1.2.0", 199, &[(Kind::Allgather, "ring"), (Kind::Allreduce, "knomial"), (Kind::Allreduce, "sra_knomial")]),
    ("1.3.0", 199, &[(Kind::Allgather, "neighbor")]),
    ("1.4.4", 499, &[(Kind::Allgather, "bruck")]),
    ("1.8.0", 499, &[(Kind::Allreduce, "ring")]),
    ("1.9.0", 8191, &[]),
];

proptest! {
    /// A file for UCC states the oldest release that knows all its names, and the oldest that also reads its lines.
    #[test]
    fn files_for_ucc_state_their_releases(rows in rows()) {
        let Ok(export) = write("ucc", &table(rows)) else { return Ok(()) };
        let line = export.text.lines().find_map(|line| line.strip_prefix("UCC_TL_UCP_TUNE=")).unwrap();
        let knows = |at: usize, token: &str| {
            let names = UCC[..=at].iter().flat_map(|(_, _, names)| *names);
            names.clone().any(|(kind, name)| token.starts_with(kind.name()) && token.ends_with(&format!("@{name}")))
        };
        let longest = export.text.lines().map(str::len).max().unwrap();
        let knowing = (0..UCC.len()).find(|&at| line.split('#').all(|token| knows(at, token))).unwrap();
        let reading = (knowing..UCC.len()).find(|&at| longest <= UCC[at].1).unwrap();
        let note = export.notes.last().unwrap();
        let (knowing, reading) = (UCC[knowing].0, UCC[reading].0);
        prop_assert!(note.contains(&format!("UCC {reading} or newer")), "{}: {}", reading, note);
        prop_assert!(note.ends_with(&format!("UCC {knowing} or newer")), "{}: {}", knowing, note);
        let is_written = export.text.contains(&format!("# {note}\n"));
        prop_assert!(is_written);
    }
}

/// Rows whose line no release of UCC would read are left out, and all other rows are in the file.
#[test]
fn lines_for_ucc_stay_readable() {
    for count in [3, 30, 300] {
        let rows =
            |ranks| [row(Kind::Allreduce, ranks, 0, 4096, "ring"), row(Kind::Allreduce, ranks, 5000, 9000, "ring")];
        let export = write("ucc", &table((2..2 + count).flat_map(rows).collect())).unwrap();
        let line = export.text.lines().find(|line| line.starts_with("UCC_TL_UCP_TUNE=")).unwrap();
        assert!(line.len() < 8192);
        assert_eq!(export.rows, line.split('#').count());
        assert_eq!(export.rows + export.left.len(), 2 * count as usize);
        assert!(export.left.iter().all(|left| left.contains("UCC reads no line of more than 8191 bytes")));
        assert_eq!(export.left.is_empty(), count < 300);
    }
}

#[test]
fn what_has_no_counterpart_is_said() {
    let rows = vec![
        row(Kind::Allreduce, 4, 0, 1024, "elimination"),
        row(Kind::Allreduce, 4, 1025, u64::MAX, "ring"),
        row(Kind::Broadcast, 4, 0, 99, "pipelined-chain segment=8192"),
    ];
    let export = write("openmpi-rules", &table(rows.clone())).unwrap();
    assert_eq!(export.left, ["allreduce on 4 ranks, 0 to 1024 bytes, elimination: it has no counterpart there"]);
    assert_eq!(export.rows, 2);
    assert!(export.text.contains("# allreduce on 4 ranks, 0 to 1024 bytes, elimination: it has no counterpart there"));
    assert!(export.text.contains("\n0 3 0 8192\n100 0 0 0\n"), "{}", export.text);
    assert!(export.notes.iter().any(|n| n.contains("does not commute")));
    assert!(write("openmpi-json", &table(rows)).unwrap().text.contains("\"alg\": \"pipeline\", \"seg_size\": 8192"));
    let unnamed = write("openmpi-rules", &table(vec![row(Kind::Broadcast, 4, 0, 99, "pipelined-chain")])).unwrap();
    assert!(unnamed.text.contains("\n0 3 0 8192\n"), "{}", unnamed.text);
    let chain = ALGORITHMS.iter().find(|a| a.name() == "pipelined-chain").unwrap();
    assert!(chain.info().params.iter().any(|p| p.values.contains("(default: 8192)")));
    let none = write("ucc", &table(vec![row(Kind::Allreduce, 4, 0, 1024, "elimination")])).unwrap_err();
    assert_eq!(
        none,
        "ucc cannot express this table: no row can be expressed; allreduce on 4 ranks, 0 to 1024 bytes, elimination: it has no counterpart there"
    );
}

#[test]
fn mpich_asks_what_its_algorithms_ask() {
    let rows = vec![
        row(Kind::Allreduce, 9, 0, u64::MAX, "recursive-multiplying schedule=a3,a3"),
        row(Kind::Allreduce, 8, 0, u64::MAX, "recursive-multiplying schedule=a2,a4"),
        row(Kind::Allreduce, 4, 0, u64::MAX, "rabenseifner"),
        row(Kind::Gather, 4, 0, u64::MAX, "binomial"),
        row(Kind::Gather, 5, 0, 64, "binomial"),
        row(Kind::Barrier, 4, 0, 0, "dissemination ways=3"),
        row(Kind::Alltoall, 4, 0, u64::MAX, "pairwise"),
    ];
    let export = write("mpich-json", &table(rows)).unwrap();
    let flat: String = export.text.split_whitespace().collect();
    assert!(flat.contains(r#""algorithm=MPIR_Allreduce_intra_recursive_multiplying":{"k=3":{}}"#), "{flat}");
    assert!(
        flat.contains(r#""is_op_built_in=yes":{"avg_msg_size"#)
            || flat.contains(r#""count<pow2":{"algorithm=MPIR_own":{}}"#)
    );
    assert!(flat.contains(r#""algorithm=MPIR_Barrier_intra_k_dissemination":{"k=4":{}}"#));
    assert!(
        flat.contains(r#""is_sendbuf_inplace=no":{"avg_msg_size=any":{"algorithm=MPIR_Alltoall_intra_pairwise":{}}}"#)
    );
    assert!(flat.contains(r#""collective=iallreduce":{"algorithm=MPIR_Allreduce_intra_ring":{}}"#), "the rest stays");
    assert_eq!(export.left.len(), 2, "{:?}", export.left);
    assert!(
        export
            .left
            .iter()
            .any(|l| l.starts_with("allreduce on 8 ranks") && l.contains("schedule=a2,a4 is not one factor"))
    );
    assert!(export.left.iter().any(|l| l.starts_with("gather on 5 ranks") && l.contains("does not distinguish sizes")));
    assert!(export.load.contains(&"MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE=0".to_owned()));
    // A library without the algorithm is refused, because the program would abort later.
    let old = LibraryTable::read(LIBRARY.replace("MPIR_Allgather_intra_brucks", "MPIR_other").as_bytes()).unwrap();
    let mpich = TUNINGS.iter().find(|t| t.name == "mpich-json").unwrap();
    let e = (mpich.write)(&table(vec![row(Kind::Allgather, 4, 0, 9, "bruck")]), Some(&old)).unwrap_err();
    assert!(e.to_string().ends_with("this library has no algorithm MPIR_Allgather_intra_brucks"));
    // The other rows of such a table are written.
    let rows = vec![row(Kind::Allgather, 4, 0, 9, "bruck"), row(Kind::Gather, 4, 0, u64::MAX, "binomial")];
    let some = (mpich.write)(&table(rows), Some(&old)).unwrap();
    assert_eq!(
        (some.rows, some.left),
        (
            1,
            vec![
                "allgather on 4 ranks, 0 to 9 bytes, bruck: this library has no algorithm MPIR_Allgather_intra_brucks"
                    .to_owned()
            ]
        )
    );
    assert!(!some.text.contains("brucks"));
}

/// One algorithm of Unisono has several counterparts in MPICH, by its parameters and by the number of ranks.
#[test]
fn exchanges_of_mpich_have_a_radix_and_an_order() {
    let said = |ranks: u32, algorithm: &str| {
        let export = write("mpich-json", &table(vec![row(Kind::Allgather, ranks, 0, u64::MAX, algorithm)]));
        export.map(|export| export.text.split_whitespace().collect::<String>())
    };
    for (ranks, algorithm, expected) in [
        (6, "recursive-exchange radix=3", r#"recexch_doubling":{"k=3":{},"single_phase_recv=0":{}}"#),
        (6, "recursive-exchange", r#"recexch_doubling":{"k=2":{},"single_phase_recv=0":{}}"#),
        (9, "recursive-exchange radix=4 order=halving", r#"recexch_halving":{"k=4":{},"single_phase_recv=0":{}}"#),
        (6, "recursive-doubling", r#"recexch_doubling":{"k=2":{},"single_phase_recv=0":{}}"#),
        (8, "recursive-doubling", r#"recursive_doubling":{}"#),
    ] {
        let flat = said(ranks, algorithm).unwrap();
        assert!(flat.contains(&format!("\"algorithm=MPIR_Allgather_intra_{expected}")), "{algorithm}: {flat}");
    }
    assert!(said(6, "recursive-exchange radix=1").unwrap_err().contains("cannot be expressed"));
    assert!(said(6, "recursive-exchange order=random").unwrap_err().contains("cannot be expressed"));
}

#[test]
fn ordered_rows_give_way_where_operators_are_not_told_apart() {
    let mut ordered = row(Kind::Allreduce, 4, 0, u64::MAX, "recursive-doubling");
    ordered.class = OperatorClass::Ordered;
    let both = table(vec![ordered.clone(), row(Kind::Allreduce, 4, 4096, u64::MAX, "ring")]);
    let export = write("openmpi-rules", &both).unwrap();
    assert!(export.text.contains("\n0 3 0 0\n4096 4 0 0\n"), "{}", export.text);
    assert!(export.left[0].contains("does not distinguish them"), "{:?}", export.left);
    let mpich = write("mpich-json", &both).unwrap();
    let flat: String = mpich.text.split_whitespace().collect();
    assert!(
        flat.contains(
            r#""is_commutative=no":{"avg_msg_size=any":{"algorithm=MPIR_Allreduce_intra_recursive_doubling":{}}}"#
        ),
        "{flat}"
    );
    assert!(mpich.left.is_empty());
}

#[test]
fn one_common_size_is_enough_to_give_way() {
    for ((first, last), (others_first, others_last), leaves) in [
        ((0, 4096), (4096, u64::MAX), true),
        ((0, 4096), (4097, u64::MAX), false),
        ((4096, u64::MAX), (0, 4096), true),
        ((4096, u64::MAX), (0, 4095), false),
    ] {
        let mut ordered = row(Kind::Allreduce, 4, first, last, "recursive-doubling");
        ordered.class = OperatorClass::Ordered;
        let both = table(vec![ordered, row(Kind::Allreduce, 4, others_first, others_last, "ring")]);
        let export = write("openmpi-rules", &both).unwrap();
        let says = export.left.iter().any(|left| left.contains("does not distinguish them"));
        assert_eq!(says, leaves, "{first} to {last} beside {others_first} to {others_last}: {:?}", export.left);
    }
}

#[test]
fn lines_for_nccl_stay_short() {
    let rows = vec![
        row(Kind::Allreduce, 4, 0, 65_536, "ring protocol=ll channels=2"),
        row(Kind::ReduceScatter, 4, 0, 100, "ring"),
        row(Kind::Allreduce, 4, 65_537, u64::MAX, "ring protocol=ll3"),
    ];
    let export = write("nccl-tuner-csv", &table(rows)).unwrap();
    assert!(export.text.contains("\nallreduce,0,65536,ring,ll,2,-1,4\n"));
    assert!(export.text.contains("\nreducescatter,0,400,ring,simple,0,-1,4\n"));
    assert!(export.text.lines().all(|l| l.len() < 255));
    assert_eq!(
        export.left,
        ["allreduce on 4 ranks, 65537 to any bytes, ring protocol=ll3: its parameter protocol=ll3 cannot be expressed"]
    );
}

#[test]
fn lines_for_nccl_narrow_calls_and_name_switches() {
    let rows = vec![
        row(Kind::Allreduce, 4, 0, 9, "ring pipe-ops=1"),
        row(Kind::Allreduce, 4, 10, 99, "ring registered=1"),
        row(Kind::Allreduce, 4, 100, 199, "ring registered=0 pipe-ops=4"),
        row(Kind::Allreduce, 4, 200, 299, "in-network embeddings=4 chunks=2 channels=8"),
        row(Kind::Allreduce, 4, 300, 399, "in-network protocol=ll"),
        row(Kind::Allreduce, 4, 400, 499, "ring registered=2"),
        row(Kind::Allreduce, 4, 500, 599, "ring pipe-ops=0"),
    ];
    let export = write("nccl-tuner-csv", &table(rows)).unwrap();
    let lines: Vec<&str> = export.text.lines().filter(|l| !l.starts_with('#')).collect();
    let found = [
        "allreduce,0,9,ring,simple,0,-1,4,1",
        "allreduce,10,99,ring,simple,0,-1,4,-1,1",
        "allreduce,100,199,ring,simple,0,-1,4,4,0",
        "allreduce,200,299,nvls,simple,8,-1,4",
    ];
    assert_eq!(lines, found);
    assert_eq!(export.left.len(), 3, "{:?}", export.left);
    assert!(export.left[0].contains("NCCL has nvls with protocol simple, and not with ll"), "{:?}", export.left);
    assert!(export.left[1].contains("registered=2 cannot be expressed"), "{:?}", export.left);
}

#[test]
fn rules_for_ncclx_name_nodes_and_ranks() {
    let rows = vec![
        row(Kind::Allreduce, 6, 0, 65_535, "ring protocol=ll channels=2"),
        row(Kind::Allreduce, 6, 65_536, u64::MAX, "in-network embeddings=2 chunk-size=131072"),
        on(2, row(Kind::Allgather, 4, 0, u64::MAX, "ring protocol=ll128")),
        row(Kind::Allgather, 4, 0, 99, "ring"),
        row(Kind::ReduceScatter, 4, 10, 100, "ring"),
        row(Kind::Broadcast, 4, 5, 7, "pipelined-chain"),
        row(Kind::Reduce, 4, 0, 9, "pipelined-chain pipe-ops=2"),
    ];
    let export = write("ncclx-csv", &table(rows)).unwrap();
    let lines: Vec<&str> = export.text.lines().filter(|l| !l.starts_with('#')).collect();
    let found = [
        "allgather,*,ring,ll128,-1,2,2",
        "allgather,[0,99],ring,simple,-1,1,4",
        "allgather,[0,99],ring,simple,-1,4,1",
        "allreduce,[0,10922],ring,ll,2,1,6",
        "allreduce,[0,10922],ring,ll,2,2,3",
        "allreduce,[0,10922],ring,ll,2,3,2",
        "allreduce,[0,10922],ring,ll,2,6,1",
        "allreduce,[10923,),nvls,simple,-1,1,6,131072",
        "allreduce,[10923,),nvls,simple,-1,2,3,131072",
        "allreduce,[10923,),nvls,simple,-1,3,2,131072",
        "allreduce,[10923,),nvls,simple,-1,6,1,131072",
        "reducescatter,[10,100],ring,simple,-1,1,4",
        "reducescatter,[10,100],ring,simple,-1,2,2",
        "reducescatter,[10,100],ring,simple,-1,4,1",
    ];
    assert_eq!(lines, found);
    assert!(
        export
            .notes
            .iter()
            .any(|n| n == "broadcast on 4 ranks: 5 to 7 bytes have no multiple of 4, so they have no rule"),
        "{:?}",
        export.notes
    );
    assert_eq!(export.left.len(), 1, "{:?}", export.left);
    assert!(export.left[0].contains("its parameter pipe-ops=2 cannot be expressed"), "{:?}", export.left);
}

/// Both tuners accept NCCL's own algorithms, and comments describe only lines that the file has.
#[test]
fn own_algorithms_of_nccl_are_written_for_both_tuners() {
    let of_own = |per_node: Option<u32>| {
        let rows = [
            row(Kind::Allreduce, 16, 0, 262_143, "nccl-tree protocol=ll"),
            row(Kind::Allreduce, 16, 262_144, 1 << 21, "nccl-ring protocol=ll128"),
            row(Kind::Allreduce, 16, (1 << 21) + 1, u64::MAX, "nccl-nvls-tree protocol=simple"),
        ];
        table(rows.map(|row| Row { per_node, ..row }).to_vec())
    };
    let lines = |export: &Export| -> Vec<String> {
        export.text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    let nccl = write("nccl-tuner-csv", &of_own(Some(8))).unwrap();
    let found = [
        "allreduce,0,262143,tree,ll,0,2,16",
        "allreduce,262144,2097152,ring,ll128,0,2,16",
        "allreduce,2097153,18446744073709551615,nvls_tree,simple,0,2,16",
    ];
    assert_eq!(lines(&nccl), found);
    let ncclx = write("ncclx-csv", &of_own(Some(8))).unwrap();
    let found = [
        "allreduce,[0,16383],tree,ll,-1,2,8",
        "allreduce,[16384,131072],ring,ll128,-1,2,8",
        "allreduce,[131073,),nvls_tree,simple,-1,2,8",
    ];
    assert_eq!(lines(&ncclx), found);
    for export in [&nccl, &ncclx] {
        assert!(export.left.is_empty() && export.rows == 3, "{:?}", export.left);
        let is_untrue = |line: &str| {
            ["without protocol=", "lines with -1 nodes", "a chunk-size"].iter().any(|of| line.contains(of))
        };
        assert!(!export.text.lines().any(is_untrue), "{}", export.text);
    }
    let any = write("nccl-tuner-csv", &of_own(None)).unwrap();
    assert!(any.text.contains("# lines with -1 nodes hold") && !any.text.contains("without protocol="), "{}", any.text);
    let silent = write("ncclx-csv", &table(vec![row(Kind::Allreduce, 16, 0, 9, "nccl-ring chunk-size=64")])).unwrap();
    assert!(silent.text.contains("# without protocol=") && silent.text.contains("# a chunk-size"), "{}", silent.text);
}

fn on(per_node: u32, row: Row) -> Row {
    Row { per_node: Some(per_node), ..row }
}

#[test]
fn ranks_per_node_are_said_where_the_file_can() {
    let rows = vec![
        on(8, row(Kind::Allreduce, 8, 0, 99, "ring")),
        on(4, row(Kind::Allreduce, 8, 0, u64::MAX, "ring")),
        on(1, row(Kind::Allreduce, 8, 100, u64::MAX, "ring")),
    ];
    let json = write("openmpi-json", &table(rows.clone())).unwrap();
    let file: Value = serde_json::from_str(&json.text).unwrap();
    let communicators = file["collectives"]["allreduce"].as_array().unwrap();
    let found: Vec<_> = communicators
        .iter()
        .map(|c| (c["comm_rank_distribution"].as_str(), c["rules"][0]["msg_size_min"].as_u64().unwrap()))
        .collect();
    // Open MPI distinguishes only one node and one rank a node. The row for four ranks a node is written last, for any
    // placement.
    assert_eq!(found, [(Some("single-node"), 0), (Some("one-per-node"), 0), (None, 0)]);
    assert!(json.notes.iter().any(|n| n.contains("was chosen for 4 ranks a node")), "{:?}", json.notes);

    let nccl = write("nccl-tuner-csv", &table(rows.clone())).unwrap();
    let lines: Vec<&str> = nccl.text.lines().filter(|l| !l.starts_with('#')).collect();
    let nodes: Vec<&str> = lines.iter().map(|l| l.split(',').nth(6).unwrap()).collect();
    assert_eq!(nodes, ["1", "2", "8"], "{lines:?}");

    // In other files, the rows with the most ranks per node serve all placements.
    for target in ["openmpi-rules", "mpich-json", "ucc"] {
        let export = write(target, &table(rows.clone())).unwrap();
        assert_eq!((export.rows, export.left.len()), (1, 2), "{target}: {:?}", export.left);
        assert!(export.notes.iter().any(|n| n.contains("was chosen for 8 ranks a node")), "{target}");
    }
    // If there are rows for any placement, only those are written.
    let any = row(Kind::Allreduce, 8, 0, 9, "recursive-doubling");
    let export = write("openmpi-rules", &table(vec![any, rows[0].clone()])).unwrap();
    assert_eq!((export.rows, export.left.len()), (1, 1));
    assert!(export.left[0].contains("cannot express ranks per node"), "{:?}", export.left);
}

/// A parameter with its default value means the same as no parameter, in every format and for every collective.
#[test]
fn stated_defaults_change_no_file() {
    let mut stated = std::collections::BTreeSet::new();
    for (target, algorithm) in TUNINGS.iter().flat_map(|target| ALGORITHMS.iter().map(move |one| (target, one))) {
        let info = algorithm.info();
        // The default parts of this composition differ from those that libraries choose, so a row with stated defaults
        // has no counterpart.
        if info.name == "reduce-broadcast" {
            continue;
        }
        for (kind, param, ranks) in info
            .collectives
            .iter()
            .flat_map(|&kind| info.params.iter().flat_map(move |param| [8, 12].map(|ranks| (kind, param, ranks))))
        {
            let Some(default) = param.values.rsplit_once("(default: ").and_then(|(_, text)| text.strip_suffix(')'))
            else {
                continue;
            };
            let text = |words: &str| write(target.name, &table(vec![row(kind, ranks, 64, 4096, words)]));
            if let Ok(usual) = text(info.name)
                && usual.rows > 0
                && !default.contains(' ')
            {
                let found = text(&format!("{} {}={default}", info.name, param.name));
                let rows = found.as_ref().map(|export| export.rows);
                assert_eq!(rows, Ok(usual.rows), "{} {kind} {} {}={default}", target.name, info.name, param.name);
                assert_eq!(found.unwrap().text, usual.text);
                stated.insert((target.name, info.name, param.name));
            }
        }
    }
    assert!(stated.contains(&("openmpi-rules", "scatter-allgather", "allgather")), "{stated:?}");
    assert!(stated.len() > 8, "{stated:?}");
}

#[test]
fn a_scatter_and_an_allgather_by_doubling_need_a_power_of_two() {
    let of = |target, ranks| {
        let words = "scatter-allgather allgather=recursive-doubling";
        write(target, &table(vec![row(Kind::Broadcast, ranks, 64, 4096, words)])).map(|export| export.rows)
    };
    assert_eq!(of("openmpi-rules", 8), Ok(1));
    assert!(of("openmpi-rules", 12).is_err());
}
