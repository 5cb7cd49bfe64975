//! Plans among ranks that reach each other by messages: the same algorithms registry, times in seconds.

mod planner;
mod ranked;
mod report;
mod request;
mod stored;
mod sweep;

pub use planner::{EndpointPlan, plan_endpoint};
pub use ranked::{Source, Timed};
pub(crate) use ranked::{build, ranked, time_all};
pub use report::{
    EndpointBoundReport, EndpointCandidate, EndpointPrediction, EndpointReport, endpoint_bounds, predict_endpoint,
};
pub(crate) use report::{Told, bound_report};
pub use request::EndpointRequest;
pub(crate) use request::endpoint_model;
pub(crate) use stored::store_best;
pub use stored::stored;
pub use sweep::{EndpointPoint, endpoint_sweep_point};
pub(crate) use sweep::{Sweep, sweep_point};
