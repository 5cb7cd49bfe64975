//! Equal boxes of accelerators, joined by shared switches: servers of a cluster.
//!
//! `inside` lists the cables of one box as a [`super::graph`] does: nodes below `accelerators` are its accelerators,
//! all others its own switches and network interfaces. `uplinks` lists cables from a node of every box to a shared
//! switch, `A S`, and `outside` cables between shared switches, which are numbered from 0. Accelerators are numbered
//! box by box, followed by the other nodes of the boxes, box by box, and the shared switches. Routing is that of a
//! graph.

use std::collections::BTreeSet;

use serde::Deserialize;
use unisono_base::limits;

use super::{
    super::{BoxNumbers, Family, Speed, Topology, topology},
    graph::{self, Edge, Graph, Rule, Wiring},
};
use crate::MachineError;

pub const FAMILY: Family = Family {
    name: "boxes",
    summary: "equal boxes of any cables, joined by shared switches",
    reference: "NVIDIA DGX SuperPOD reference architecture; ForestColl, 2024",
    keys: &["boxes", "accelerators", "inside", "uplinks", "outside", "routing", "root"],
    jobs: Some("boxes"),
    read,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    boxes: u32,
    /// The number of accelerators of one box.
    accelerators: u32,
    inside: String,
    #[serde(default)]
    uplinks: String,
    #[serde(default)]
    outside: String,
    #[serde(default)]
    routing: Rule,
    root: Option<u32>,
}

const CABLE_BYTES: u128 = size_of::<Edge>() as u128;

fn read(table: &toml::Table, origin: &str, own: Speed) -> Result<Box<dyn Topology>, MachineError> {
    let Keys { boxes, accelerators, inside, uplinks, outside, routing, root } = topology::parse(table, origin)?;
    let all = topology::accelerators(&[boxes, accelerators], origin)?;
    let refused = |message: String| topology::refused(origin, message);
    let lines = |key: &str, text: &str| {
        graph::parse(text).map_err(|message| topology::refused(&format!("{origin}, {key}"), message))
    };
    let [inside, uplinks, outside] =
        [lines("inside", &inside)?, lines("uplinks", &uplinks)?, lines("outside", &outside)?];
    let found = u64::from(boxes) * (inside.len() + uplinks.len()) as u64 + outside.len() as u64;
    limits::admit("the list of the cables of all boxes", CABLE_BYTES * u128::from(found), u128::from(found))?;
    let of_box = graph::nodes_of(&inside, accelerators);
    if let Some(edge) = uplinks.iter().find(|edge| edge.a >= of_box) {
        let last = of_box - 1;
        return Err(refused(format!("an uplink begins at node {}; the nodes of a box are 0 to {last}", edge.a)));
    }
    let others = u64::from(of_box - accelerators);
    let first_shared = u64::from(all) + u64::from(boxes) * others;
    let last_shared = uplinks.iter().map(|edge| edge.b).chain(outside.iter().flat_map(|edge| [edge.a, edge.b])).max();
    if let Some(last) = last_shared {
        let named = uplinks.iter().map(|edge| edge.b).chain(outside.iter().flat_map(|edge| [edge.a, edge.b]));
        let named: BTreeSet<u32> = named.collect();
        if let Some((gap, _)) = (0..=last).zip(&named).find(|(at, name)| at != *name) {
            return Err(refused(format!(
                "uplinks and outside name shared switch {last} and not {gap}; shared switches are numbered from 0 there, \
                 without gaps"
            )));
        }
    }
    graph::check_size(first_shared + last_shared.map_or(0, |last| u64::from(last) + 1), all).map_err(refused)?;
    let numbers = BoxNumbers { boxes, accelerators, nodes: of_box };
    let (place, shared) = (|of: u32, at: u32| numbers.place(of, at), |at: u32| numbers.shared(at));
    let mut edges = Vec::new();
    for of in 0..boxes {
        edges.extend(inside.iter().map(|edge| Edge { a: place(of, edge.a), b: place(of, edge.b), ..*edge }));
        edges.extend(uplinks.iter().map(|edge| Edge { a: place(of, edge.a), b: shared(edge.b), ..*edge }));
    }
    edges.extend(outside.iter().map(|edge| Edge { a: shared(edge.a), b: shared(edge.b), ..*edge }));
    let graph =
        Graph::wired(&Wiring { accelerators: all, edges: &edges, names: None, own, rule: routing, root }, origin)?;
    // The extents are the number of boxes and the number of accelerators in a box.
    let extents = if boxes > 1 { vec![boxes, accelerators] } else { vec![accelerators] };
    Ok(Box::new(graph.of_family(FAMILY.name, extents).of_boxes(numbers)))
}
