//! Topologies, one a file.

pub mod torus;
