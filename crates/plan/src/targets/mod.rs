//! The kinds of machines that plans are made for. One file each, registered in [`TARGETS`].

mod endpoint;
mod in_network;
mod network;
mod wafer;

use unisono_algorithms::{Info, Means};

use crate::{Asked, Part, PlanError, Target};

/// Opens a part of a machine.
pub type Open = fn(&Asked) -> Option<Result<Box<dyn Target>, PlanError>>;

/// A kind of machine that plans are made for.
pub struct TargetKind {
    /// As machine files name it.
    pub name: &'static str,
    /// The means of communication that parts of such machines offer.
    pub offers: &'static [Means],
    /// Opens the part of a machine that is asked for; `None` for a machine of another kind.
    pub open: Open,
}

impl TargetKind {
    /// Returns whether parts of such machines offer what an algorithm needs.
    pub fn runs(&self, algorithm: &Info) -> bool {
        algorithm.needs.iter().any(|means| self.offers.contains(means))
    }
}

/// Sorted by name.
pub const TARGETS: &[TargetKind] = &[endpoint::KIND, in_network::KIND, network::KIND, wafer::KIND];

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
