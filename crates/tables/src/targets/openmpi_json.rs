//! The JSON rules file of Open MPI 6's `coll/tuned`, `rule_file_version` 3.
//!
//! The first matching rule applies, of communicators and then of messages, both with inclusive ends; if none matches,
//! the library chooses. Open MPI ignores a rule with an unknown name. `docs/tuning-apps/tuned_dynamic_file_schema.json`
//! states the keys, and allows no comments. Source: `ompi/mca/coll/tuned/coll_tuned_dynamic_file.c` of the main branch;
//! no release that reads this form was run.

use std::fmt::Write;

use unisono_collective::DecisionTable;

use crate::{
    Export, LibraryTable, Tuning, Unsaid,
    openmpi::{COLLECTIVES, LOAD, PARAMS, Size, bytes, id, notes, view},
    region::any_operator,
};

const NAME: &str = "openmpi-json";

/// Returns whether `comm_rank_distribution` can express the placement of two or more ranks: one rank per node, or one
/// node.
fn can_say(ranks: u32, per_node: u32) -> bool {
    ranks > 1 && (per_node == 1 || per_node == ranks)
}

pub const TUNING: Tuning = Tuning {
    name: NAME,
    summary: "rules of Open MPI's coll/tuned for 6.x",
    reference: "Open MPI, tuned_dynamic_file_schema.json; docs/export.md",
    params: PARAMS,
    write,
    ..Tuning::PLAIN
};

fn write(table: &DecisionTable, _: Option<&LibraryTable>) -> Result<Export, Unsaid> {
    let mut view = view(NAME, table, can_say);
    let (mut collectives, mut used) = (Vec::new(), Vec::new());
    for known in COLLECTIVES {
        let mut sizes = Vec::new();
        for (ranks, per_node) in view.placed_ranks(known.kind) {
            let mut rules = Vec::new();
            for region in view.regions_on(known.kind, ranks, per_node, any_operator(known.kind)) {
                let Some((name, settings)) = &region.algorithm else { continue };
                if id(known.kind, name).is_none() {
                    return Err(Unsaid { target: NAME, reason: format!("{} has no algorithm {name}", known.key) });
                }
                used.push((known.kind, *name));
                let mut rule = String::from("{ ");
                if known.size != Size::None {
                    let last = bytes(known, region.last, ranks);
                    let last = if last == u64::MAX { "\"inf\"".to_owned() } else { last.to_string() };
                    let first = bytes(known, region.first, ranks);
                    let _ = write!(rule, "\"msg_size_min\": {first}, \"msg_size_max\": {last}, ");
                }
                let _ = write!(rule, "\"alg\": \"{name}\"");
                for (key, value) in settings {
                    let key = if *key == "segment" { "seg_size" } else { key };
                    let _ = write!(rule, ", \"{key}\": {value}");
                }
                rules.push(rule + " }");
            }
            if !rules.is_empty() {
                let nodes = per_node.map_or(String::new(), |n| {
                    let name = if n == 1 { "one-per-node" } else { "single-node" };
                    format!("\"comm_rank_distribution\": \"{name}\", ")
                });
                sizes.push(format!(
                    "      {{ \"comm_size_min\": {ranks}, \"comm_size_max\": {ranks}, {nodes}\"rules\": [\n        {}\n      ] }}",
                    rules.join(",\n        ")
                ));
            }
        }
        if !sizes.is_empty() {
            collectives.push(format!("    \"{}\": [\n{}\n    ]", known.key, sizes.join(",\n")));
        }
    }
    let mut export = view.export(
        LOAD,
        notes(&used, "reports this, and rules that it ignores, only with '--mca coll_tuned_verbose 1'"),
    )?;
    export.notes.push("Open MPI 5 and older ignore this form in silence: use openmpi-rules there".to_owned());
    let text = format!(
        "{{\n  \"rule_file_version\": 3,\n  \"module\": \"tuned\",\n  \"collectives\": {{\n{}\n  }}\n}}\n",
        collectives.join(",\n")
    );
    Ok(Export { text, ..export })
}
