//! Plans on machines whose switches reduce: in the network, by one embedding or several, against algorithms on the cores.

mod planner;
mod report;
mod request;

pub use planner::{InNetworkPlan, plan_in_network};
pub use report::in_network_bounds;
pub use request::{InNetworkRequest, Part};
