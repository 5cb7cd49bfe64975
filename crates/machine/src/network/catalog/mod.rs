//! Topologies, one in each file; the registry is [`FAMILIES`].

mod boxes;
mod dragonfly;
mod fattree;
mod graph;
mod hxmesh;
mod hypercube;
mod hyperx;
mod mesh;
mod torus;

pub(super) use graph::{Edge, Graph, Way, nodes_of, parse, parse_named, text_of_edges};

use super::Family;

/// All families of topologies, sorted by name.
pub const FAMILIES: &[Family] = &[
    boxes::FAMILY,
    dragonfly::FAMILY,
    fattree::FAMILY,
    graph::FAMILY,
    hxmesh::FAMILY,
    hypercube::FAMILY,
    hyperx::FAMILY,
    mesh::FAMILY,
    torus::FAMILY,
];
