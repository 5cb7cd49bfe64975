//! Networks: topologies with their routing and price, one file each, and the numbers of their links and packets.

pub mod allocate;
mod boards;
mod catalog;
pub mod deadlock;
mod description;
mod plane;
mod routing;
mod spread;
mod topology;

pub use boards::Boards;
pub use description::{Network, Prices};
pub use plane::{Cable, Link, Plane, PlaneBuilder};
pub use routing::{Header, Hop, Routing};
pub use topology::{Bill, FAMILIES, Family, SWITCH_PORTS, Topology};
