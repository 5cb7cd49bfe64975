//! Topologies, one a file; the registry is [`FAMILIES`].

mod dragonfly;
mod fattree;
mod graph;
mod hxmesh;
mod hypercube;
mod hyperx;
mod mesh;
mod torus;

use super::Family;

/// Sorted by name.
pub const FAMILIES: &[Family] = &[
    dragonfly::FAMILY,
    fattree::FAMILY,
    graph::FAMILY,
    hxmesh::FAMILY,
    hypercube::FAMILY,
    hyperx::FAMILY,
    mesh::FAMILY,
    torus::FAMILY,
];
