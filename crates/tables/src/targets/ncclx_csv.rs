//! Rules for the tuner that is built into NCCLX, Meta's NCCL.
//!
//! ```text
//! collective,bytesPerRank,algorithm,protocol,channels,nNodes,nLocalRanks[,chunkSize]      first match wins
//! ```
//!
//! `bytesPerRank`, `nNodes` and `nLocalRanks` are a number, an interval such as `[0,4)` or `[8,)`, or `*`. NCCLX
//! compares the bytes of a call divided by its ranks, rounded down. For an allgather and a reduce-scatter this is the
//! size of a row; for other collectives, a rule begins at a multiple of the number of ranks and ends just before a
//! multiple.
//!
//! The first release had ten fields, with `numPipeOps` and `regBuff` before `chunkSize`; since July 2026 there are
//! eight. Both releases read the first seven fields in the same way, so the eighth is written only for rows with
//! `chunk-size=`. A file with one wrong line, such as a line of names, keeps the communicator from starting.
//!
//! Source: meta-pytorch/torchcomms, `comms/ncclx/meta/tuner` (`ConfigParse.h`, `CsvConfigParse.h`, `Int64Range.cc`,
//! `MetaTuner.cc`) at commit 59426ba4, and pull requests 2911, 3044 and 3045.

use unisono_collective::DecisionTable;

use super::nccl_tuner_csv::{
    COLLECTIVES, PROTOCOLS, by_switches, names, skipped, translated, untuned, view, without_protocol,
};
use crate::{
    Export, LibraryTable, Tuning, Unsaid,
    region::{Counterpart, Settings, any_operator},
};

const NAME: &str = "ncclx-csv";
/// The largest size: NCCLX reads sizes as signed numbers of 64 bits.
const LARGEST: u64 = i64::MAX as u64;

const NAMES: &[Counterpart] = &names(settings, in_switches);

fn settings(params: &[(String, String)], _: u32) -> Result<Settings, String> {
    translated(params, "-1", &[("chunk-size", 1..=LARGEST)])
}

fn in_switches(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    by_switches(params, |own| settings(own, ranks))
}

/// Returns the numbers of ranks per node that divide `ranks`, largest first.
fn divisors(ranks: u32) -> Vec<u32> {
    let small = (1..=ranks.isqrt()).filter(|&n| ranks.is_multiple_of(n));
    let mut all: Vec<u32> = small.flat_map(|n| [n, ranks / n]).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup();
    all
}

/// Returns the field of the interval of whole numbers whose products with `divisor` are in `first ..= last`; `None` if
/// no such number is at most [`LARGEST`].
fn interval(first: u64, last: u64, divisor: u64) -> Option<String> {
    let (from, to) = (first.div_ceil(divisor), if last == u64::MAX { u64::MAX } else { last / divisor });
    match (from, to) {
        (from, to) if from > to || from > LARGEST => None,
        (0, to) if to >= LARGEST => Some("*".to_owned()),
        (from, to) if to >= LARGEST => Some(format!("[{from},)")),
        (from, to) => Some(format!("[{from},{to}]")),
    }
}

pub const TUNING: Tuning = Tuning {
    name: NAME,
    summary: "rules for the tuner that is built into NCCLX",
    reference: "meta-pytorch/torchcomms, comms/ncclx/meta/tuner; docs/export.md",
    skips: skipped,
    lacks: untuned,
    write,
    ..Tuning::PLAIN
};

