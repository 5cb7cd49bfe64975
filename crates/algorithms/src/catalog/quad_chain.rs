//! Quad chain: four trees of chains over a grid, each for a quarter of the vector. The chains of each tree merge in a
//! different line ([`crate::forest`] has the layout).
//!
//! For B wavelets every PE does at most 1.25 B additions: T is about 1.25 B + 13 n on n x n PEs. Source: this project;
//! "Near-Optimal Wafer-Scale Reduce", section 7.5, leaves better trees in 2D open.

use unisono_collective::Kind;

use crate::{
    AlgorithmError, Case, Info, Params,
    forest::{CHUNK, GridTrees, Lines, Tree, View, quad},
};

pub struct QuadChain;

struct Chain;

impl Lines for Chain {
    fn parent(&self, _: u32, _: u32, place: u32, _: u32) -> u32 {
        place - 1
    }
}

impl GridTrees for QuadChain {
    const INFO: Info = Info {
        name: "quad-chain",
        summary: "four chains over a grid, each with a quarter of the vector; best for long vectors",
        reference: "this project; goes beyond Near-Optimal Wafer-Scale Reduce, section 7",
        collectives: &[Kind::Reduce],
        params: &[CHUNK],
        ..Info::ON_GRID
    };

    fn count(&self, _: &Case, _: &Params) -> Result<u32, AlgorithmError> {
        Ok(4)
    }

    fn trees(&self, case: &Case, _: &Params) -> Result<Vec<Tree>, AlgorithmError> {
        let view = View::from(case.grid(), case.collective.root);
        Ok(view.map_or_else(Vec::new, |view| quad(view, &Chain)))
    }
}
