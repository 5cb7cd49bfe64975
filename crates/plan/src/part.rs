//! The part of a machine on which a collective runs, as a user names it.

use std::fmt;

use unisono_base::narrow;
use unisono_machine::{
    Machine, MachineError, Shape,
    network::{AcceleratorGrid, Network},
};

use crate::PlanError;

#[derive(Clone, PartialEq, Debug)]
pub enum Part {
    /// The whole machine. A plan for the whole machine is an error if the machine states no size: no number of ranks,
    /// or no default shape of a wafer.
    All,
    /// The first ranks, or a subgrid.
    Shape(Shape),
    /// All cores of the given nodes, on machines with several cores in each node.
    Nodes(Vec<u32>),
    /// Rank k on accelerator `places[k]` of a network, in any arrangement.
    Places(Vec<u32>),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("the whole machine"),
            Self::Shape(shape) => write!(f, "shape {shape}"),
            Self::Nodes(nodes) => write!(f, "a subset of {} nodes", nodes.len()),
            Self::Places(nodes) => write!(f, "a list of {} places", nodes.len()),
        }
    }
}

impl Part {
    /// Checks that a machine has the shape or the nodes of the part. The whole machine and lists of accelerators are
    /// not checked.
    ///
    /// # Errors
    /// Returns an error if the machine does not have the shape or the nodes.
    pub fn check(&self, machine: &Machine) -> Result<(), MachineError> {
        match self {
            Self::Shape(shape) => machine.shape(Some(*shape)).map(|_| ()),
            Self::Nodes(nodes) => machine.shape_of(nodes).map(|_| ()),
            Self::All | Self::Places(_) => Ok(()),
        }
    }

    /// Returns the part of `machine` that a user names by a shape or a subset of nodes. If the user names neither,
    /// returns this part, which belongs to the machine `before` from which `machine` was derived. A list of
    /// accelerators then becomes the whole machine if the two machines differ.
    ///
    /// # Errors
    ///
    /// Returns an error if the user named both, or the machine has no such part.
    pub fn renamed(
        &self,
        before: &Machine,
        machine: &Machine,
        shape: Option<Shape>,
        subset: Option<Vec<u32>>,
    ) -> Result<Self, PlanError> {
        let part = match (shape, subset, self) {
            (Some(_), Some(subset), _) | (None, Some(subset), Self::Shape(_) | Self::Places(_)) => {
                // If the kind of machine has no subsets, this check fails first.
                Self::Nodes(subset).check(machine)?;
                return Err(PlanError::ShapeAndSubset);
            }
            (Some(shape), None, _) => Self::Shape(shape),
            (None, Some(subset), _) => Self::Nodes(subset),
            // The new description may number accelerators differently.
            (None, None, Self::Places(_)) if machine != before => Self::All,
            (None, None, part) => part.clone(),
        };
        part.check(machine)?;
        Ok(part)
    }

    /// Returns the part for a changed description of the machine, which may number accelerators differently. A list of
    /// accelerators becomes the whole machine; other parts stay the same.
    pub fn without_places(&self) -> Self {
        if let Self::Places(_) = self { Self::All } else { self.clone() }
    }

    /// Returns true if the part is the whole machine. Returns false for lists of nodes and of accelerators, and for a
    /// shape if the machine has no size of its own.
    ///
    /// # Errors
    ///
    /// Returns an error if the machine's topology is invalid.
    pub fn is_whole(&self, machine: &Machine) -> Result<bool, MachineError> {
        Ok(match self {
            Self::All => true,
            Self::Shape(shape) => machine.shape(None)?.is_some_and(|all| all.grid.count() == shape.grid.count()),
            Self::Nodes(_) | Self::Places(_) => false,
        })
    }

    /// Returns the shape of the part; `None` for the whole machine if it has no size of its own.
    ///
    /// # Errors
    ///
    /// Returns an error if the machine has no such part.
    pub fn shape(&self, machine: &Machine) -> Result<Option<Shape>, MachineError> {
        match self {
            Self::All => machine.shape(None),
            Self::Shape(shape) => machine.shape(Some(*shape)),
            Self::Nodes(nodes) => machine.shape_of(nodes).map(Some),
            Self::Places(places) => Ok(Some(Shape::line(narrow(places.len())))),
        }
    }

    /// Returns the number of ranks along each dimension, as in plans; `None` for the whole machine if it has no size of
    /// its own.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::shape`].
    pub fn extents(&self, machine: &Machine) -> Result<Option<Vec<u32>>, MachineError> {
        let asked = match (self, machine.get::<Network>()) {
            (Self::All, Some(network)) => (network, None),
            (Self::Shape(shape), Some(network)) => (network, Some(*shape)),
            _ => return Ok(self.shape(machine)?.map(|shape| shape.dims().to_vec())),
        };
        let (network, shape) = asked;
        let grid = AcceleratorGrid::of(&network.name, &*network.topology(&network.name)?, shape)
            .map_err(|e| network.with_boxes_named(e))?;
        Ok(Some(grid.extents))
    }
}
