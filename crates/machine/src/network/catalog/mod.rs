//! Topologies, one a file.

pub mod hxmesh;
pub mod torus;
