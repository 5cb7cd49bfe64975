//! The checked request of a user: a collective on a part of a machine.

use std::sync::Arc;

use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_cost::{CostProblem, wafer::WaferPart};
use unisono_lower::{File, Placement};
use unisono_machine::{Machine, Shape};

use crate::{
    Part, PlanError, Target,
    targets::{TARGETS, kind_of},
};

/// The root as a user names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Root {
    Rank(u64),
    /// The row and column of a PE.
    At(u64, u64),
}

/// The request of a user for a collective.
#[derive(Clone, PartialEq, Debug)]
pub struct Request<'a> {
    pub kind: Kind,
    pub machine: &'a Machine,
    pub part: Part,
    pub elements: u64,
    pub root: Root,
    pub operator: Operator,
    pub dtype: Dtype,
    /// The name of the model; `None` for the machine's own model.
    pub model: Option<&'a str>,
}

impl<'a> Request<'a> {
    /// Returns a request for a sum of f32 with root 0, by the machine's own model.
    pub fn new(kind: Kind, machine: &'a Machine, part: Part, elements: u64) -> Self {
        let (operator, dtype) = (Operator::Sum, Dtype::F32);
        Self { kind, machine, part, elements, root: Root::Rank(0), operator, dtype, model: None }
    }
}

/// A collective on a part of a machine: the complete input of the planner.
#[derive(Clone)]
pub struct Problem {
    pub collective: Collective,
    pub target: Arc<dyn Target>,
}

/// Returns the rank at a row and a column.
fn root_at(target: &dyn Target, row: u64, col: u64) -> Result<u64, PlanError> {
    let part: Option<&WaferPart> = target.part().downcast_ref();
    let no_grid = || PlanError::NoGrid { row, col, machine: target.machine().name().to_owned() };
    let grid = part.ok_or_else(no_grid)?.grid;
    if row < u64::from(grid.rows) && col < u64::from(grid.cols) {
        return Ok(row * u64::from(grid.cols) + col);
    }
    Err(PlanError::RootOffGrid { row, col, grid: grid.to_string(), rows: grid.rows, cols: grid.cols })
}

impl Problem {
    /// Checks a request, and opens the part of its machine.
    ///
    /// # Errors
    /// Returns an error for a part that the machine lacks, a root outside it, a count that does not fit or an unknown
    /// model.
    pub fn new(request: &Request) -> Result<Self, PlanError> {
        let opened = TARGETS.iter().find_map(|kind| (kind.open)(request)).expect("every kind of machine has a target");
        Self::on(Arc::from(opened?), request)
    }

    /// Returns the problem on a target that is already open. Such a target caches results of earlier collectives. The
    /// machine, the part and the model in `request` are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if the root is outside the part or a count does not fit.
    pub fn on(target: Arc<dyn Target>, request: &Request) -> Result<Self, PlanError> {
        let root = match request.root {
            Root::Rank(rank) => rank,
            Root::At(row, col) => root_at(&*target, row, col)?,
        };
        let collective =
            Collective::planned(request.kind, target.ranks(), request.elements, root, request.operator, request.dtype)?;
        Ok(Self { collective, target })
    }

    /// Returns the problem that a schedule on a machine solves.
    ///
    /// # Errors
    /// Returns an error if the file has no machine, or the machine has no such part.
    pub fn of_file(file: &File, model: Option<&str>) -> Result<Self, PlanError> {
        let machine = file.machine.as_ref().ok_or(PlanError::NoMachine)?;
        let c = *file.schedule.collective();
        let part = match &file.placement {
            Some(Placement::Nodes(nodes)) => Part::Places(nodes.iter().copied().take(c.ranks as usize).collect()),
            None => Part::Shape(Shape::line(c.ranks)),
            Some(Placement::Grid(_) | Placement::Switches(_)) => (kind_of(machine).part)(file)?,
        };
        let request = Request {
            part,
            model,
            operator: c.operator,
            dtype: c.dtype,
            ..Request::new(c.kind, machine, Part::All, 0)
        };
        let request = Request { elements: u64::from(c.elements), root: Root::Rank(u64::from(c.root)), ..request };
        Self::new(&request)
    }

    pub fn cost(&self) -> CostProblem<'_> {
        CostProblem { collective: self.collective, part: self.target.part() }
    }
}
