//! What a user asks for, checked.

use unisono_algorithms::Case;
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_cost::{BoundCase, MODELS, Model, find_model};
use unisono_machine::{Shape, Wafer};

use crate::PlanError;

/// One collective on one part of a wafer.
#[derive(Clone, PartialEq, Debug)]
pub struct Request {
    pub collective: Collective,
    pub wafer: Wafer,
    pub shape: Shape,
}

impl Request {
    /// # Errors
    /// A shape that is missing or too large, a root outside it, counts that do not fit.
    pub fn new(
        kind: Kind,
        wafer: &Wafer,
        shape: Option<Shape>,
        elements: u64,
        root: u64,
        operator: Operator,
        dtype: Dtype,
    ) -> Result<Self, PlanError> {
        let shape = wafer.choose(shape)?;
        let ranks = u32::try_from(shape.grid.count()).expect("Wafer::choose keeps shapes on the fabric");
        let collective = Collective::new(kind, ranks, elements, root, operator, dtype)?;
        Ok(Self { collective, wafer: wafer.clone(), shape })
    }

    /// The rank at a row and column of the shape.
    ///
    /// # Errors
    /// A place off the grid.
    pub fn root_at(shape: Shape, row: u64, col: u64) -> Result<u64, PlanError> {
        let grid = shape.grid;
        if row < u64::from(grid.rows) && col < u64::from(grid.cols) {
            return Ok(row * u64::from(grid.cols) + col);
        }
        Err(PlanError::RootOffGrid { row, col, grid: grid.to_string(), rows: grid.rows, cols: grid.cols })
    }

    pub fn case(&self) -> Case {
        Case::on_grid(self.collective, self.shape.grid, self.wafer.depth_cycles())
    }

    pub fn bound_case(&self) -> BoundCase {
        BoundCase {
            kind: self.collective.kind,
            grid: self.shape.grid,
            root: self.collective.root,
            wavelets: self.case().wavelets(),
            ramp_latency: self.wafer.ramp_latency_cycles,
        }
    }

    /// The model asked for; by default `paper` on a line and `links` on a grid, where averages mislead.
    ///
    /// # Errors
    /// An unknown name.
    pub fn model(&self, asked: Option<&str>) -> Result<&'static dyn Model, PlanError> {
        let name = asked.unwrap_or(if self.shape.grid.is_line() { "paper" } else { "links" });
        model(name)
    }
}

/// # Errors
/// An unknown name.
pub fn model(name: &str) -> Result<&'static dyn Model, PlanError> {
    find_model(name).ok_or_else(|| PlanError::Model {
        found: name.to_owned(),
        accepted: MODELS.iter().map(|m| m.name()).collect::<Vec<_>>().join(", "),
    })
}
