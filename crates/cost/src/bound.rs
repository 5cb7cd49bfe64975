//! Lower bounds on the time of a collective, on machines of every kind: one trait, one registry.

use std::any::Any;

use unisono_collective::Collective;

use crate::{BOUNDS, Time};

/// One collective on one part of a machine. Each kind of machine has its own type of part.
#[derive(Clone, Copy)]
pub struct CostProblem<'a> {
    pub collective: Collective,
    pub part: &'a dyn Any,
}

impl<'a> CostProblem<'a> {
    /// Returns the part, if it belongs to the kind of machine with this type.
    pub fn on<Part: Any>(&self) -> Option<&'a Part> {
        self.part.downcast_ref()
    }
}

/// A lower bound.
pub trait Bound: Sync {
    fn name(&self) -> &'static str;
    fn reference(&self) -> &'static str;
    /// The condition on algorithms under which the bound holds.
    fn assumes(&self) -> &'static str;

    /// Whether plans are compared with it, where it applies.
    fn measures_plans(&self) -> bool {
        true
    }

    /// Returns the bound, or `None` where it does not apply to the problem.
    fn time(&self, problem: &CostProblem) -> Option<Time>;
}

/// Every registered bound, by kind of machine, then by name.
pub fn all() -> impl Iterator<Item = &'static dyn Bound> {
    BOUNDS.iter().flat_map(|kind| kind.iter().copied())
}

/// Returns every bound that applies, in the order of [`BOUNDS`].
pub fn bounds(problem: &CostProblem) -> Vec<(&'static dyn Bound, Time)> {
    all().filter_map(|bound| Some((bound, bound.time(problem)?))).collect()
}

/// Returns the largest of the bounds that plans are compared with.
pub fn tightest(problem: &CostProblem) -> Option<(&'static dyn Bound, Time)> {
    let measures = all().filter(|bound| bound.measures_plans());
    measures.filter_map(|bound| Some((bound, bound.time(problem)?))).max_by(|a, b| a.1.total_cmp(&b.1))
}
