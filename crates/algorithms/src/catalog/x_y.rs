//! X-Y reduce: a reduce along every row to the root's column, then along that column to the root, each with any tree on
//! a line.
//!
//! T = T_x + T_y. Source: "Near-Optimal Wafer-Scale Reduce", section 7.2.

use unisono_base::NodeId;
use unisono_collective::Kind;
use unisono_lower::{Estimate, Placed};
use unisono_schedule::{Builder, Operand};

use crate::{
    Algorithm, AlgorithmError, Case, Formula, Info, Param, Params, Profile,
    compose::{line_names, line_param},
    line::{Keep, copy_to_output, line_case, own_input, reduce, reduce_estimate},
};

pub struct XY;

const INFO: Info = Info {
    name: "x-y",
    summary: "a reduce along every row, then along the root's column",
    reference: "Near-Optimal Wafer-Scale Reduce, section 7.2",
    collectives: &[Kind::Reduce],
    params: &[
        Param { name: "x", values: "a reduce on a line, for the rows (default: auto-gen)" },
        Param { name: "y", values: "a reduce on a line, for the column (default: auto-gen)" },
    ],
    composed: true,
    formulas: &[
        Formula::new("paper", &[Kind::Reduce], "T_x + T_y").when("T_x and T_y are the times of its parts x and y")
    ],
    ..Info::ON_GRID
};

const DEFAULT: &str = "auto-gen";

/// Emits a reduce over the grid of `case` to `root`, and returns the operand with the result.
fn emit(b: &mut Builder, case: &Case, root: u32, params: &Params, keep: &mut Keep) -> Result<Operand, AlgorithmError> {
    let grid = case.grid();
    let (root_row, root_col) = grid.row_col(root);
    let mut sums = Vec::with_capacity(grid.rows as usize);
    let rows = line_case(line_param("x-y", "x", DEFAULT, &[], params)?, case, grid.cols, root_col, params)?;
    if grid.cols > 1 {
        b.phase("row-reduce");
    }
    for r in 0..grid.rows {
        let line: Vec<NodeId> = (0..grid.cols).map(|c| NodeId(grid.pe(r, c))).collect();
        sums.push(reduce(b, &line, &rows, &own_input, keep, 0));
    }
    if grid.rows > 1 {
        b.phase("column-reduce");
    }
    let columns = line_case(line_param("x-y", "y", DEFAULT, &[], params)?, case, grid.rows, root_row, params)?;
    let line: Vec<NodeId> = (0..grid.rows).map(|r| NodeId(grid.pe(r, root_col))).collect();
    Ok(reduce(b, &line, &columns, &|node| sums[grid.row_col(node.0).0 as usize], keep, 2))
}

/// Returns the phases of [`emit`] in closed form; `None` if a parameter is not accepted.
pub fn estimate(case: &Case, root: u32, params: &Params) -> Option<Estimate> {
    let (root_row, root_col) = case.grid().row_col(root);
    let mut phases = Vec::new();
    for (name, param, pes, at) in
        [("row-reduce", "x", case.grid().cols, root_col), ("column-reduce", "y", case.grid().rows, root_row)]
    {
        let tree = line_param("x-y", param, DEFAULT, &[], params).ok()?;
        if pes > 1 {
            phases.push(reduce_estimate(name, tree, &line_case(tree, case, pes, at, params).ok()?, case));
        }
    }
    Some(Estimate { phases })
}

impl Algorithm for XY {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        if case.collective.kind != Kind::Reduce {
            let reason = format!("it makes a reduce, not {}", case.collective.kind);
            return Err(AlgorithmError::Unsupported { algorithm: INFO.name, reason });
        }
        let (root_row, root_col) = case.grid().row_col(case.collective.root);
        line_case(line_param("x-y", "x", DEFAULT, &[], params)?, case, case.grid().cols, root_col, params)?;
        line_case(line_param("x-y", "y", DEFAULT, &[], params)?, case, case.grid().rows, root_row, params)?;
        Ok(())
    }

    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
        let c = case.collective;
        let mut b = Builder::new(c);
        b.reserve(c.ranks as usize + case.grid().rows as usize, c.ranks as usize);
        let mut keep = Keep::default();
        let at = emit(&mut b, case, c.root, params, &mut keep)?;
        copy_to_output(&mut b, NodeId(c.root), at);
        let schedule = b.finish()?;
        let placement = keep.placement(case.grid(), &schedule);
        Ok(Placed::on_grid(schedule, placement))
    }

    fn profile(&self, case: &Case, params: &Params) -> Option<Profile> {
        estimate(case, case.collective.root, params).map(Profile::Terms)
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        if case.grid().is_line() {
            return Vec::new();
        }
        let pairs = line_names().flat_map(|x| line_names().map(move |y| (x, y)));
        pairs.map(|(x, y)| Params::new().with("x", x).with("y", y)).collect()
    }
}
