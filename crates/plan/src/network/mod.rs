//! Plans on networks: the algorithms among ranks, timed by what their messages put on the links.

mod planner;
mod report;
mod request;

pub use planner::{NetworkPlan, network_sweep_point, plan_network};
pub use report::network_bounds;
pub use request::NetworkRequest;
