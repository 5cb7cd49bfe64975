//! Plans among ranks that reach each other by messages: the same algorithms registry, times in seconds.

mod planner;
mod report;
mod request;
mod stored;
mod sweep;

pub(crate) use planner::build;
pub use planner::{EndpointPlan, Source, Timed, plan_endpoint};
pub use report::{
    EndpointBoundReport, EndpointCandidate, EndpointPrediction, EndpointReport, endpoint_bounds, predict_endpoint,
};
pub use request::EndpointRequest;
pub(crate) use stored::store_best;
pub use stored::stored;
pub use sweep::{EndpointPoint, endpoint_sweep_point};
pub(crate) use sweep::{Sweep, sweep_point};
