//! Plans among ranks that reach each other by messages: the same algorithms registry, times in seconds.

mod planner;
mod report;
mod request;
mod stored;
mod sweep;

pub use planner::{EndpointPlan, Timed, plan_endpoint};
pub use report::{EndpointPrediction, EndpointReport, endpoint_bounds, predict_endpoint};
pub use request::EndpointRequest;
pub use stored::stored;
pub use sweep::{EndpointPoint, endpoint_sweep_point};
