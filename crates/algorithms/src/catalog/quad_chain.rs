//! Quad chain: four chains over a grid, each with a quarter of the vector, that meet in four different lines
//! ([`crate::forest`] has the layout).
//!
//! Every PE adds at most 1.25 B elements: T is about 1.25 B + 13 n on n x n.
//! Source: this project; the paper leaves 2D open (section 7.5).

use unisono_collective::Kind;
use unisono_lower::{Estimate, Placed};

use crate::{
    Algorithm, AlgorithmError, Case, Param, Params,
    forest::{CHUNK, Lines, Tree, View, build, chunk, estimate, estimate_steps, quad, supports},
};

pub struct QuadChain;

struct Chain;

impl Lines for Chain {
    fn parent(&self, _: u32, _: u32, place: u32, _: u32) -> u32 {
        place - 1
    }
}

fn trees(case: &Case) -> Vec<Tree> {
    View::from(case.grid(), case.collective.root).map_or_else(Vec::new, |view| quad(view, &Chain))
}

impl Algorithm for QuadChain {
    fn name(&self) -> &'static str {
        "quad-chain"
    }

    fn summary(&self) -> &'static str {
        "four chains over a grid, each with a quarter of the vector; best for long vectors"
    }

    fn reference(&self) -> &'static str {
        "this project; goes beyond Near-Optimal Wafer-Scale Reduce, section 7"
    }

    fn collectives(&self) -> &'static [Kind] {
        &[Kind::Reduce]
    }

    fn params(&self) -> &'static [Param] {
        &[CHUNK]
    }

    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        chunk(self.name(), params)?;
        supports(self.name(), case, true)
    }

    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
        build(case, &trees(case), chunk(self.name(), params)?)
    }

    fn estimate(&self, case: &Case, _: &Params) -> Option<Estimate> {
        Some(estimate(case, &trees(case)))
    }

    fn estimate_steps(&self, case: &Case, _: &Params) -> u128 {
        estimate_steps(case, 4)
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        if case.grid().is_line() { Vec::new() } else { vec![Params::new()] }
    }
}
