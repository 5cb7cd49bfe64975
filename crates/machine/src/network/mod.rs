//! Networks: topologies with their routing and price, one file each, and the numbers of their links and packets.

mod accelerator_grid;
pub mod allocate;
mod boards;
mod catalog;
pub mod cut;
pub mod deadlock;
mod description;
mod facts;
mod lattice;
mod plane;
mod routing;
mod spread;
mod topology;

pub use accelerator_grid::AcceleratorGrid;
pub use boards::Boards;
pub use catalog::FAMILIES;
pub use description::{Network, Prices};
pub use facts::{Cables, Facts, PlaneFacts};
pub use plane::{Cable, Link, Plane, PlaneBuilder};
pub use routing::{Header, Hop, Routing};
pub use topology::{Bill, Family, SWITCH_PORTS, Topology};
