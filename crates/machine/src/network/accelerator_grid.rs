//! The part of a network that runs a collective: its accelerators in the order of ranks.

use unisono_base::narrow;

use crate::{Grid, MachineError, Shape};

/// Accelerators in the order of their ranks, and the extents of the part that they form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AcceleratorGrid {
    /// Rank k is on accelerator `nodes[k]`.
    pub nodes: Vec<u32>,
    /// Their product is the number of ranks.
    pub extents: Vec<u32>,
}

impl AcceleratorGrid {
    /// Selects all accelerators, the first of a number, or the first rows and columns of a shape. `extents` are those
    /// of the whole network, row-major.
    ///
    /// # Errors
    /// The part is larger than the network along some dimension, or has another number of dimensions.
    pub fn new(machine: &str, extents: &[u32], shape: Option<Shape>) -> Result<Self, MachineError> {
        let accelerators: u32 = extents.iter().product();
        let Some(shape) = shape else {
            return Ok(Self { nodes: (0..accelerators).collect(), extents: extents.to_vec() });
        };
        let dims = shape.dims();
        if let [ranks] = dims[..] {
            if ranks > accelerators {
                return Err(MachineError::TooManyRanks { ranks, machine: machine.to_owned(), accelerators });
            }
            return Ok(Self { nodes: (0..ranks).collect(), extents: whole_rows(ranks, extents) });
        }
        if dims.len() != extents.len() || dims.iter().zip(extents).any(|(part, all)| part > all) {
            return Err(MachineError::NoSuchPart {
                shape: shape.to_string(),
                machine: machine.to_owned(),
                extents: extents.iter().map(ToString::to_string).collect::<Vec<_>>().join("x"),
            });
        }
        let Grid { rows, cols } = shape.grid;
        let node = |rank: u32| rank / cols * extents[1] + rank % cols;
        Ok(Self { nodes: (0..rows * cols).map(node).collect(), extents: dims })
    }

    /// Returns the shape whose part has these accelerators; `None` for other sets of accelerators.
    pub fn shape(nodes: &[u32], extents: &[u32]) -> Option<Shape> {
        let consecutive = nodes.chunk_by(|a, b| a.checked_add(1) == Some(*b)).next()?.len();
        let ranks: u32 = narrow(nodes.len());
        let shape = match narrow(consecutive) {
            columns if columns == ranks => Shape::line(ranks),
            columns if ranks.is_multiple_of(columns) => Shape::rect(ranks / columns, columns),
            _ => return None,
        };
        Self::new("", extents, Some(shape)).ok().filter(|part| part.nodes == nodes).map(|_| shape)
    }
}

/// Returns the network's dimensions if the first ranks fill whole rows, else a line.
fn whole_rows(ranks: u32, extents: &[u32]) -> Vec<u32> {
    let row: u32 = extents[1..].iter().product();
    if ranks.is_multiple_of(row) { [&[ranks / row], &extents[1..]].concat() } else { vec![ranks] }
}
