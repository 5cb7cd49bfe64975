//! Lines for NCCL's example tuner plugin.
//!
//! ```text
//! coll,min_bytes,max_bytes,algo,proto,channels,nNodes,nRanks[,numPipeOps[,regBuff]]      first match wins, -1: any
//! ```
//!
//! The plugin reads an unknown name as `allreduce` or `ring`, so names are checked here. NCCL counts the bytes of all
//! ranks for an allgather and a reduce-scatter (`ncclFuncMaxSendRecvCount`). A row may choose protocol and channels by
//! parameters `protocol=` and `channels=`, and restrict the calls by `pipe-ops=` and `registered=`.
//!
//! With -1 channels the plugin keeps its default of one channel; with 0, NCCL chooses the number itself. So a row
//! without `channels=` is written with 0.
//! Source: NCCL 2.30, `plugins/tuner/example/plugin.c`, `ncclGetAlgoInfo` in `src/enqueue.cc`, and
//! `src/graph/tuning.cc`.

use std::ops::RangeInclusive;

use unisono_collective::{Choice, DecisionTable, Kind, Row};

use crate::{
    Export, LibraryTable, Spread, Tuning, Unsaid,
    region::{Counterpart, Settings, Translate, View, any_operator, of_all},
};

const NAME: &str = "nccl-tuner-csv";
pub(super) const PROTOCOLS: &[&str] = &["ll", "ll128", "simple"];
const MOST_CHANNELS: u64 = 64;
/// The maximum number of calls of one group (`numPipeOps`), which the plugin reads as an `int`.
const MOST_PIPE_OPS: u64 = i32::MAX as u64;
/// The maximum number of bytes of a line, for the plugin's buffer of 256.
const LONGEST: usize = 254;

/// `(kind, NCCL's name, true if NCCL compares the bytes of all ranks)`, sorted by name.
pub(super) const COLLECTIVES: &[(Kind, &str, bool)] = &[
    (Kind::Allgather, "allgather", true),
    (Kind::Allreduce, "allreduce", false),
    (Kind::Broadcast, "broadcast", false),
    (Kind::Reduce, "reduce", false),
    (Kind::ReduceScatter, "reducescatter", true),
];

/// Returns the counterparts in NCCL. A target translates parameters by `settings`, or by `in_switches` for algorithms
/// that have only the protocol simple: all except rings and trees.
///
/// NCCL's ring broadcast and reduce are pipelined chains around the ring. The names `nccl-*` are NCCL's own algorithms,
/// which occur in tables that were filled by NCCL's own cost model.
pub(super) const fn names(settings: Translate, in_switches: Translate) -> [Counterpart; NAMED.len()] {
    let mut all = [Counterpart { kind: Kind::Allreduce, ours: "", theirs: "", settings }; NAMED.len()];
    let mut at = 0;
    while at < all.len() {
        let (kind, ours, theirs, has_protocols) = NAMED[at];
        all[at] = Counterpart { kind, ours, theirs, settings: if has_protocols { settings } else { in_switches } };
        at += 1;
    }
    all
}

/// `(collective, our name, NCCL's name, true if it has all protocols)`: first the algorithms of this catalog, then
/// NCCL's own.
const NAMED: [(Kind, &str, &str, bool); 21] = [
    (Kind::Allgather, "ring", "ring", true),
    (Kind::Allreduce, "in-network", "nvls", false),
    (Kind::Allreduce, "ring", "ring", true),
    (Kind::Broadcast, "pipelined-chain", "ring", true),
    (Kind::Reduce, "pipelined-chain", "ring", true),
    (Kind::ReduceScatter, "ring", "ring", true),
    (Kind::Allgather, "nccl-collnet-direct", "collnet_direct", false),
    (Kind::Allgather, "nccl-nvls", "nvls", false),
    (Kind::Allgather, "nccl-pat", "pat", false),
    (Kind::Allgather, "nccl-ring", "ring", true),
    (Kind::Allreduce, "nccl-collnet-chain", "collnet_chain", false),
    (Kind::Allreduce, "nccl-collnet-direct", "collnet_direct", false),
    (Kind::Allreduce, "nccl-nvls", "nvls", false),
    (Kind::Allreduce, "nccl-nvls-tree", "nvls_tree", false),
    (Kind::Allreduce, "nccl-ring", "ring", true),
    (Kind::Allreduce, "nccl-tree", "tree", true),
    (Kind::Broadcast, "nccl-ring", "ring", true),
    (Kind::Reduce, "nccl-ring", "ring", true),
    (Kind::ReduceScatter, "nccl-nvls", "nvls", false),
    (Kind::ReduceScatter, "nccl-pat", "pat", false),
    (Kind::ReduceScatter, "nccl-ring", "ring", true),
];

