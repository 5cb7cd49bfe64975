//! The rules file of Open MPI's `coll/han`, which leaves the calls of a table's rows to `coll/tuned`.
//!
//! `coll/han` comes before `coll/tuned` on communicators of several nodes with several ranks each, so that rules of
//! [`super::openmpi_rules`] have no effect there. This file, beside those rules, leaves to `coll/han` all other calls.
//!
//! ```text
//! file := NCOL coll{NCOL}      coll := COLL_ID NLEVEL level{NLEVEL}      level := LEVEL NCOMM comm{NCOMM}
//! comm := COMM_SIZE NMSG msg{NMSG}      msg := MSG_BYTES COMPONENT      # LEVEL 2: the program's communicator
//! ```
//!
//! The rules of the largest COMM_SIZE and MSG_BYTES up to those of a call count; the first of each has to be 1 and 0.
//! COMPONENT is a name; the head of `coll_han_dynamic_file.h` describes a number, which 5.0.11 refuses (seen).
//! Source: `ompi/mca/coll/han/coll_han_dynamic_file.c`, `coll_han_dynamic.c`; 5.0.11 was run.

use std::fmt::Write;

use unisono_collective::{DecisionTable, Kind};

use crate::tuning::{
    Export, LibraryTable, Tuning, Unsaid,
    openmpi::{COLLECTIVES, Known, NAMES, Size},
    region::{Region, View, any_operator, no_nodes},
};

pub struct OpenmpiHan;

const NAME: &str = "openmpi-han";
/// The collectives that `coll/han` takes. It compares the bytes of one rank.
const TAKEN: &[Kind] = &[Kind::Allgather, Kind::Allreduce, Kind::Barrier, Kind::Broadcast, Kind::Gather, Kind::Reduce];
/// The level of the program's communicator.
const LEVEL: u32 = 2;

impl Tuning for OpenmpiHan {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "rules of Open MPI's coll/han for 5.x, beside openmpi-rules"
    }

    fn reference(&self) -> &'static str {
        "Open MPI, coll_han_dynamic_file.c; docs/export.md"
    }

    fn write(&self, table: &DecisionTable, _: Option<&LibraryTable>) -> Result<Export, Unsaid> {
        let mut view = View::new(NAME, table, NAMES, false, no_nodes, None);
        view.leave_others(&COLLECTIVES.iter().map(|k| k.kind).collect::<Vec<_>>());
        let taken = COLLECTIVES.iter().filter(|k| TAKEN.contains(&k.kind));
        let rules: Vec<String> = taken.filter_map(|known| of_collective(&mut view, known)).collect();
        for known in COLLECTIVES.iter().filter(|k| !TAKEN.contains(&k.kind)) {
            for ranks in view.ranks(known.kind) {
                view.leave_all(
                    known.kind,
                    ranks,
                    "coll/han does not take this collective, and coll/tuned needs no rule",
                );
            }
        }
        let (rows, left, placed) = view.finish()?;
        let load = vec![
            "--mca coll_han_use_dynamic_file_rules 1".to_owned(),
            "--mca coll_han_dynamic_rules_filename FILE".to_owned(),
        ];
        let mut notes = vec![
            "this file only leaves calls to coll/tuned: load it beside the file of openmpi-rules for the same table, and \
             without '--mca coll_han_priority 0'"
                .to_owned(),
            "coll/han ignores a file that it cannot read, and reports this only with '--mca coll_base_verbose 5'"
                .to_owned(),
        ];
        notes.extend(placed);
        let mut text =
            format!("# Rules for coll/han of Open MPI 5. Load them with\n#   mpiexec {} ...\n", load.join(" "));
        notes.iter().chain(&left).for_each(|n| {
            let _ = writeln!(text, "# {n}");
        });
        // The library reads no comment before a name.
        let _ = write!(text, "{}\n{}", rules.len(), rules.concat());
        Ok(Export { text, load, notes, left, rows })
    }
}

/// Returns the rules of a collective; `None` if no row serves it.
fn of_collective(view: &mut View<'_>, known: &Known) -> Option<String> {
    let own = || vec![(0, "han")];
    let mut sizes = vec![(1, own())];
    let counts = view.ranks(known.kind);
    for &ranks in counts.iter().filter(|&&ranks| ranks > 1) {
        let regions = view.regions(known.kind, ranks, any_operator(known.kind));
        // Without a size to compare only the first rule counts.
        let kept = if known.size == Size::None { &regions[..1] } else { &regions[..] };
        let component = |r: &Region| if r.algorithm.is_some() { "tuned" } else { "han" };
        sizes.push((ranks, kept.iter().map(|r| (r.first, component(r))).collect()));
        let after = ranks.checked_add(1).filter(|after| !counts.contains(after));
        sizes.extend(after.map(|after| (after, own())));
    }
    if !sizes.iter().any(|(_, rules)| rules.iter().any(|rule| rule.1 == "tuned")) {
        return None;
    }
    let mut text = format!("{}\n1\n{LEVEL}\n{}\n", known.id, sizes.len());
    for (size, rules) in sizes {
        let _ = writeln!(text, "{size} {}", rules.len());
        for (first, component) in rules {
            let _ = writeln!(text, "{first} {component}");
        }
    }
    Some(text)
}
