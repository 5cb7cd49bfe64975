//! XY/YX halves: half of the vector goes along the rows and then along column 0, the other half along the columns and
//! then along row 0. Each line uses the best tree with at most two children, from which a PE receives alternately,
//! element by element.
//!
//! It suits short vectors, whose time is mostly depth. Source: this project; "Near-Optimal Wafer-Scale Reduce", section
//! 7.5, leaves better trees in 2D open.

use unisono_base::narrow;
use unisono_collective::Kind;

use super::auto_gen::within;
use crate::{
    AlgorithmError, Case, Info, Params,
    forest::{CHUNK, GridTrees, Tree, View},
};

pub struct XyYx;

/// The most children of a PE in a line. In each half the root has two children in a row and two in a column, so both
/// halves use all eight input queues of the root.
const CHILDREN: u32 = 2;

/// Builds the tree of one half: one tree along all rows, then another along column 0.
fn tree(v: View, case: &Case) -> Tree {
    let half = case.wavelets().div_ceil(2);
    let side = |pes: u32| within(pes, half, case.depth_cycles(), CHILDREN);
    let (across, down) = (side(v.cols()), side(v.rows()));
    let mut parents = vec![v.pe(0, 0); narrow::<usize>(v.grid.count())];
    for r in 0..v.rows() {
        for c in 0..v.cols() {
            let parent = if c > 0 { v.pe(r, across.parent(c)) } else { v.pe(down.parent(r), 0) };
            parents[v.pe(r, c) as usize] = parent;
        }
    }
    Tree(parents)
}

impl GridTrees for XyYx {
    const INFO: Info = Info {
        name: "xy-yx",
        summary: "half the vector by rows first, half by columns first; for short vectors",
        reference: "this project; goes beyond Near-Optimal Wafer-Scale Reduce, section 7",
        collectives: &[Kind::Reduce],
        params: &[CHUNK],
        ..Info::ON_GRID
    };

    fn count(&self, _: &Case, _: &Params) -> Result<u32, AlgorithmError> {
        Ok(2)
    }

    fn trees(&self, case: &Case, _: &Params) -> Result<Vec<Tree>, AlgorithmError> {
        let view = View::from(case.grid(), case.collective.root);
        Ok(view.map_or_else(Vec::new, |v| vec![tree(v, case), tree(v.turned(), case)]))
    }
}
