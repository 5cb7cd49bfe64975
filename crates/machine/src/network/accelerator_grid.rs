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

    /// Returns the shape whose part has these accelerators, or `None` for other accelerators.
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

/// The first ranks keep the network's dimensions where they fill whole rows.
fn whole_rows(ranks: u32, extents: &[u32]) -> Vec<u32> {
    let row: u32 = extents[1..].iter().product();
    if ranks.is_multiple_of(row) { [&[ranks / row], &extents[1..]].concat() } else { vec![ranks] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_by_their_shape() {
        for (shape, nodes) in [
            (Shape::line(5), vec![0, 1, 2, 3, 4]),
            (Shape::rect(2, 3), vec![0, 1, 2, 4, 5, 6]),
            (Shape::rect(3, 1), vec![0, 4, 8]),
        ] {
            let part = AcceleratorGrid::new("m", &[4, 4], Some(shape)).unwrap();
            assert_eq!(part.nodes, nodes);
            assert_eq!(AcceleratorGrid::shape(&nodes, &[4, 4]), Some(shape));
        }
        assert_eq!(AcceleratorGrid::new("m", &[4, 4], Some(Shape::line(8))).unwrap().extents, [2, 4]);
        assert_eq!(AcceleratorGrid::new("m", &[4, 4], None).unwrap().extents, [4, 4]);
        assert_eq!(AcceleratorGrid::shape(&[0, 1, 4, 6], &[4, 4]), None);
        assert_eq!(AcceleratorGrid::shape(&[1, 2], &[4, 4]), None);
        assert!(AcceleratorGrid::new("m", &[4, 4], Some(Shape::rect(2, 5))).is_err());
        assert!(AcceleratorGrid::new("m", &[64], Some(Shape::rect(2, 2))).is_err());
    }
}
