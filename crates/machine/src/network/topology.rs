//! What every topology answers, and the registry of those there are.

use std::fmt;

use serde::{Serialize, de::DeserializeOwned};
use unisono_base::{
    keyed::{self, with_nearest},
    narrow,
};

use super::{Boards, BoxNumbers, Plane, Routing, Speed, cut::Cut};
use crate::{MachineError, machine::of_value};

/// What one plane is made of, as a bill counts it: every cabled port, also those that the simulated plane leaves
/// unused.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Bill {
    pub switches: u64,
    pub dac: u64,
    pub aoc: u64,
    /// Of the largest switch; what has more ports than [`SWITCH_PORTS`] cannot be bought.
    pub switch_ports: u32,
}

/// Of the switch that the price list has: "HammingMesh", section 5.
pub const SWITCH_PORTS: u32 = 64;

/// Nodes are numbered in 32 bits, and tables of larger planes would not fit a usual machine.
const MOST_ACCELERATORS: u64 = 1 << 24;

/// A topology of a given size; one plane of it.
pub trait Topology: Send + Sync + fmt::Debug {
    /// Of its family: `hxmesh`, `torus`.
    fn name(&self) -> &'static str;

    fn accelerators(&self) -> u32;

    /// Links that an accelerator has into the plane, the most where accelerators differ; their bandwidth is its
    /// injection.
    fn ports(&self) -> u32;

    /// Returns the rate of all links of an accelerator over the machine's own rate of one link: the least and the most
    /// of all accelerators.
    fn injection(&self) -> [f64; 2] {
        [f64::from(self.ports()); 2]
    }

    /// Returns the speeds of links that have another speed than the machine's own, with the number of their cables.
    fn unlike(&self) -> Vec<(Speed, u64)> {
        Vec::new()
    }

    fn bill(&self) -> Bill;

    /// The most cables between two accelerators, by shortest paths; ways on a board count as cables.
    fn diameter(&self) -> u32;

    /// Returns a cut into halves, or nearly: the least where sizes are even. Nothing where no form gives one.
    fn halves(&self) -> Option<Cut>;

    /// Accelerators are numbered row-major over these extents, where the topology has such an order; a line otherwise.
    fn extents(&self) -> Vec<u32> {
        vec![self.accelerators()]
    }

    /// Its boards, where any rows and columns of them join to a smaller network of the same kind.
    fn boards(&self) -> Option<Boards> {
        None
    }

    /// Returns the root of the tree by which a graph is routed, if it is.
    fn tree_root(&self) -> Option<u32> {
        None
    }

    /// Returns the length of each link of the plane, where packets take ways of the least length and not of the fewest
    /// links.
    fn lengths(&self) -> Option<Vec<u64>> {
        None
    }

    /// Returns the number that each accelerator has without failures, if an accelerator failed.
    fn kept(&self) -> Option<&[u32]> {
        None
    }

    /// Returns the number of each node of the plane without failures in the plane that is left, if something failed.
    fn renumbered(&self) -> Option<&[Option<u32>]> {
        None
    }

    /// Returns how nodes are numbered, if the topology is made of equal boxes.
    fn numbers_of_boxes(&self) -> Option<BoxNumbers> {
        None
    }

    /// # Errors
    /// It is larger than the tables hold.
    fn plane(&self) -> Result<Plane, MachineError>;

    /// The routing of the plane that [`Topology::plane`] gives.
    fn routing(&self) -> Box<dyn Routing>;
}

/// Reads the table of a machine file. The second argument opens the message of an error, the third is the machine's own
/// speed of links.
pub type Read = fn(&toml::Table, &str, Speed) -> Result<Box<dyn Topology>, MachineError>;

/// The table of a family as its own type.
///
/// # Errors
/// A key that is missing, unknown or of another type.
pub(super) fn parse<T: DeserializeOwned>(table: &toml::Table, origin: &str) -> Result<T, MachineError> {
    keyed::read(toml::Value::Table(table.clone())).map_err(|e: toml::de::Error| {
        let message = of_value(&with_nearest(&e.message().trim().replace('\n', ", ")));
        // The reader names the key of a wrong value behind its message.
        let shown = e.to_string();
        let key = shown.split_once("in `").and_then(|(_, rest)| rest.split_once('`')).map(|(key, _)| key);
        let message = key.map_or_else(|| message.clone(), |key| format!("{key}: {message}"));
        MachineError::Toml { origin: format!("{origin}, topology"), message }
    })
}

/// That many accelerators, where tables hold them.
///
/// # Errors
/// None, or too many.
pub(super) fn accelerators(sizes: &[u32], origin: &str) -> Result<u32, MachineError> {
    let product = sizes.iter().try_fold(1_u64, |n, &size| n.checked_mul(u64::from(size)));
    match product {
        Some(n @ 1..=MOST_ACCELERATORS) => Ok(narrow(n)),
        _ => Err(refused(
            origin,
            format!(
                "{} accelerators; accepted are 1 to {MOST_ACCELERATORS}",
                sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(" x ")
            ),
        )),
    }
}

/// Sizes that do not close.
pub(super) fn refused(origin: &str, message: impl Into<String>) -> MachineError {
    MachineError::Toml { origin: format!("{origin}, topology"), message: message.into() }
}

/// A family of topologies, by name.
#[derive(Serialize)]
pub struct Family {
    pub name: &'static str,
    pub summary: &'static str,
    pub reference: &'static str,
    /// Keys of its table in a machine file.
    pub keys: &'static [&'static str],
    #[serde(skip)]
    pub read: Read,
}
