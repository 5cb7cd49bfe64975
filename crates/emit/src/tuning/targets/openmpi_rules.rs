//! The classic rules file of Open MPI's `coll/tuned`, version 1, which 4.x and 5.x read.
//!
//! ```text
//! file := NCOL coll{NCOL}      coll := COLL_ID NCOMM comm{NCOMM}
//! comm := COMM_SIZE NMSG msg{NMSG}      msg := MSG_BYTES ALG FANINOUT SEGSIZE      # ALG 0: fixed rules
//! ```
//!
//! A communicator takes the rules of the largest COMM_SIZE up to its own, and a smaller one than all takes the first
//! rules (5.0.11, seen). So rules of the library's own stand at 0 and behind every rank count of the table. A version
//! line is needed for the number of requests only, which no algorithm here sets, and releases before 5.0.7 do not know
//! it.
//! Source: `ompi/mca/coll/tuned/coll_tuned_dynamic_file.c`; names and sizes in `openmpi`.

use std::fmt::Write;

use unisono_collective::{DecisionTable, Kind};

use crate::tuning::{
    Export, LibraryTable, Tuning, Unsaid,
    openmpi::{COLLECTIVES, Known, NAMES, Size, bytes, id, notes},
    region::{Region, View, any_operator, no_nodes},
};

pub struct OpenmpiRules;

const NAME: &str = "openmpi-rules";

/// Rules of one communicator size: `(first bytes, algorithm, segment)`.
type Rules = (u32, Vec<(u64, u32, String)>);
/// Rules of a collective.
type OfCollective = (&'static Known, Vec<Rules>);

impl Tuning for OpenmpiRules {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "rules of Open MPI's coll/tuned for 4.x and 5.x"
    }

    fn reference(&self) -> &'static str {
        "Open MPI, coll_tuned_dynamic_file.c; docs/export.md"
    }

    fn write(&self, table: &DecisionTable, _: Option<&LibraryTable>) -> Result<Export, Unsaid> {
        let mut view = View::new(NAME, table, NAMES, false, no_nodes, None);
        let (collectives, used) = rules(&mut view);
        let (rows, left, placed) = view.finish()?;
        let load = vec![
            "--mca coll_tuned_use_dynamic_rules 1".to_owned(),
            "--mca coll_tuned_dynamic_rules_filename FILE".to_owned(),
        ];
        let mut notes = notes(&used);
        notes.extend(placed);
        notes.push(
            "Open MPI 6 reads the communicator sizes of this form shifted by one rule: use openmpi-json there"
                .to_owned(),
        );
        let mut text = String::new();
        let _ = writeln!(text, "# Rules for coll/tuned of Open MPI 4 and 5. Load them with");
        let _ = writeln!(text, "#   mpiexec {} ...", load.join(" "));
        notes.iter().chain(&left).for_each(|n| {
            let _ = writeln!(text, "# {n}");
        });
        let _ = writeln!(text, "{} # collectives", collectives.len());
        for (known, sizes) in &collectives {
            let _ = writeln!(text, "{} # {}\n{} # communicator sizes", known.id, known.key, sizes.len());
            for (size, rules) in sizes {
                let _ = writeln!(text, "{size} {}", rules.len());
                for (first, algorithm, segment) in rules {
                    let _ = writeln!(text, "{first} {algorithm} 0 {segment}");
                }
            }
        }
        check(&text).map_err(|reason| Unsaid { target: NAME, reason })?;
        Ok(Export { text, load, notes, left, rows })
    }
}

fn rules(view: &mut View<'_>) -> (Vec<OfCollective>, Vec<(Kind, &'static str)>) {
    let (mut all, mut used) = (Vec::new(), Vec::new());
    view.leave_others(&COLLECTIVES.iter().map(|k| k.kind).collect::<Vec<_>>());
    for known in COLLECTIVES {
        let own = || vec![(0, 0, "0".to_owned())];
        let mut sizes: Vec<Rules> = vec![(0, own())];
        let counts = view.ranks(known.kind);
        for &ranks in &counts {
            let regions = view.regions(known.kind, ranks, any_operator(known.kind));
            used.extend(regions.iter().filter_map(|r| r.algorithm.as_ref()).map(|(name, _)| (known.kind, *name)));
            let rule = |r: &Region| {
                let (algorithm, segment) = match &r.algorithm {
                    None => (0, "0".to_owned()),
                    Some((name, settings)) => {
                        let segment = settings.iter().find(|(key, _)| *key == "segment");
                        (id(known.kind, name).unwrap_or(0), segment.map_or("0".to_owned(), |s| s.1.clone()))
                    }
                };
                (bytes(known, r.first, ranks), algorithm, segment)
            };
            // Without a size to compare only the first rule counts.
            let kept = if known.size == Size::None { &regions[..1] } else { &regions[..] };
            sizes.push((ranks, kept.iter().map(rule).collect()));
            // More ranks than the last count that a file can name need no row.
            let after = ranks.checked_add(1).filter(|after| !counts.contains(after));
            sizes.extend(after.map(|after| (after, own())));
        }
        if sizes.iter().any(|(_, rules)| rules.iter().any(|r| r.1 != 0)) {
            all.push((known, sizes));
        }
    }
    (all, used)
}

/// Reads the text as the library does: every count is met, sizes ascend, the first size of all is 0, ids exist.
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
                let ids = crate::tuning::openmpi::IDS.iter().filter(|i| i.0 == known.kind).map(|i| u64::from(i.2));
                if !ids.chain([0]).any(|id| id == algorithm) {
                    return Err(format!("algorithm {algorithm} of {} is not known", known.key));
                }
            }
        }
    }
    if numbers.next().is_some() { Err("numbers are left over".to_owned()) } else { Ok(()) }
}
