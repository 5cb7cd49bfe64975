//! Snake reduce: a chain over all PEs of a grid, row by row and back and forth, so that neighbors of the chain are
//! neighbors of the grid.
//!
//! T = B + (2 T_R + 2)(M N - 1) for B wavelets on M x N PEs, with the ramp latency T_R. Source: "Near-Optimal
//! Wafer-Scale Reduce", section 7.3.

use unisono_base::NodeId;
use unisono_collective::Kind;
use unisono_lower::{Estimate, Placed};
use unisono_machine::Grid;

use super::chain::Chain;
use crate::{
    Algorithm, AlgorithmError, Case, Formula, Info, Params, Profile,
    line::{line_case, reduce_along, reduce_estimate},
};

pub struct Snake;

const INFO: Info = Info {
    name: "snake",
    summary: "a chain through all PEs of a grid, row by row; best for vectors much longer than the grid has PEs",
    reference: "Near-Optimal Wafer-Scale Reduce, section 7.3",
    collectives: &[Kind::Reduce],
    formulas: &[Formula::new("paper", &[Kind::Reduce], "B + (2 T_R + 2) (M N - 1)").when("on M x N PEs, to PE 0")],
    ..Info::ON_GRID
};

fn path(grid: Grid) -> Vec<NodeId> {
    let pe = |i: u32| {
        let (r, c) = grid.row_col(i);
        NodeId(grid.pe(r, if r % 2 == 0 { c } else { grid.cols - 1 - c }))
    };
    (0..grid.rows * grid.cols).map(pe).collect()
}

/// Returns the position of PE `pe` on the snake; the map is its own inverse.
fn position(grid: Grid, pe: u32) -> u32 {
    let (r, c) = grid.row_col(pe);
    grid.pe(r, if r % 2 == 0 { c } else { grid.cols - 1 - c })
}

impl Algorithm for Snake {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn supports(&self, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        let no = |reason: String| Err(AlgorithmError::Unsupported { algorithm: INFO.name, reason });
        if case.collective.kind != Kind::Reduce {
            return no(format!("it makes a reduce, not {}", case.collective.kind));
        }
        if !case.collective.operator.commutative() && !case.grid().is_line() {
            return no(format!(
                "it combines every second row backwards, and operator {} does not commute; x-y keeps the order",
                case.collective.operator
            ));
        }
        Ok(())
    }

    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
        let c = case.collective;
        let line = path(case.grid());
        let sides = line_case(&Chain, case, c.ranks, position(case.grid(), c.root), params)?;
        reduce_along(&line, &sides, case)
    }

    fn profile(&self, case: &Case, params: &Params) -> Option<Profile> {
        let c = case.collective;
        let sides = line_case(&Chain, case, c.ranks, position(case.grid(), c.root), params).ok()?;
        Some(Profile::Terms(Estimate { phases: vec![reduce_estimate("reduce", &Chain, &sides, case)] }))
    }

    /// Returns no candidates on a line, where the snake equals `chain`.
    fn candidates(&self, case: &Case) -> Vec<Params> {
        if case.grid().is_line() { Vec::new() } else { vec![Params::new()] }
    }
}
