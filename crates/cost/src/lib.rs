//! Cost: the terms of any placed schedule, models that make times of them, and lower bounds. Nothing is simulated.

mod bound;
pub mod bounds;
pub mod endpoint;
pub mod in_network;
mod measure;
pub mod models;
pub mod network;

pub use bound::LowerBound;
pub use bounds::{BOUNDS, Bound, BoundCase, tightest};
pub use measure::{PhaseLines, measure};
pub use models::{Evaluator, MODELS, Model, find_model};
