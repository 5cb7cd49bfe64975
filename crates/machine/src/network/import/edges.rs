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
    if is_matrix_of_kinds(text) {
        let message = "it is the output of 'nvidia-smi topo -m', which states the kinds of links between GPUs and no \
                       rates; run a program of NCCL on all GPUs with NCCL_TOPO_DUMP_FILE=topo.xml, and import topo.xml";
        return Err(message.to_owned().into());
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
    if options.accelerators.is_none() {
        made.notes.push(format!(
            "all {accelerators} nodes of the list count as accelerators; if some are switches, number these last and give \
             --accelerators N for the nodes before them"
        ));
    }
    Ok(made)
}

/// Returns whether a text is the matrix of `nvidia-smi topo -m`: its first two lines that are not blank begin with
/// names of GPUs.
fn is_matrix_of_kinds(text: &str) -> bool {
    let names = text.lines().map(|line| line.split_whitespace().next().unwrap_or_default());
    let is_gpu = |name: &str| name.strip_prefix("GPU").is_some_and(|number| number.parse::<u32>().is_ok());
    names.filter(|name| !name.is_empty()).take(2).filter(|name| is_gpu(name)).count() == 2
}
