//! What every algorithm answers.

use unisono_base::Wavelets;
use unisono_collective::{Collective, Kind};
use unisono_lower::{Estimate, Placed};
use unisono_machine::Grid;

use crate::{AlgorithmError, Params, line::LineTree};

/// What a schedule is wanted for. Rank `k` is PE `k` of the grid, row-major.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Case {
    pub collective: Collective,
    pub grid: Grid,
    /// Cycles one step of the depth costs (2 T_R + 1), for algorithms that choose their shape by the model.
    pub depth_cycles: f64,
}

impl Case {
    /// B: wavelets of the whole vector.
    pub fn wavelets(&self) -> u64 {
        Wavelets::of(u64::from(self.collective.elements), self.collective.dtype.bytes()).0
    }

    /// The same place with another collective.
    #[must_use]
    pub fn with(&self, kind: Kind, root: u32) -> Case {
        Case { collective: Collective { kind, root, ..self.collective }, ..*self }
    }
}

/// A parameter of an algorithm, for listings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Param {
    pub name: &'static str,
    /// Accepted values, and the default.
    pub values: &'static str,
}

pub trait Algorithm: Sync {
    fn name(&self) -> &'static str;
    fn summary(&self) -> &'static str;
    /// Where it is described.
    fn reference(&self) -> &'static str;
    fn collectives(&self) -> &'static [Kind];

    fn params(&self) -> &'static [Param] {
        &[]
    }

    /// # Errors
    /// The reason why there is no schedule for this case, or which parameter is wrong.
    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError>;

    /// The schedule with its placement. Only called on what [`Algorithm::supports`] accepts.
    ///
    /// # Errors
    /// The schedule is larger than its tables can hold.
    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError>;

    /// The cost terms in closed form, so that ranking need not build; `None`: they are computed from the schedule.
    /// Tests compare both. Only called on what [`Algorithm::supports`] accepts.
    fn estimate(&self, _case: &Case, _params: &Params) -> Option<Estimate> {
        None
    }

    /// Parameters worth ranking for a case. The planner drops those that are not supported.
    fn candidates(&self, _case: &Case) -> Vec<Params> {
        vec![Params::new()]
    }

    /// Whether it is made of other algorithms that its parameters name; listings of plain algorithms leave it out.
    fn composed(&self) -> bool {
        false
    }

    /// The unit as a tree on a line, if it is one: then it can be a part of others.
    fn line_tree(&self) -> Option<&dyn LineTree> {
        None
    }
}
