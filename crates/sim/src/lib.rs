//! Simulators. They run what others chose, and choose nothing.

pub mod collective_engine;
pub mod endpoint;
pub mod fabric;
pub mod network;
mod queue;
