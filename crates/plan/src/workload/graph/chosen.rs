//! The algorithm by which groups of one size perform a collective, and its schedule.

use std::sync::Arc;

use unisono_algorithms::{Algorithm, Case, Means, Params, resolve};
use unisono_lower::{Exchange, Placement};
use unisono_schedule::verify::Verified;
use unisono_workload::Groups;

use super::super::{Taken, shared::SharedNetwork};
use crate::{Plan, PlanError, candidates::build, stored::proved};

/// The algorithm by which groups of equal size perform a collective.
pub struct Chosen {
    pub groups: Arc<Groups>,
    by: By,
}

enum By {
    /// The plan of one group, which all groups use.
    Plan(Box<Plan>),
    /// An algorithm among the ranks of each group, by name.
    Name { case: Box<Case<'static>>, algorithm: String, given: Params },
}

impl Chosen {
    pub(super) fn planned(plan: Plan, groups: Arc<Groups>) -> Self {
        Self { groups, by: By::Plan(Box::new(plan)) }
    }

    pub(super) fn by_name(case: Case<'static>, groups: Arc<Groups>, taken: &Taken) -> Self {
        let (algorithm, given) = (taken.algorithm.clone(), taken.given.clone());
        Self { groups, by: By::Name { case: Box::new(case), algorithm, given } }
    }

    /// Returns the exchanges of one group; `None` if switches reduce or the schedule is too large.
    pub fn exchanges(&self) -> Option<Vec<Exchange>> {
        match &self.by {
            By::Plan(plan) => {
                let (best, problem) = (plan.best(), &plan.problem);
                let case = problem.target.case(problem.collective);
                let in_switches = best.algorithm.info().needs.contains(&Means::ReducingSwitches);
                if in_switches { None } else { SharedNetwork::exchanges(best.algorithm, &case, &best.params).ok() }
            }
            By::Name { case, algorithm, given } => {
                let (algorithm, params) = resolve(algorithm, case, given).ok()?;
                SharedNetwork::exchanges(algorithm, case, &params).ok()
            }
        }
    }

    /// Returns the name of the algorithm, and the most instructions of one group's schedule; `None` if their number is
    /// known only after the schedule is built.
    pub fn size(&self) -> (&str, Option<u64>) {
        match &self.by {
            By::Plan(plan) => {
                let (best, problem) = (plan.best(), &plan.problem);
                let case = problem.target.case(problem.collective);
                (best.algorithm.name(), best.algorithm.size(&case, &best.params).instructions)
            }
            By::Name { case, algorithm, given } => {
                let size = |(found, params): (&dyn Algorithm, Params)| found.size(case, &params).instructions;
                (algorithm, resolve(algorithm, case, given).ok().and_then(size))
            }
        }
    }

    /// Returns the seconds of the plan; `None` for an algorithm by name.
    pub fn planned_seconds(&self) -> Option<f64> {
        match &self.by {
            By::Plan(plan) => Some(plan.best().time.seconds),
            By::Name { .. } => None,
        }
    }

    /// Builds and proves the schedule of one group. Also returns the places of the switches, which are the last nodes
    /// of the schedule.
    ///
    /// # Errors
    ///
    /// Returns an error if the schedule is too large, or its proof fails.
    pub fn schedule(&self) -> Result<(Verified<'static>, Vec<u32>), PlanError> {
        match &self.by {
            By::Plan(plan) => {
                let placed = plan.built()?;
                let ranks = plan.problem.collective.ranks as usize;
                let nodes = placed.placement.as_ref().and_then(Placement::nodes).unwrap_or_default();
                Ok((proved(placed.schedule.clone())?, nodes.get(ranks..).unwrap_or_default().to_vec()))
            }
            By::Name { case, algorithm, given } => {
                let (algorithm, params) = resolve(algorithm, case, given)?;
                let mut schedule = build(algorithm, case, &params)?.schedule;
                schedule.set_origin(algorithm.name());
                Ok((proved(schedule)?, Vec::new()))
            }
        }
    }
}
