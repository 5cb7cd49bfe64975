//! Quad two-phase: the layout of quad-chain with two phases on each line, a chain in each group of S PEs, then a chain
//! over the groups' ends. The ends are shifted from line to line, from tree to tree, and in the lines that merge other
//! lines, so that a PE is the end of few groups: on a wafer each child, and the flood of an allreduce, needs one of a
//! PE's 8 input queues.
//!
//! For B wavelets T is about 1.5 B + 3 n + 20 sqrt(n) on n x n PEs with S = sqrt(n). Source: this project;
//! "Near-Optimal Wafer-Scale Reduce", section 7.5, leaves better trees in 2D open.

use unisono_collective::Kind;

use crate::{
    AlgorithmError, Case, Info, Param, Params,
    forest::{CHUNK, GridTrees, Lines, MERGE, Tree, View, most_children, quad},
};

pub struct QuadTwoPhase;

/// Input queues of a PE of the WSE-2. Programs that need more queues are refused.
const INPUT_QUEUES: u16 = 8;

struct Groups {
    size: u32,
    /// The shift of the ends on the lines that merge other lines.
    merge: u32,
}

impl Groups {
    /// Returns true if a position of a line is the end of a group: position 0, and every S-th position, shifted by the
    /// line and the tree.
    fn ends(&self, tree: u32, line: u32, place: u32) -> bool {
        let line = if line == MERGE { self.merge } else { line };
        let shift = line.wrapping_add(tree * self.size / 4);
        place == 0 || place.wrapping_add(shift).is_multiple_of(self.size)
    }
}

impl Lines for Groups {
    fn parent(&self, tree: u32, line: u32, place: u32, _: u32) -> u32 {
        if !self.ends(tree, line, place) {
            return place - 1;
        }
        (0..place).rev().find(|&p| self.ends(tree, line, p)).unwrap_or(0)
    }
}

fn size(case: &Case, params: &Params) -> Result<u32, AlgorithmError> {
    let longer = case.grid().rows.max(case.grid().cols);
    Ok(params.number("quad-two-phase", "group", 2..=longer.max(2))?.unwrap_or_else(|| longer.isqrt().max(3)))
}

impl GridTrees for QuadTwoPhase {
    const INFO: Info = Info {
        name: "quad-two-phase",
        summary: "four two-phase lines over a grid, each with a quarter of the vector",
        reference: "this project; goes beyond Near-Optimal Wafer-Scale Reduce, section 7",
        collectives: &[Kind::Reduce],
        params: &[
            Param { name: "group", values: "PEs in a group, from 2 (default: floor(sqrt(longer side)), at least 3)" },
            CHUNK,
        ],
        ..Info::ON_GRID
    };

    fn count(&self, case: &Case, params: &Params) -> Result<u32, AlgorithmError> {
        size(case, params).map(|_| 4)
    }

    /// Returns the trees for the first value of `merge` that leaves every PE an input queue for the flood. If no value
    /// does, returns the trees in which the PE with the most children has the fewest.
    fn trees(&self, case: &Case, params: &Params) -> Result<Vec<Tree>, AlgorithmError> {
        let size = size(case, params)?;
        let Some(view) = View::from(case.grid(), case.collective.root) else {
            return Ok(Vec::new());
        };
        let mut best = (u16::MAX, Vec::new());
        for merge in 0..size {
            let trees = quad(view, &Groups { size, merge });
            let most = most_children(&trees);
            if most < best.0 {
                best = (most, trees);
            }
            if best.0 < INPUT_QUEUES {
                break;
            }
        }
        Ok(best.1)
    }
}
