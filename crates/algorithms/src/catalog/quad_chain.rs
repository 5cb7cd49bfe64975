//! Quad chain: four chains over a grid, each with a quarter of the vector, that merge in four different lines
//! ([`crate::forest`] has the layout).
//!
//! Every PE adds at most 1.25 B elements: T is about 1.25 B + 13 n on n x n.
//! Source: this project; the paper leaves 2D open (section 7.5).

use unisono_collective::Kind;
use unisono_lower::Placed;

use crate::{
    Algorithm, AlgorithmError, Case, Info, Params, Profile, Size,
    forest::{CHUNK, Lines, Tree, View, build, chunk, estimate, estimate_steps, quad, supports},
};

pub struct QuadChain;

const INFO: Info = Info {
    name: "quad-chain",
    summary: "four chains over a grid, each with a quarter of the vector; best for long vectors",
    reference: "this project; goes beyond Near-Optimal Wafer-Scale Reduce, section 7",
    collectives: &[Kind::Reduce],
    params: &[CHUNK],
    ..Info::ON_GRID
};

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
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        chunk(INFO.name, params)?;
        supports(INFO.name, case, true)
    }

    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
        build(case, &trees(case), chunk(INFO.name, params)?)
    }

    fn profile(&self, case: &Case, params: &Params) -> Option<Profile> {
        Some(Profile::Terms(estimate(case, &trees(case), chunk(INFO.name, params).ok()?)))
    }

    fn size(&self, case: &Case, _: &Params) -> Size {
        Size { profile_steps: estimate_steps(case, 4), ..Size::default() }
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        if case.grid().is_line() { Vec::new() } else { vec![Params::new()] }
    }
}
