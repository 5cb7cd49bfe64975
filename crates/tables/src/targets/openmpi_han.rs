//! The rules file of Open MPI's `coll/han`, which leaves the calls of a table's rows to `coll/tuned`.
//!
//! Open MPI prefers `coll/han` to `coll/tuned` on communicators of several nodes with several ranks each, so that rules
//! of [`super::openmpi_rules`] have no effect there. This file makes those rules effective, and leaves all other calls
//! to `coll/han`.
//!
//! ```text
//! file := NCOL coll{NCOL}      coll := COLL_ID NLEVEL level{NLEVEL}      level := LEVEL NCOMM comm{NCOMM}
//! comm := COMM_SIZE NMSG msg{NMSG}      msg := MSG_BYTES COMPONENT      # LEVEL 2: the program's communicator
//! ```
//!
//! A call uses the rule of the largest COMM_SIZE and MSG_BYTES that do not exceed its own; the first COMM_SIZE must be
//! 1 and the first MSG_BYTES 0. COMPONENT is a name; the head of `coll_han_dynamic_file.h` describes a number, which
//! 5.0.11 refused in a run.
//! Source: `ompi/mca/coll/han/coll_han_dynamic_file.c`, `coll_han_dynamic.c`; 5.0.11 was run.

use std::fmt::Write;

use unisono_collective::{DecisionTable, Kind};

use crate::{
    Export, LibraryTable, Tuning, Unsaid,
    openmpi::{COLLECTIVES, Known, by_size, head, view},
    region::{Region, View, no_nodes},
};

const NAME: &str = "openmpi-han";
/// The collectives of [`COLLECTIVES`] that `coll/han` implements.
const TAKEN: &[Kind] = &[Kind::Allgather, Kind::Allreduce, Kind::Barrier, Kind::Broadcast, Kind::Gather, Kind::Reduce];
const LEVEL: u32 = 2;

pub const TUNING: Tuning = Tuning {
    name: NAME,
    summary: "rules of Open MPI's coll/han for 5.x, beside openmpi-rules",
    reference: "Open MPI, coll_han_dynamic_file.c; docs/export.md",
    write,
    ..Tuning::PLAIN
};

fn write(table: &DecisionTable, _: Option<&LibraryTable>) -> Result<Export, Unsaid> {
    let mut view = view(NAME, table, no_nodes);
    let mut rules = Vec::new();
    for known in COLLECTIVES.iter().filter(|k| TAKEN.contains(&k.kind)) {
        rules.extend(of_collective(&mut view, known));
    }
    for known in COLLECTIVES.iter().filter(|k| !TAKEN.contains(&k.kind)) {
        for ranks in view.ranks(known.kind) {
            view.leave_all(known.kind, ranks, "coll/han does not take this collective, and coll/tuned needs no rule");
        }
    }
    let load = &["--mca coll_han_use_dynamic_file_rules 1", "--mca coll_han_dynamic_rules_filename FILE"];
    let notes = vec![
        "this file only leaves calls to coll/tuned: load it beside the file of openmpi-rules for the same table, and \
         without '--mca coll_han_priority 0'"
            .to_owned(),
        "coll/han ignores a file that it cannot read, and reports this only with '--mca coll_base_verbose 5'"
            .to_owned(),
    ];
    let export = view.export(load, notes)?;
    let head = head("Rules for coll/han of Open MPI 5", &export);
    // The rules themselves have no comments, because the library refuses a comment before a name.
    Ok(Export { text: format!("{head}{}\n{}", rules.len(), rules.concat()), ..export })
}

/// Returns the rules of a collective; `None` if the table has no algorithm for it.
fn of_collective(view: &mut View<'_>, known: &Known) -> Option<String> {
    let sizes = by_size(view, known, 1);
    if !sizes.iter().flat_map(|(_, regions)| regions).any(|region| region.algorithm.is_some()) {
        return None;
    }
    let mut text = format!("{}\n1\n{LEVEL}\n{}\n", known.id, sizes.len());
    for (size, regions) in sizes {
        let _ = writeln!(text, "{size} {}", regions.len());
        for Region { first, algorithm, .. } in regions {
            let _ = writeln!(text, "{first} {}", if algorithm.is_some() { "tuned" } else { "han" });
        }
    }
    Some(text)
}
