//! What collectives take on a network whose links are shared: closed forms and schedules, routed over its plane, and lower
//! bounds.

pub mod bounds;
mod loads;
mod model;
mod schedule;

pub use bounds::{NETWORK_BOUNDS, NetworkBound, NetworkCase, tightest_network};
pub use model::NetworkModel;
