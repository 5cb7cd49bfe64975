//! Quad two-phase: the four lines of quad-chain, each line a chain of groups of S PEs and then a chain over the groups'
//! ends. The ends are shifted from line to line and from tree to tree, so that no PE ends a group of two trees.
//!
//! T is about 1.5 B + 3 n + 20 sqrt(n) on n x n with S = sqrt(n).
//! Source: this project; the paper leaves 2D open (section 7.5).

use unisono_collective::Kind;
use unisono_lower::Placed;

use crate::{
    Algorithm, AlgorithmError, Case, Param, Params,
    forest::{CHUNK, Lines, View, build, chunk, quad, supports},
};

pub struct QuadTwoPhase;

struct Groups {
    size: u32,
}

impl Groups {
    /// Whether a place ends a group: every S-th, shifted by the line and the tree. Place 0 always does.
    fn ends(&self, tree: u32, line: u32, place: u32) -> bool {
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
    Ok(params.number("quad-two-phase", "group", 2..=longer.max(2))?.unwrap_or_else(|| longer.isqrt().max(2)))
}

impl Algorithm for QuadTwoPhase {
    fn name(&self) -> &'static str {
        "quad-two-phase"
    }

    fn summary(&self) -> &'static str {
        "four two-phase lines over a grid, each with a quarter of the vector"
    }

    fn reference(&self) -> &'static str {
        "this project; goes beyond Near-Optimal Wafer-Scale Reduce, section 7"
    }

    fn collectives(&self) -> &'static [Kind] {
        &[Kind::Reduce]
    }

    fn params(&self) -> &'static [Param] {
        &[Param { name: "group", values: "PEs in a group, from 2 (default: floor(sqrt(longer side)))" }, CHUNK]
    }

    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        size(case, params)?;
        chunk(self.name(), params)?;
        supports(self.name(), case, true)
    }

    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
        let groups = Groups { size: size(case, params)? };
        let trees = View::from(case.grid(), case.collective.root).map_or_else(Vec::new, |view| quad(view, &groups));
        build(case, &trees, chunk(self.name(), params)?)
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        if case.grid().is_line() { Vec::new() } else { vec![Params::new()] }
    }
}
