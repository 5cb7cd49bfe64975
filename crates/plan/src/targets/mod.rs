//! The kinds of machines that plans are made for. One file each, registered in [`TARGETS`].

mod endpoint;
mod in_network;
mod network;
mod wafer;

use crate::{Asked, Part, PlanError, Target};

/// Opens the part of a machine that is asked for; `None` for a machine of another kind.
pub type Open = fn(&Asked) -> Option<Result<Box<dyn Target>, PlanError>>;

/// Sorted by the name of the kind.
pub(crate) const TARGETS: &[Open] = &[endpoint::open, in_network::open, network::open, wafer::open];

pub(crate) use network::prices;

/// A part that the kind of machine does not have.
fn no_part(asked: &Asked, accepted: &'static str) -> PlanError {
    let part = match &asked.part {
        Part::All => "the whole machine".to_owned(),
        Part::Shape(shape) => format!("shape {shape}"),
        Part::Nodes(nodes) => format!("a subset of {} nodes", nodes.len()),
        Part::Places(places) => format!("a list of {} accelerators", places.len()),
    };
    PlanError::Part { part, machine: asked.machine.name().to_owned(), accepted }
}
