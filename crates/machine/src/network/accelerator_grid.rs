//! The part of a network that runs a collective: its accelerators in the order of ranks.

use unisono_base::{excerpt, narrow};

use super::Topology;
use crate::{Grid, MachineError, Shape};

/// The grid of a network before some of its accelerators failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GridBefore {
    /// The extents of the grid in which all accelerators were numbered, row-major.
    pub extents: Vec<u32>,
    /// Rows and columns of accelerators on a board. Parts of the network begin at boards.
    pub board: [u32; 2],
}

/// Accelerators in the order of their ranks, and the extents of the part that they form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AcceleratorGrid {
    /// Rank k is on accelerator `nodes[k]`.
    pub nodes: Vec<u32>,
    /// The extents of the part. Their product is the number of ranks.
    pub extents: Vec<u32>,
}

impl AcceleratorGrid {
    /// Selects all accelerators if `shape` is `None`, the first `n` for a shape `n`, or the first rows and columns for
    /// a shape with two extents. `extents` are those of the whole network, in which accelerators are numbered
    /// row-major.
    ///
    /// # Errors
    /// Returns an error if the part is larger than the network along some dimension, or has another number of
    /// dimensions.
    pub fn new(machine: &str, extents: &[u32], shape: Option<Shape>) -> Result<Self, MachineError> {
        let accelerators: u32 = extents.iter().product();
        let Some(shape) = shape else {
            return Ok(Self { nodes: (0..accelerators).collect(), extents: extents.to_vec() });
        };
        let dims = shape.dims();
        if let [ranks] = dims[..] {
            if ranks > accelerators {
                let (machine, or) = (machine.to_owned(), String::new());
                return Err(MachineError::TooManyRanks { ranks, machine, accelerators, or });
            }
            return Ok(Self { nodes: (0..ranks).collect(), extents: whole_rows(ranks, extents) });
        }
        if dims.len() != extents.len() || dims.iter().zip(extents).any(|(part, all)| part > all) {
            let (shape, machine) = (shape.to_string(), machine.to_owned());
            if extents.len() == 1 {
                return Err(MachineError::NoRows { shape, machine, accelerators });
            }
            let extents = extents.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
            return Err(MachineError::NoSuchPart { shape, machine, extents });
        }
        let Grid { rows, cols } = shape.grid;
        let node = |rank: u32| rank / cols * extents[1] + rank % cols;
        Ok(Self { nodes: (0..rows * cols).map(node).collect(), extents: dims })
    }

    /// Selects a part of a network whose accelerators may have failed. Remaining accelerators keep their rows and
    /// columns.
    ///
    /// A shape of two extents selects the first rectangle without a failed accelerator. Rectangles begin at boards, and
    /// are tried in row-major order. A shape that is a number of ranks keeps rows if these ranks fill whole rows
    /// without a failed accelerator; otherwise the ranks form a line.
    ///
    /// # Errors
    /// Returns the errors of [`AcceleratorGrid::new`], and an error if every rectangle of this shape has a failed
    /// accelerator.
    pub fn of(machine: &str, topology: &dyn Topology, shape: Option<Shape>) -> Result<Self, MachineError> {
        let (Some(kept), Some(before)) = (topology.kept(), topology.grid_before()) else {
            return Self::new(machine, &topology.extents(), shape);
        };
        let shape = shape.unwrap_or_else(|| Shape::line(narrow(kept.len())));
        if let [ranks] = shape.dims()[..] {
            let part = Self::new(machine, &topology.extents(), Some(shape))?;
            let row: u32 = before.extents[1..].iter().product();
            let fills_rows = |first: u32, last: u32| first.is_multiple_of(row) && last - first == ranks - 1;
            let ends = kept.first().zip(kept[..ranks as usize].last());
            let extents = match ends {
                Some((&first, &last)) if fills_rows(first, last) => whole_rows(ranks, &before.extents),
                _ => part.extents,
            };
            return Ok(Self { extents, ..part });
        }
        let first = Self::new(machine, &before.extents, Some(shape))?;
        let (Grid { rows, cols }, &[all_rows, all_cols]) = (shape.grid, &before.extents[..]) else {
            unreachable!("the grid has as many dimensions as a shape of it");
        };
        let number = |node: u32| kept.binary_search(&node).ok();
        let failed: Vec<u32> = (0..all_rows * all_cols).filter(|&node| number(node).is_none()).collect();
        let is_healthy = |&(row, col): &(u32, u32)| {
            let inside = |node: u32| {
                (row..row + rows).contains(&(node / all_cols)) && (col..col + cols).contains(&(node % all_cols))
            };
            !failed.iter().any(|&node| inside(node))
        };
        let starts = |all: u32, part: u32, board: u32| (0..=all - part).step_by(board.max(1) as usize);
        let [high, wide] = before.board;
        let mut places =
            starts(all_rows, rows, high).flat_map(|row| starts(all_cols, cols, wide).map(move |col| (row, col)));
        let Some((row, col)) = places.find(is_healthy) else {
            let failed = failed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let (shape, machine, failed) = (shape.to_string(), machine.to_owned(), excerpt(&failed));
            return Err(MachineError::NoHealthyPart { shape, machine, failed });
        };
        let moved = |node: &u32| number(node + row * all_cols + col).expect("an accelerator that did not fail");
        Ok(Self { nodes: first.nodes.iter().map(|node| narrow(moved(node))).collect(), ..first })
    }

