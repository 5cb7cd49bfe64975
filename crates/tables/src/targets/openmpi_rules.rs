//! The classic rules file of Open MPI's `coll/tuned`, version 1, which 4.x and 5.x read.
//!
//! ```text
//! file := NCOL coll{NCOL}      coll := COLL_ID NCOMM comm{NCOMM}
//! comm := COMM_SIZE NMSG msg{NMSG}      msg := MSG_BYTES ALG FANINOUT SEGSIZE      # ALG 0: fixed rules
//! ```
//!
//! A communicator uses the rules of the largest COMM_SIZE up to its own size. If all COMM_SIZEs are larger, it uses the
//! rules of the first one (seen with 5.0.11). So rules with the library's own choice (ALG 0) are written for size 0
//! and, for each rank count P of the table, for P + 1 unless the table has rows for P + 1. A version line would only
//! allow a maximum of requests, which no algorithm of Unisono sets, and releases before 5.0.7 do not accept the line.
//! Source: `ompi/mca/coll/tuned/coll_tuned_dynamic_file.c`; names and sizes in `openmpi`.

use std::fmt::Write;

use unisono_collective::DecisionTable;

use crate::{
    Export, LibraryTable, Tuning, Unsaid,
    openmpi::{COLLECTIVES, IDS, Known, LOAD, PARAMS, by_size, bytes, head, id, notes, view},
    region::{Region, no_nodes},
};

const NAME: &str = "openmpi-rules";

pub const TUNING: Tuning = Tuning {
    name: NAME,
    summary: "rules of Open MPI's coll/tuned for 4.x and 5.x",
    reference: "Open MPI, coll_tuned_dynamic_file.c; docs/export.md",
    params: PARAMS,
    write,
    ..Tuning::PLAIN
};

fn write(table: &DecisionTable, _: Option<&LibraryTable>) -> Result<Export, Unsaid> {
    let mut view = view(NAME, table, no_nodes);
    let (mut collectives, mut used) = (Vec::new(), Vec::new());
    for known in COLLECTIVES {
        let sizes = by_size(&mut view, known, 0);
        let named = || sizes.iter().flat_map(|(_, regions)| regions).filter_map(|r| r.algorithm.as_ref());
        used.extend(named().map(|(name, _)| (known.kind, *name)));
        if named().any(|(name, _)| id(known.kind, name).is_some()) {
            collectives.push(of_collective(known, &sizes));
        }
    }
    let mut export =
        view.export(LOAD, notes(&used, "only a debug build reports this, with '--mca coll_base_verbose 1'"))?;
    export.notes.push(
        "Open MPI 6 reads the communicator sizes of this form shifted by one rule: use openmpi-json there".to_owned(),
    );
    let head = head("Rules for coll/tuned of Open MPI 4 and 5", &export);
    let text = format!("{head}{} # collectives\n{}", collectives.len(), collectives.concat());
    check(&text).map_err(|reason| Unsaid { target: NAME, reason })?;
    Ok(Export { text, ..export })
}

fn of_collective(known: &Known, sizes: &[(u32, Vec<Region>)]) -> String {
    let mut text = format!("{} # {}\n{} # communicator sizes\n", known.id, known.key, sizes.len());
    for (ranks, regions) in sizes {
        let _ = writeln!(text, "{ranks} {}", regions.len());
        for Region { first, algorithm, .. } in regions {
            let (algorithm, [fanout, segment]) = algorithm.as_ref().map_or((0, ["0", "0"]), |(name, settings)| {
                let value = |name| settings.iter().find(|(key, _)| *key == name).map_or("0", |(_, value)| value);
                (id(known.kind, name).unwrap_or(0), ["faninout", "segment"].map(value))
            });
            let _ = writeln!(text, "{} {algorithm} {fanout} {segment}", bytes(known, *first, *ranks));
        }
    }
    text
}

/// Reads the text as the library does, and checks that counts are right, communicator sizes ascend, message sizes
/// ascend from 0, and ids exist.
fn check(text: &str) -> Result<(), String> {
    let plain = text.lines().map(|l| l.split('#').next().unwrap_or_default());
    let mut numbers = plain.flat_map(str::split_whitespace).map(str::parse::<u64>);
    let mut next = || numbers.next().and_then(Result::ok).ok_or_else(|| "a number is missing".to_owned());
    for _ in 0..next()? {
        let coll = next()?;
        let known = COLLECTIVES.iter().find(|k| u64::from(k.id) == coll).ok_or_else(|| format!("collective {coll}"))?;
        let mut size = None;
        for _ in 0..next()? {
            let found = next()?;
            if size.is_some_and(|s| s >= found) {
                return Err(format!("communicator sizes {found} of {} do not ascend", known.key));
            }
            size = Some(found);
            let mut first = None;
            for _ in 0..next()? {
                let (found, algorithm, _, _) = (next()?, next()?, next()?, next()?);
                if first.map_or(found != 0, |f| f >= found) {
                    return Err(format!(
                        "message sizes of {} on {} ranks do not ascend from 0",
                        known.key,
                        size.unwrap_or(0)
                    ));
                }
                first = Some(found);
                let ids = IDS.iter().filter(|i| i.0 == known.kind).map(|i| u64::from(i.2));
                if !ids.chain([0]).any(|id| id == algorithm) {
                    return Err(format!("algorithm {algorithm} of {} is not known", known.key));
                }
            }
        }
    }
    if numbers.next().is_some() { Err("numbers are left over".to_owned()) } else { Ok(()) }
}