fn write(table: &DecisionTable, _: Option<&LibraryTable>) -> Result<Export, Unsaid> {
    let mut view = view(NAME, table, NAMES);
    let (mut lines, mut narrow) = (Vec::new(), Vec::new());
    for &(kind, name, of_all_ranks) in COLLECTIVES {
        for ranks in view.ranks(kind) {
            let placements = view.placements(kind, ranks);
            for &per_node in &placements {
                // A rule states the number of nodes and of ranks per node. So a row for any placement becomes one rule
                // for each number of ranks per node that divides the ranks and has no row of its own.
                let others = || divisors(ranks).into_iter().filter(|&n| !placements.contains(&Some(n)));
                let all: Vec<u32> = per_node.map_or_else(|| others().collect(), |n| vec![n]);
                for region in view.regions_on(kind, ranks, per_node, any_operator(kind)) {
                    let Some((algorithm, settings)) = &region.algorithm else { continue };
                    let divisor = if of_all_ranks { 1 } else { ranks.into() };
                    let Some(bytes) = interval(region.first, region.last, divisor) else {
                        let (first, last) = (region.first, region.last);
                        narrow.push(format!(
                            "{kind} on {ranks} ranks: {first} to {last} bytes have no multiple of {ranks}, so they have no rule"
                        ));
                        continue;
                    };
                    let value = |key| settings.iter().find(|(k, _)| *k == key).map(|(_, v)| v.as_str());
                    let chunk = value("chunk-size").map_or_else(String::new, |size| format!(",{size}"));
                    for n in &all {
                        lines.push(format!(
                            "{name},{bytes},{algorithm},{},{},{},{n}{chunk}",
                            value("protocol").unwrap_or("simple"),
                            value("channels").unwrap_or("-1"),
                            ranks / n
                        ));
                    }
                }
            }
        }
    }
    let mut notes = vec![
        "sizes of allreduce, broadcast and reduce are compared after a division by the ranks: a range ends up to one \
         byte a rank later than in the table"
            .to_owned(),
    ];
    notes.extend(without_protocol(table));
    // The chunk size is the eighth field.
    let has_chunk = |line: &String| fields(line).len() > 7;
    notes.extend(
        lines
            .iter()
            .any(has_chunk)
            .then(|| "a chunk-size needs NCCLX of July 2026 or later, and its version 2.30".to_owned()),
    );
    notes.push("checked by a reader of the same rules, and not run on a GPU".to_owned());
    notes.extend(narrow);
    let export = view.export(&["NCCLX_TUNER_CONFIG_FILE=FILE"], notes)?;
    let mut text = format!("# Rules for the tuner of NCCLX (NCCLX_TUNER_CONFIG_FILE).\n{}", export.comments());
    for line in &lines {
        check(line).map_err(|reason| Unsaid { target: NAME, reason })?;
        text.push_str(&format!("{line}\n"));
    }
    Ok(Export { text, ..export })
}

/// Returns the fields of a line. Commas inside brackets do not separate fields.
fn fields(line: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    line.split(move |character| {
        match character {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
    .collect()
}

/// Returns whether a field is a number, an interval or `*`, as the tuner reads it.
fn is_range(field: &str) -> bool {
    let number = |text: &str| text.parse::<i64>().ok();
    let Some(inner) = field.strip_prefix(['[', '(']).and_then(|rest| rest.strip_suffix([']', ')'])) else {
        return field == "*" || number(field).is_some();
    };
    let Some((low, high)) = inner.split_once(',') else { return false };
    let is_open = low.is_empty() || high.is_empty();
    let is_bound = |text: &str| text.is_empty() || number(text).is_some();
    is_bound(low) && is_bound(high) && (is_open || number(low) <= number(high))
}

/// Reads a line as the tuner does, and refuses unknown names.
fn check(line: &str) -> Result<(), String> {
    let fields = fields(line);
    let wrong = |what: &str| Err(format!("the line '{line}' has a wrong {what}"));
    let [collective, bytes, algorithm, protocol, channels, nodes, local, ref chunk @ ..] = fields[..] else {
        return wrong("number of fields");
    };
    if chunk.len() > 1 {
        return wrong("number of fields");
    }
    if !COLLECTIVES.iter().any(|c| c.1 == collective) {
        return wrong("collective");
    }
    if ![bytes, nodes, local].into_iter().all(is_range) {
        return wrong("range");
    }
    if !NAMES.iter().any(|n| n.theirs == algorithm) || !PROTOCOLS.contains(&protocol) {
        return wrong("algorithm or protocol");
    }
    let is_size = |text: &&str| text.parse::<i64>().is_ok_and(|size| size >= 0);
    if channels.parse::<i32>().is_err() || !chunk.iter().all(is_size) {
        return wrong("number");
    }
    Ok(())
}