const NAMES: &[Counterpart] = &names(settings, in_switches);

/// Returns the note about rows without `protocol=`; `None` if every row with an algorithm states a protocol.
pub(super) fn without_protocol(table: &DecisionTable) -> Option<String> {
    let is_silent = |row: &Row| match &row.choice {
        Choice::Algorithm { params, .. } => params.iter().all(|(name, _)| name != "protocol"),
        Choice::Library => false,
    };
    let found = table.rows().iter().any(is_silent);
    found.then(|| "without protocol= the protocol is simple, which is slow for short messages".to_owned())
}

/// Translates parameters: the protocol, the channels, which are `any` if not stated, and `further` parameters of a
/// target, each a number of a range.
pub(super) fn translated(
    params: &[(String, String)],
    any: &str,
    further: &[(&'static str, RangeInclusive<u64>)],
) -> Result<Settings, String> {
    let mut found = vec![("protocol", "simple".to_owned()), ("channels", any.to_owned())];
    for (name, value) in params {
        let within = |range: &RangeInclusive<u64>| value.parse::<u64>().is_ok_and(|number| range.contains(&number));
        match name.as_str() {
            "protocol" if PROTOCOLS.contains(&value.as_str()) => found[0].1.clone_from(value),
            "channels" if within(&(1..=MOST_CHANNELS)) => found[1].1.clone_from(value),
            // NCCL chooses the segments of its messages itself.
            "segment" => {}
            _ => match further.iter().find(|(key, range)| key == name && within(range)) {
                Some(&(key, _)) => found.push((key, value.clone())),
                None => return Err(format!("its parameter {name}={value} cannot be expressed")),
            },
        }
    }
    Ok(found)
}

fn settings(params: &[(String, String)], _: u32) -> Result<Settings, String> {
    translated(params, "0", &[("pipe-ops", 1..=MOST_PIPE_OPS), ("registered", 0..=1)])
}

fn in_switches(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    by_switches(params, |own| settings(own, ranks))
}

/// Translates the parameters of an algorithm that NCCL has only with the protocol simple, such as NVLS, which sums in
/// NVSwitches. NCCL chooses trees and chunks itself.
pub(super) fn by_switches(
    params: &[(String, String)],
    settings: impl FnOnce(&[(String, String)]) -> Result<Settings, String>,
) -> Result<Settings, String> {
    let own = |name: &str| !matches!(name, "embeddings" | "chunks");
    let found = settings(&params.iter().filter(|(name, _)| own(name)).cloned().collect::<Vec<_>>())?;
    match found.iter().find(|(key, value)| *key == "protocol" && value != "simple") {
        Some((_, protocol)) => Err(format!("NCCL has nvls with protocol simple, and not with {protocol}")),
        None => Ok(found),
    }
}

/// Returns the reason why NCCL skips its counterpart of an algorithm; `None` if NCCL runs it. NCCL disables NVLS on
/// more than one node without CollNet, which sums in the network (`ncclTopoTuneModel` in `src/graph/tuning.cc`).
pub(super) fn skipped(kind: Kind, algorithm: &str, spread: Spread) -> Option<String> {
    let is_nvls = NAMES.iter().any(|n| (n.kind, n.ours, n.theirs) == (kind, algorithm, "nvls"));
    (is_nvls && spread.boxes > 1 && !spread.network_reduces).then(|| {
        format!(
            "NCCL skips nvls on {} nodes whose network does not reduce (CollNet), and switches between these boxes only \
             forward",
            spread.boxes
        )
    })
}

/// Returns the reason why no tuner chooses for a collective of NCCL; `None` if a tuner may.
pub(super) fn untuned(kind: Kind) -> Option<String> {
    match kind {
        _ if COLLECTIVES.iter().any(|row| row.0 == kind) => None,
        Kind::Alltoall | Kind::Gather | Kind::Scatter => Some(format!(
            "NCCL runs {kind} as one group of ncclSend and ncclRecv, among which no tuner chooses; drop --for, or ask for \
             the time of the group with --as nccl"
        )),
        _ => Some(format!("NCCL has no {kind}, so no tuner chooses for it; drop --for")),
    }
}

/// Returns a table under the names of NCCL. A line states the number of nodes, so all nodes must have equal numbers of
/// ranks.
pub(super) fn view<'a>(target: &'static str, table: &DecisionTable, names: &'static [Counterpart]) -> View<'a> {
    let whole_nodes = |ranks: u32, per_node| ranks.is_multiple_of(per_node);
    View::new(target, table, names, false, whole_nodes, None, COLLECTIVES.iter().map(|c| c.0))
}

pub const TUNING: Tuning = Tuning {
    name: NAME,
    summary: "lines for NCCL's example tuner plugin",
    reference: "NCCL, plugins/tuner/example; docs/export.md",
    skips: skipped,
    lacks: untuned,
    write,
    ..Tuning::PLAIN
};

fn write(table: &DecisionTable, _: Option<&LibraryTable>) -> Result<Export, Unsaid> {
    let mut view = view(NAME, table, NAMES);
    let mut lines = Vec::new();
    for &(kind, name, of_all_ranks) in COLLECTIVES {
        for (ranks, per_node) in view.placed_ranks(kind) {
            let nodes = per_node.map_or("-1".to_owned(), |n| (ranks / n).to_string());
            for region in view.regions_on(kind, ranks, per_node, any_operator(kind)) {
                let Some((algorithm, settings)) = &region.algorithm else { continue };
                let size = |bytes| if of_all_ranks { of_all(bytes, ranks) } else { bytes };
                let value = |key| settings.iter().find(|(k, _)| *k == key).map_or("-1", |(_, v)| v.as_str());
                let narrowed = match (value("pipe-ops"), value("registered")) {
                    ("-1", "-1") => String::new(),
                    (calls, "-1") => format!(",{calls}"),
                    (calls, registered) => format!(",{calls},{registered}"),
                };
                lines.push(format!(
                    "{name},{},{},{algorithm},{},{},{nodes},{ranks}{narrowed}",
                    size(region.first),
                    size(region.last),
                    value("protocol"),
                    value("channels")
                ));
            }
        }
    }
    let of_any = |line: &String| line.split(',').nth(6) == Some("-1");
    let mut notes: Vec<String> = Vec::new();
    notes.extend(lines.iter().any(of_any).then(|| "lines with -1 nodes hold for any number of them".to_owned()));
    notes.extend(without_protocol(table));
    notes.extend([
        "calls that no line serves run on one channel, which is the plugin's choice where it finds no line".to_owned(),
        "checked through the plugin's interface, and not run on a GPU".to_owned(),
    ]);
    let load = &["NCCL_TUNER_PLUGIN=libnccl-tuner-example.so", "NCCL_TUNER_CONFIG_FILE=FILE"];
    let export = view.export(load, notes)?;
    let mut text = String::new();
    let comment = std::iter::once("Lines for NCCL's example tuner plugin (plugins/tuner/example).")
        .chain(export.notes.iter().chain(&export.left).map(String::as_str));
    for line in comment {
        // The plugin would read a longer line as two lines, and the second would not be a comment.
        let line: String = line.chars().take(LONGEST - 8).collect();
        text.push_str(&format!("# {line}\n"));
    }
    for line in &lines {
        check(line).map_err(|reason| Unsaid { target: NAME, reason })?;
        text.push_str(&format!("{line}\n"));
    }
    Ok(Export { text, ..export })
}

/// Reads a line as the plugin does, and refuses unknown names.
fn check(line: &str) -> Result<(), String> {
    let fields: Vec<&str> = line.split(',').collect();
    let wrong = |what: &str| Err(format!("the line '{line}' has a wrong {what}"));
    let [coll, first, last, algorithm, protocol, ref numbers @ ..] = fields[..] else {
        return wrong("number of fields");
    };
    if !(3..=5).contains(&numbers.len()) {
        return wrong("number of fields");
    }
    if !COLLECTIVES.iter().any(|c| c.1 == coll) {
        return wrong("collective");
    }
    let bytes = |text: &str| text.parse::<u64>().ok();
    if bytes(first).zip(bytes(last)).is_none_or(|(a, b)| a > b) {
        return wrong("size");
    }
    if !NAMES.iter().any(|n| n.theirs == algorithm) || !PROTOCOLS.contains(&protocol) {
        return wrong("algorithm or protocol");
    }
    if numbers.iter().any(|n| n.parse::<i32>().is_err()) || line.len() > LONGEST {
        return wrong("number");
    }
    Ok(())
}