    /// Returns the shape whose part has exactly these accelerators in this order; `None` if there is none.
    pub fn shape(nodes: &[u32], topology: &dyn Topology) -> Option<Shape> {
        let ranks: u32 = narrow(nodes.len());
        let is_part = |shape: &Shape| Self::of("", topology, Some(*shape)).is_ok_and(|part| part.nodes == nodes);
        let line = Some(Shape::line(ranks)).filter(|_| ranks > 0).filter(is_part);
        let rect = || {
            let grid = topology.grid_before().map_or_else(|| topology.extents(), |before| before.extents.clone());
            let number = |&node: &u32| topology.kept().map_or(Some(node), |kept| kept.get(node as usize).copied());
            let numbers = nodes.iter().map(number).collect::<Option<Vec<u32>>>()?;
            let run = numbers.chunk_by(|a, b| a.checked_add(1) == Some(*b)).next()?.len();
            let columns = narrow::<u32>(run).min(*grid.last()?);
            let shape = ranks.is_multiple_of(columns).then(|| Shape::rect(ranks / columns, columns));
            shape.filter(is_part)
        };
        line.or_else(rect)
    }
}

/// Returns a sentence if the ranks of a part form a line only because accelerators failed.
pub fn note_on_lost_rows(topology: &dyn Topology, extents: &[u32]) -> Option<String> {
    let (kept, before) = (topology.kept()?, topology.grid_before()?);
    let ranks: u32 = extents.iter().product();
    let is_all = kept.len() == ranks as usize && before.extents.len() > 1;
    let is_lost = extents.len() == 1 && (is_all || whole_rows(ranks, &before.extents).len() > 1);
    is_lost.then(|| {
        let all: u32 = before.extents.iter().product();
        let failed = (0..all).filter(|node| kept.binary_search(node).is_err()).map(|node| node.to_string());
        let failed = excerpt(&failed.collect::<Vec<_>>().join(", "));
        format!(
            "ranks are in a line, without rows and columns, because accelerators failed ({failed}); a smaller part may \
             have rows and columns"
        )
    })
}

/// Returns `extents` with the first extent changed so that their product is `ranks`. If `ranks` is not a multiple of
/// the product of the other extents, returns a line of `ranks`.
fn whole_rows(ranks: u32, extents: &[u32]) -> Vec<u32> {
    let row: u32 = extents[1..].iter().product();
    if ranks.is_multiple_of(row) { [&[ranks / row], &extents[1..]].concat() } else { vec![ranks] }
}
