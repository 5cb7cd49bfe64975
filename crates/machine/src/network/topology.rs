//! The interface of topologies, and their registry.

use std::fmt;

use serde::{Serialize, de::DeserializeOwned};
use unisono_base::{
    keyed::{self, with_nearest},
    narrow,
};

use super::{
    Boards, BoxNumbers, GridBefore, NodeName, Plane, Routing, Speed,
    allocate::JobSpace,
    cut::{Cut, Halves},
};
use crate::{MachineError, machine::of_value};

/// The numbers of elements of one plane that determine its price. Cables are those of the plane.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Bill {
    pub switches: u64,
    pub dac: u64,
    pub aoc: u64,
    /// The copper and the optical cables that would be added if all ports were used. Only the price lists of some
    /// machines ([`super::Prices::spare_ports`]) include them.
    pub spare_dac: u64,
    pub spare_aoc: u64,
    /// The number of ports of the largest switch. Switches with more than [`SWITCH_PORTS`] are not on the price list.
    pub switch_ports: u32,
}

/// The number of ports of the switch on the price list: "HammingMesh", section 5.
pub const SWITCH_PORTS: u32 = 64;

/// The largest number of accelerators, because tables of larger planes exceed the memory of a usual machine.
const MOST_ACCELERATORS: u64 = 1 << 24;

/// One plane of a topology with a given size.
pub trait Topology: Send + Sync + fmt::Debug {
    /// Returns the name of the family, such as `hxmesh`.
    fn name(&self) -> &'static str;

    fn accelerators(&self) -> u32;

    /// Returns the number of links of an accelerator, whose total bandwidth is its injection; the largest number if
    /// accelerators differ.
    fn ports(&self) -> u32;

    /// Returns the rate of all links of an accelerator, divided by the machine's own rate of one link: the smallest and
    /// the largest of all accelerators.
    fn injection(&self) -> [f64; 2] {
        [f64::from(self.ports()); 2]
    }

    /// Returns the speeds that differ from the machine's own, each with its number of cables.
    fn unlike(&self) -> Vec<(Speed, u64)> {
        Vec::new()
    }

    fn bill(&self) -> Bill;

    /// Returns the largest number of cables on a shortest path between two accelerators. Traces on a board count as
    /// cables.
    fn diameter(&self) -> u32;

    /// Returns a cut into halves, or nearly, which exists in the plane. `None` without a closed form.
    fn halves(&self) -> Option<Cut>;

    /// Returns the relation of the cut of [`Topology::halves`] to all other cuts into halves.
    fn halves_are(&self) -> Halves {
        Halves::Narrow
    }

    /// Returns the extents of the grid in which accelerators are numbered row-major; one extent if there is no such
    /// grid.
    fn extents(&self) -> Vec<u32> {
        vec![self.accelerators()]
    }

    /// Returns the boards of the topology, if any rows and columns of them form a smaller network of the same family.
    fn boards(&self) -> Option<Boards> {
        None
    }

    /// Returns the boards of the topology and the rule by which jobs get boards, if the family has such a rule.
    fn jobs(&self) -> Option<JobSpace> {
        None
    }

    /// Returns the names of a node of the plane.
    fn node_name(&self, node: u32) -> NodeName {
        NodeName::new(if node < self.accelerators() { "accelerator" } else { "switch" }, &[node])
    }

    /// Returns the names of all nodes, if the machine file states them.
    fn stated_names(&self) -> Option<&[String]> {
        None
    }

    /// Returns the root of the tree on which a graph is routed up and down, if that is its rule.
    fn tree_root(&self) -> Option<u32> {
        None
    }

    /// Returns the length of each link of the plane, if packets take the shortest paths by these lengths instead of the
    /// paths with the fewest links.
    fn lengths(&self) -> Option<Vec<u64>> {
        None
    }

    /// Returns the original number of each remaining accelerator, if an accelerator failed.
    fn kept(&self) -> Option<&[u32]> {
        None
    }

    /// Returns the grid of the complete topology, if an accelerator failed.
    fn grid_before(&self) -> Option<&GridBefore> {
        None
    }

    /// Returns the new number of each original node of the plane, if something failed; `None` for nodes that the plane
    /// lost.
    fn renumbered(&self) -> Option<&[Option<u32>]> {
        None
    }

    /// Returns the numbering of nodes, if the topology consists of equal boxes.
    fn numbers_of_boxes(&self) -> Option<BoxNumbers> {
        None
    }

    /// # Errors
    /// Returns an error if the plane is too large for the tables.
    fn plane(&self) -> Result<Plane, MachineError>;

    /// Returns the routing of the plane from [`Topology::plane`].
    fn routing(&self) -> Box<dyn Routing>;
}

/// Reads the table of a machine file. The second argument is the start of error messages, and the third is the speed of
/// links that state no speed.
pub type Read = fn(&toml::Table, &str, Speed) -> Result<Box<dyn Topology>, MachineError>;

/// Converts the table of a family to its type.
///
/// # Errors
/// Returns an error if a key is missing, unknown or has a value of another type.
pub(super) fn parse<T: DeserializeOwned>(table: &toml::Table, origin: &str) -> Result<T, MachineError> {
    keyed::read(toml::Value::Table(table.clone())).map_err(|e: toml::de::Error| {
        let message = of_value(&with_nearest(&e.message().trim().replace('\n', ", ")));
        // The reader appends the key of a wrong value to its message.
        let shown = e.to_string();
        let key = shown.split_once("in `").and_then(|(_, rest)| rest.split_once('`')).map(|(key, _)| key);
        let message = key.map_or_else(|| message.clone(), |key| format!("{key}: {message}"));
        MachineError::Toml { origin: format!("{origin}, topology"), message }
    })
}

/// Returns the product of `sizes`, which is the number of accelerators.
///
/// # Errors
/// Returns an error if the product is 0 or too large for tables.
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

/// Makes the error for a topology that cannot be built.
pub(super) fn refused(origin: &str, message: impl Into<String>) -> MachineError {
    MachineError::Toml { origin: format!("{origin}, topology"), message: message.into() }
}

#[derive(Serialize)]
pub struct Family {
    pub name: &'static str,
    pub summary: &'static str,
    pub reference: &'static str,
    /// The keys of the family's table in a machine file.
    pub keys: &'static [&'static str],
    /// The networks of the family on which jobs can be placed, for messages; `None` if there is no rule.
    #[serde(skip)]
    pub jobs: Option<&'static str>,
    #[serde(skip)]
    pub read: Read,
}
