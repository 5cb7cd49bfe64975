//! A list of cables in the syntax of a `graph`. All nodes are accelerators unless the options state their number. Nodes
//! may have names instead of numbers, which the options list in the order of their numbers.

use super::{Format, ImportOptions, Network, Refusal, network};
use crate::network::catalog::{parse, parse_named};

pub const FORMAT: Format = Format { name: "edges", read };

/// The assumed rate of a cable that states no rate.
const ASSUMED_GBPS: f64 = 100.0;

fn read(text: &str, options: &ImportOptions) -> Result<Network, Refusal> {
    if options.boxes != 1 {
        return Err("boxes repeat a topology of NCCL; a list of cables names all nodes".to_owned().into());
    }
    let edges = match options.names {
        Some(names) => parse_named(text, names)?,
        None => parse(text)?,
    };
    let Some(last) = edges.iter().map(|edge| edge.a.max(edge.b)).max() else {
        return Err("the file has no cables; a cable is a line 'A B'".to_owned().into());
    };
    let accelerators = options.accelerators.unwrap_or(last + 1);
    let mut topology = toml::Table::new();
    topology.insert("name".to_owned(), "graph".into());
    topology.insert("accelerators".to_owned(), i64::from(accelerators).into());
    match options.names {
        Some(names) => {
            let numbered: String = edges.iter().map(|edge| format!("{edge}\n")).collect();
            topology.insert("edges".to_owned(), numbered.into());
            topology.insert("names".to_owned(), names.to_vec().into());
        }
        None => {
            topology.insert("edges".to_owned(), text.into());
        }
    }
    let summary = format!("{accelerators} accelerators, from a list of cables; what no line states is assumed");
    let mut made = network(options, summary, ASSUMED_GBPS, topology);
    let bare = edges.iter().filter(|edge| edge.gbps.is_none() && edge.measured.is_none()).count();
    if bare > 0 {
        let of = edges.len();
        made.notes.push(format!(
            "{bare} of the {of} lines of cables state no rate and have {ASSUMED_GBPS} Gb/s; add gbps=RATE to them"
        ));
    }
    if options.accelerators.is_none() {
        made.notes.push(format!(
            "all {accelerators} nodes of the list count as accelerators; if some are switches, number these last and give \
             --accelerators N for the nodes before them"
        ));
    }
    Ok(made)
}
