//! Topologies against what a plane itself says: breadth-first search, least cuts, and every channel of every routing.

mod faults;
mod hxmesh;
mod oracle;
mod torus;
