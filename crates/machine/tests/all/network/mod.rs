//! Topologies compared with their planes: breadth-first search, least cuts, and every channel of every routing.

mod accelerator_grid;
mod allocate {
    mod jobs;
    mod place;
    mod space;
    mod traffic;
}
mod boards;
mod boxes;
mod cut;
mod dragonfly;
mod failures;
mod fattree;
mod faults;
mod graph;
mod hxmesh;
mod hypercube;
mod hyperx;
mod import;
mod joined;
mod mesh;
mod oracle;
mod part_names;
mod planes;
mod presets;
mod table2;
mod torus;
mod wiring;
