//! Simulators. They run what others chose, and choose nothing.

pub mod endpoint;
pub mod fabric;
pub mod network;
mod queue;
