//! What every topology answers, and the registry of those there are.

use std::fmt;

use serde::Serialize;

use super::{Plane, Routing, catalog};
use crate::MachineError;

/// What one plane is made of, as a bill counts it: every cabled port, also those that the simulated plane leaves unused.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Bill {
    pub switches: u64,
    pub dac: u64,
    pub aoc: u64,
}

/// A topology of a given size; one plane of it.
pub trait Topology: Send + Sync + fmt::Debug {
    /// Of its family: `hxmesh`, `torus`.
    fn name(&self) -> &'static str;

    fn accelerators(&self) -> u32;

    /// Links that an accelerator has into the plane; their bandwidth is its injection.
    fn ports(&self) -> u32;

    fn bill(&self) -> Bill;

    /// The most cables between two accelerators, by shortest paths; ways on a board count as cables.
    fn diameter(&self) -> u32;

    /// Bandwidth over the smallest cut into halves, over the injection bandwidth of one half.
    fn bisection_share(&self) -> f64;

    /// Accelerators are numbered row-major over these extents, where the topology has such an order; a line otherwise.
    fn extents(&self) -> Vec<u32> {
        vec![self.accelerators()]
    }

    /// # Errors
    /// It is larger than the tables hold.
    fn plane(&self) -> Result<Plane, MachineError>;

    /// The routing of the plane that [`Topology::plane`] gives.
    fn routing(&self) -> Box<dyn Routing>;
}

/// Reads the table of a machine file; the second argument opens the message of an error.
pub type Read = fn(&toml::Table, &str) -> Result<Box<dyn Topology>, MachineError>;

/// A family of topologies, by name.
pub struct Family {
    pub name: &'static str,
    pub summary: &'static str,
    pub reference: &'static str,
    /// Keys of its table in a machine file.
    pub keys: &'static [&'static str],
    pub read: Read,
}

/// Sorted by name.
pub const FAMILIES: &[Family] = &[catalog::torus::FAMILY];
